"""The demo: push the example fleet, change it, remove a cluster; each with its plan and its result."""

from __future__ import annotations

import textwrap
import time
from collections import Counter
from typing import Any

from kubernetes.client import CoreV1Api, CustomObjectsApi
from kubernetes.config import new_client_from_config
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.fleet_api.client import Api
from localcloud.azure_devops.devops_json import ORGANIZATION
from localcloud.demo.checkout import Checkout
from localcloud.demo.follow import follow, wait_for_plan
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import DEVOPS, ROOT
from shared.language.pin import short_revision

ATLANTIC = "clusters/atlantic-aks/cluster.yaml"
PACIFIC = "clusters/pacific-aks/cluster.yaml"
_TOGETHER = "\N{NO-BREAK SPACE}"
"""What no line breaks at: between a number and what it counts."""
KUSTOMIZATIONS = ("kustomize.toolkit.fluxcd.io", "v1", "kustomizations")
ON_GITHUB, ON_DEVOPS = (
    "https://github.com/example/fleet",
    f"https://dev.azure.com/{ORGANIZATION}/example/_git/fleet",
)
BATCH = """\
  location: eastus
  nodePools:
    - name: batch
      vmSize: Standard_D16s_v5
      count: 2
      nodeTaints: ["workload=batch:NoSchedule"]
"""


def play(cloud: LocalCloud, console: Console) -> None:
    """Run the whole demo; raise NotReached, PartFailed or GitFailed when a step fails."""
    began = time.monotonic()
    console.print(f"Watch it in the console, as admin: {cloud.urls.functions}/")
    with Api(cloud.urls.functions, cloud.settings["API_KEY_ADMIN"]) as api:
        story = _Story(cloud, console, api)
        story.push_the_example()
        story.show_a_cluster("atlantic-aks")
        story.change_node_pools()
        story.remove_a_cluster()
        story.sum_up(time.monotonic() - began)


class _Story:
    def __init__(self, cloud: LocalCloud, console: Console, api: Api) -> None:
        self.cloud, self.console, self.api = cloud, console, api
        self.checkout = Checkout(cloud.remote, cloud.state / "checkout")

    def push_the_example(self) -> None:
        self._head("1. An operator pushes a fleet of three clusters")
        self._print(f"git push  {self.cloud.remote}")
        self.checkout.copy(ROOT / "examples" / "fleet")
        if self.cloud.options.git_host == DEVOPS:
            self.checkout.replace("fleet.yaml", ON_GITHUB, ON_DEVOPS)
        self._carry_out("The example fleet")

    def show_a_cluster(self, name: str) -> None:
        self._head(f"2. The nodes, namespaces and Kustomizations of {name}")
        kubeconfig = self.cloud.state / "kubeconfigs" / f"{name}.yaml"
        client = new_client_from_config(str(kubeconfig))
        try:
            self._show(CoreV1Api(client), CustomObjectsApi(client))
        finally:
            client.close()
        self._print("With make up: kubectl --kubeconfig .localcloud/kubeconfigs/NAME.yaml get ns")

    def _show(self, core: CoreV1Api, custom: CustomObjectsApi) -> None:
        nodes = [node.metadata for node in core.list_node().items if node.metadata]
        pools = Counter((node.labels or {}).get("kubernetes.azure.com/agentpool", "?") for node in nodes)
        grid = Table.grid(padding=(0, 2))
        grid.add_row("nodes", ", ".join(f"{n} in {pool}" for pool, n in sorted(pools.items())))
        names = [str(item.metadata.name) for item in core.list_namespace().items if item.metadata]
        grid.add_row("namespaces", ", ".join(sorted(names)))
        listed: Any = custom.list_cluster_custom_object(*KUSTOMIZATIONS)
        for item in listed["items"]:
            named = item["metadata"]
            grid.add_row("Kustomization", f"{named['namespace']}/{named['name']}: {_ready(item)}")
        self.console.print(Padding(grid, (0, 0, 0, 2), expand=False))

    def change_node_pools(self) -> None:
        self._head("3. A commit adds a node pool to one cluster and scales another")
        self.checkout.replace(ATLANTIC, "  location: eastus\n", BATCH)
        self.checkout.replace(PACIFIC, "count: 3\n", "count: 4\n")
        self._carry_out("Add a batch pool to atlantic-aks, scale pacific-aks")

    def remove_a_cluster(self) -> None:
        self._head("4. A commit removes a cluster's folder")
        self.checkout.remove("clusters/sargasso-aks")
        self._carry_out("Retire sargasso-aks")

    def sum_up(self, seconds: float) -> None:
        self._head("Writes to Azure")
        writes = Counter(r["accepted"] for r in self.cloud.requests("arm") if "accepted" in r)
        written = ", ".join(f"{count}{_TOGETHER}{kind}" for kind, count in sorted(writes.items()))
        for part in textwrap.wrap(written, self.console.width - 2, break_on_hyphens=False):
            self._print(part.replace(_TOGETHER, " "))
        self._print(f"Three commits in {seconds:.0f} s")

    def _carry_out(self, message: str) -> None:
        """Commit, push, show the plan, and follow it to its end."""
        commit = self.checkout.push(message)
        self._print(f"commit {commit[:8]}: {message}")
        plan = wait_for_plan(self.api, commit, self.cloud)
        self._print(f"plan: {plan['summary']}")
        for item in plan["items"]:
            if item["action"] != "unchanged":
                self._print(f"  {item['action']:<7} {item['cluster']}{_changes(item)}")
        description = follow(self.api, commit, self.cloud, self.console)
        self.console.print(f"  [green]commit status: success[/]  {description}")

    def _head(self, text: str) -> None:
        self.console.print(f"\n[bold]{text}[/]")

    def _print(self, text: str) -> None:
        self.console.print(Padding(Text(text), (0, 0, 0, 2), expand=False))


def _changes(item: dict[str, Any]) -> str:
    changes = [
        f"{c['path'].removeprefix('spec.')} {c['old'] or '(none)'} -> {c['new'] or '(none)'}"
        for c in item["changes"]
    ]
    return f"  {'; '.join(changes)}" if changes else ""


def _ready(item: dict[str, Any]) -> str:
    conditions = item.get("status", {}).get("conditions", ())
    messages = [str(c["message"]) for c in conditions if c["type"] == "Ready"]
    if not messages:
        return "not reconciled yet"
    text, _, revision = messages[0].rpartition(" ")
    return f"{text} {short_revision(revision)}".strip()
