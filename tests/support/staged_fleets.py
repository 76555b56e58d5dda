"""A fleet in memory whose changes go through stages."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.rollout import act_on_rollout
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import SOURCE
from shared.language.pin import Pin
from shared.rollouts.rollout import Rollout
from shared.rollouts.rollout_acts import ActKind
from tests.support import fleet_files
from tests.support.pipeline_runs import cloud_with, phases, record_of

DEV, PROD = ("a1", "a2", "a3"), ("b1", "b2", "b3", "b4")
DEFAULT = ""
"""A fleet without ``spec.rollout``."""
APPROVED_STAGES = """\
  rollout:
    stages:
      - {name: development, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - name: production
        select: {environments: [production]}
        approval: true
        groups: [{maxConcurrency: "100%"}]
"""
"""Production waits for an approval."""
FREEZE = """\
  rollout:
    freezes:
      - name: holidays
        select: {{environments: [production]}}
        starts: "{starts}"
        ends: "{ends}"
        owner: platform
        reason: nobody is here
"""
"""A freeze of production, for ``format`` with ``starts`` and ``ends``."""
ALL_AT_ONCE = fleet_files.ALL_AT_ONCE.decode()


def staged(rollout: str = DEFAULT, extra: str = "", only: tuple[str, ...] = DEV + PROD) -> dict[str, bytes]:
    """Return a fleet with three clusters in development and four in production; ``extra`` is in each spec."""
    files = fleet_files.fleet(*DEV, *PROD, budget=9)
    files["fleet.yaml"] += rollout.encode()
    for name in (*DEV, *PROD):
        path = f"clusters/{name}/cluster.yaml"
        environment = "development" if name in DEV else "production"
        own = f"  environment: {environment}\n  deletionProtection: false\n" + (extra if name in only else "")
        files[path] = files[path].replace(b"spec:\n", f"spec:\n{own}".encode())
    return files


def tags(value: str) -> str:
    """Return a change of a cluster's spec."""
    return f"  tags: {{change: {value}}}\n"


def ready_fleet(rollout: str = DEFAULT) -> MemoryCloud:
    """Return the cloud with every cluster Ready."""
    cloud = cloud_with(staged(rollout))
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)
    return cloud


def changed(cloud: MemoryCloud, value: str) -> set[str]:
    """Return the clusters that have a change in Azure."""
    found = (
        record for record in cloud.state.clusters() if record.document["spec"]["tags"].get("change") == value
    )
    return {record.name for record in found}


def rollout_of(cloud: MemoryCloud, commit: str) -> Rollout:
    """Return the record of a rollout."""
    found = cloud.state.rollout(commit)
    assert found is not None
    return found


def act(cloud: MemoryCloud, commit: str, kind: str, subject: str = "") -> None:
    """Let an operator act on a rollout."""
    result = act_on_rollout(commit, ActKind(kind), subject, "ops", cloud.ports, reason="because")
    assert result.status == 202, result.body


NAMESPACE = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: monitoring}\n"


def with_file(name: str, content: bytes, files: dict[str, bytes] | None = None) -> dict[str, bytes]:
    """Return the fleet with one more manifest in the folder that every cluster applies."""
    return (files or staged()) | {f"platform/{name}": content}


def pin(cloud: MemoryCloud, name: str) -> Pin:
    """Return the pin in the record of a cluster."""
    record = record_of(cloud, name)
    found = Pin.of(record.document)
    assert found is not None
    return found


def pulls(cloud: MemoryCloud, name: str) -> str:
    """Return the branch that Flux pulls on a cluster, as the cluster has it."""
    record = record_of(cloud, name)
    live = cloud.kubernetes.connect(record.desired.id).get(SOURCE)
    assert live is not None
    return str(live["spec"]["ref"]["branch"])


def on(cloud: MemoryCloud, commit: str) -> set[str]:
    """Return the clusters whose Flux pulls a commit."""
    return {name for name in (*DEV, *PROD) if pulls(cloud, name) == f"roadstead/pin/example/{commit}"}
