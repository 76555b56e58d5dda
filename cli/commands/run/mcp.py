"""``roadstead mcp``: lets an assistant read the fleet, as a server of the Model Context Protocol."""

from __future__ import annotations

from cli.errors import UsageError
from cli.options import Address


def mcp(address: Address) -> None:
    """Let an assistant read the fleet, through standard input and output.

    A server of the Model Context Protocol, which the assistant's program starts. Its tools read status, why,
    events, drift, plans, rollouts, costs and health with your own sign-in; none of them changes anything.
    """
    try:
        from cli.commands.run.mcp_server import server
    except ImportError as error:
        remedy = "install it: `uv tool install 'roadstead[mcp]'`, or the same with pipx"
        raise UsageError(f"this command needs the library mcp; {remedy}") from error
    with address.connect() as api:
        server(api).run()
