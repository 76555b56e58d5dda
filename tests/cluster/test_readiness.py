"""Whether a cluster is ready for the upgrade of a commit, by what was read of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared.azure.availability.offered import AzureQuota, Offer, Size
from shared.azure.availability.upgrade_room import UpgradeRoom
from shared.azure.running_versions import PoolVersions, RunningVersions
from shared.cluster.findings.readiness import ReadinessState, readiness_of
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import ClusterObservation
from shared.kubernetes.readiness.observation import Observation, PoolNodes
from shared.plan.differences import differences
from shared.plan.plan import Action, Item
from shared.rollouts.candidates import own_versions_of, upgrade_of
from tests.support.cluster_records import NOW, record
from tests.support.desired_clusters import desired, with_field

SIZE = "Standard_D4s_v5"
FULL = UpgradeRoom(Offer(None, [], {SIZE.lower(): Size("family", 4)}, {"family": AzureQuota(100, 100)}))
ROOM = UpgradeRoom(Offer(None, [], {SIZE.lower(): Size("family", 4)}, {"family": AzureQuota(0, 100)}))


def spec(version: str, own: str = "") -> dict[str, Any]:
    apps = {"name": "apps", "vmSize": SIZE, "count": 3, **({"orchestratorVersion": own} if own else {})}
    system = {"name": "system", "mode": "System", "vmSize": SIZE, "count": 1, "orchestratorVersion": "1.33"}
    changed = with_field(desired("one"), "nodePools", [system, apps])
    return dict(with_field(changed, "kubernetesVersion", version).document()["spec"])


def runs(before: dict[str, Any], plane: str, nodes: str) -> ClusterRecord:
    """Return the record of a cluster with this spec, and what it and its pool apps run."""
    running = RunningVersions(plane, pools={"apps": PoolVersions(nodes)})
    base = record()
    document = {**base.document, "spec": before}
    return replace(base, document=document, observation=ClusterObservation(running=running))


@pytest.mark.parametrize(
    ("before", "after", "runs_now", "room", "state"),
    [
        (("1.33", "1.30"), ("1.36", "1.34"), ("1.33.5", "1.30.9"), ROOM, ReadinessState.READY),
        (("1.33", "1.30"), ("1.36", ""), ("1.33.5", "1.30.9"), ROOM, ReadinessState.READY),
        (("1.33", "1.30"), ("1.34", "1.30"), ("1.33.5", "1.30.9"), ROOM, ReadinessState.BLOCKED),
        (("1.33", "1.33"), ("1.34", "1.34"), ("1.33.5", "1.33.5"), FULL, ReadinessState.BLOCKED),
        (("1.33", "1.33"), ("1.34", "1.33"), ("1.33.5", "1.33.5"), FULL, ReadinessState.READY),
        (("1.33", ""), ("1.34", ""), ("1.34.1", "1.33.5"), FULL, ReadinessState.BLOCKED),
        (("1.33", ""), ("1.34", ""), ("1.34.1", "1.34.1"), FULL, ReadinessState.READY),
    ],
)
def test_a_pool_is_judged_by_the_version_that_the_commit_gives_it(
    before: tuple[str, str],
    after: tuple[str, str],
    runs_now: tuple[str, str],
    room: UpgradeRoom,
    state: ReadinessState,
) -> None:
    """Whether it stays too far behind, and whether its surge has room."""
    old, known = spec(*before), runs(spec(*before), *runs_now)
    changes = tuple(differences({"spec": old}, {"spec": spec(*after)}, known.running))
    item = Item("one", Action.UPDATE, 2, changes=changes)
    seen = Observation(NOW, nodes=(PoolNodes("apps", f"v{runs_now[1]}", 3),))
    to = upgrade_of(item) or after[0]
    assert readiness_of(known, seen, room, to, NOW, own_versions_of(item)).state is state
