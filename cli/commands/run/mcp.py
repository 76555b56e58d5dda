"""``roadstead mcp``: lets an assistant read the fleet, as a server of the Model Context Protocol."""

from __future__ import annotations

from cli.errors import UsageError
from cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, KeyFile, Timeout, Url, connect


def mcp(*, url: Url = DEFAULT_URL, key_file: KeyFile = None, timeout: Timeout = DEFAULT_TIMEOUT) -> None:
    """Let an assistant read the fleet, through standard input and output.

    A server of the Model Context Protocol, which the assistant's program starts. Its tools read status, why,
    events, drift, plans, rollouts, costs and health with your own sign-in; none of them changes anything.
    """
    try:
        from cli.commands.run.mcp_server import server
    except ImportError as error:
        remedy = "install it: `uv tool install 'roadstead[mcp]'`, or the same with pipx"
        raise UsageError(f"this command needs the library mcp; {remedy}") from error
    with connect(url, key_file, timeout) as api:
        server(api).run()
