"""What ``make up`` says: the commands with which a person goes on, each to be typed as it stands.

At most 80 columns wide, as long as the state folder's path is short.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import ROOT, USUAL_PORTS

EXAMPLE = ROOT / "examples" / "fleet"
CLUSTER = "atlantic-aks"
"""A cluster of the example."""


def guide(cloud: LocalCloud, here: Path) -> str:
    """Return what to do next with a cloud that runs, for somebody in the folder ``here``."""
    logs = _shown(cloud.state / "logs", here)
    lines = ["The local cloud is up. Ctrl-C stops it, and then all that is in it is gone."]
    if not cloud.options.functions:
        lines += ["", "Start the functions against it:", *_indented(_start_functions(cloud, here))]
    lines += [
        "",
        *_push_fleet(cloud, here),
        "",
        "Watch Roadstead at work, and look into a cluster when it is Ready:",
        *_indented(_look(cloud, here)),
        "",
        f"The API is {cloud.urls.functions}/api/clusters",
        f"Logs, and what Azure, Kubernetes and GitHub were asked: {logs}",
    ]
    return "\n".join(lines)


def _start_functions(cloud: LocalCloud, here: Path) -> Iterator[str]:
    yield f"cp -i {_shown(cloud.state / 'local.settings.json', here)} {_shown(ROOT, here)}"
    port = cloud.ports["functions"]
    yield "func start" if port == USUAL_PORTS["functions"] else f"func start --port {port}"


def _push_fleet(cloud: LocalCloud, here: Path) -> Iterator[str]:
    if (here / "fleet" / ".git").is_dir():
        yield "Give it the fleet of last time, in another terminal:"
        yield from _indented([f"git -C fleet push {cloud.remote} HEAD:main"])
        return
    yield "Give it a fleet, in another terminal. Its repository is empty, as git remarks:"
    yield from _indented(
        [
            f"git clone {cloud.remote} fleet",
            f"cp -r {_shown(EXAMPLE, here)}/. fleet/",
            "git -C fleet add -A",
            'git -C fleet commit -q -m "A fleet"',
            "git -C fleet push origin HEAD:main",
        ]
    )


def _look(cloud: LocalCloud, here: Path) -> Iterator[str]:
    if cloud.ports["functions"] != USUAL_PORTS["functions"]:
        yield f"export ROADSTEAD_URL={cloud.urls.functions}"
    yield f"{_shown(Path(sys.executable).with_name('roadstead'), here)} status --watch"
    yield f"kubectl --kubeconfig {_shown(cloud.state / 'kubeconfigs', here)}/{CLUSTER}.yaml \\"
    yield "    get kustomizations -A"


def _indented(lines: Iterator[str] | list[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _shown(path: Path, here: Path) -> str:
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
