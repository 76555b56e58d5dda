"""What ``make up`` prints: the next commands, ready to copy.

At most 80 columns wide while the path of the state folder is short.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import ROOT, USUAL_PORTS

EXAMPLE = ROOT / "examples" / "fleet"
CLUSTER = "atlantic-aks"
"""A cluster of the example fleet."""


def guide(cloud: LocalCloud, here: Path) -> str:
    """Return what to do next with a running cloud, with paths relative to the folder ``here``."""
    logs = _shown(cloud.state / "logs", here)
    lines = ["The local cloud is running. Ctrl-C stops it and discards everything in it."]
    if not cloud.options.functions:
        lines += ["", "Start the functions against it:", *_indented(_start_functions(cloud, here))]
    lines += [
        "",
        *_push_fleet(cloud, here),
        "",
        "Watch the fleet, and inspect a cluster when it is Ready:",
        *_indented(_inspect(cloud, here)),
        "",
        f"Open the console in a browser, and sign in as admin: {cloud.urls.functions}/",
        f"The API is {cloud.urls.functions}/api/clusters.",
        f"Logs and the requests to Azure, Kubernetes and GitHub: {logs}",
    ]
    return "\n".join(lines)


def _start_functions(cloud: LocalCloud, here: Path) -> Iterator[str]:
    yield f"cp -i {_shown(cloud.state / 'local.settings.json', here)} {_shown(ROOT, here)}"
    port = cloud.ports["functions"]
    yield "func start" if port == USUAL_PORTS["functions"] else f"func start --port {port}"


def _push_fleet(cloud: LocalCloud, here: Path) -> Iterator[str]:
    if (here / "fleet" / ".git").is_dir():
        yield "Push the fleet of the last run, in another terminal:"
        yield from _indented([f"git -C fleet push {cloud.remote} HEAD:main"])
        return
    yield "Push a fleet, in another terminal; git warns that the repository is empty:"
    yield from _indented(
        [
            f"git clone {cloud.remote} fleet",
            f"cp -r {_shown(EXAMPLE, here)}/. fleet/",
            "git -C fleet add -A",
            'git -C fleet commit -q -m "A fleet"',
            "git -C fleet push origin HEAD:main",
        ]
    )


def _inspect(cloud: LocalCloud, here: Path) -> Iterator[str]:
    if cloud.ports["functions"] != USUAL_PORTS["functions"]:
        yield f"export ROADSTEAD_URL={cloud.urls.functions}"
    yield f"export ROADSTEAD_KEY={cloud.settings['API_KEY_ADMIN']}"
    yield f"{_shown(Path(sys.executable).with_name('roadstead'), here)} status --watch"
    yield f"kubectl --kubeconfig {_shown(cloud.state / 'kubeconfigs', here)}/{CLUSTER}.yaml \\"
    yield "    get kustomizations -A"


def _indented(lines: Iterator[str] | list[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _shown(path: Path, here: Path) -> str:
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
