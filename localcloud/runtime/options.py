"""The options of a local cloud, its ports, and the settings of the functions.

The settings are those of ``local.settings.example.json``, with the ports and paths of this cloud put in: that
file is the only list, and a plain copy of it works with ``func start`` while the usual ports are free.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.azure.world.catalog import SUBSCRIPTION
from localcloud.azure_devops.devops_json import ORGANIZATION
from localcloud.common.programs import program

DEVOPS = "azure-devops"
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "local.settings.example.json"

USUAL_PORTS: Mapping[str, int] = {
    "functions": 7071,
    "blob": 10000,
    "queue": 10001,
    "table": 10002,
    "servicebus": 5672,
    "arm": 8443,
    "identity": 8444,
    "github": 8445,
    "teams": 8446,
    "vault": 8447,
    "registry": 8448,
    "monitor": 8449,
}


@dataclass(frozen=True)
class Options:
    """The options.

    ``create_seconds`` is how long Azure creates a cluster, with other operations in proportion;
    ``lock_seconds`` is how long Service Bus locks a session. A schedule of None is that of the example
    settings. ``subscriptions`` exist in Azure, and no others. ``usual_ports`` prefers the documented ports;
    without it, and when one is taken, a free one is used. ``extra`` settings win over all others.
    ``worker`` is the Python that has Microsoft's worker for the functions in ``app``, "" for the usual one.
    ``modules`` run a part in place of the local cloud's own module: {"azure": "a.module"}. ``roles`` runs the
    functions as the apps that it names, each with an identity whose role has only these actions:
    {"worker": ["*/read"]}. ``existing`` are clusters outside Azure, by name: the kubeconfig of each is in the
    vault of the example fleet, as the secret NAME-kubeconfig.
    """

    create_seconds: float = 4.0
    lock_seconds: float = 10.0
    plan_schedule: str | None = None
    resend_schedule: str | None = None
    app: Path = ROOT
    worker: str = ""
    functions: bool = True
    subscriptions: tuple[str, ...] = (SUBSCRIPTION,)
    usual_ports: bool = False
    extra: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, Sequence[str]] = field(default_factory=dict)
    existing: tuple[str, ...] = ()

    @property
    def git_host(self) -> str:
        """What has the fleet repository."""
        return self.extra.get("GIT_HOST", "github")


@dataclass(frozen=True)
class Urls:
    """The addresses of the parts."""

    functions: str
    arm: str
    identity: str
    github: str
    registry: str

    @classmethod
    def of(cls, ports: Mapping[str, int]) -> Urls:
        """Return the addresses for the ports."""
        return cls(
            functions=f"http://127.0.0.1:{ports['functions']}",
            arm=f"https://127.0.0.1:{ports['arm']}",
            identity=f"http://127.0.0.1:{ports['identity']}",
            github=f"http://127.0.0.1:{ports['github']}",
            registry=f"https://127.0.0.1:{ports['registry']}",
        )


def compose_settings(state: Path, ports: Mapping[str, int], options: Options) -> dict[str, str]:
    """Return the functions' settings for a cloud with these ports."""
    moved = {str(usual): str(ports[name]) for name, usual in USUAL_PORTS.items()}

    def here(match: re.Match[str]) -> str:
        return f"127.0.0.1:{moved.get(match[1], match[1])}"

    example: dict[str, str] = json.loads(EXAMPLE.read_text())["Values"]
    values = {name: re.sub(r"127\.0\.0\.1:(\d+)", here, value) for name, value in example.items()}
    if options.git_host == DEVOPS:
        project, _, name = values["GITHUB_REPOSITORY"].partition("/")
        place = f"{ORGANIZATION}/{project}/_git/{name}"
        values["GIT_URL"] = f"http://127.0.0.1:{ports['github']}/{place}"
        values["FLUX_GIT_HOST"] = "dev.azure.com"
    values["REQUESTS_CA_BUNDLE"] = str(state / "ca.pem")
    values["KUSTOMIZE"] = program("kubectl") or ""
    if options.plan_schedule is not None:
        values["PLAN_SCHEDULE"] = options.plan_schedule
    if options.resend_schedule is not None:
        values["RESEND_SCHEDULE"] = options.resend_schedule
    return {**values, **options.extra}


def child_environment(environ: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for the parts: without anything that would win over this cloud's settings.

    A shell often has a GITHUB_TOKEN, or AZURE_* names that lead ``DefaultAzureCredential`` elsewhere.
    """
    own = {name.upper() for name in settings}
    inherited = {
        name: value
        for name, value in environ.items()
        if name.upper() not in own and not name.upper().startswith(("AZURE_", "IDENTITY_", "MSI_"))
    }
    direct = ",".join(filter(None, [environ.get("NO_PROXY"), "127.0.0.1", "localhost"]))
    path = os.pathsep.join(filter(None, [str(ROOT), environ.get("PYTHONPATH")]))
    return {**inherited, "NO_PROXY": direct, "no_proxy": direct, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path}
