"""Clusters that an exemption has missing or stopped: shown as they are, and reported nowhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.parts import FIRST_PAGE
from shared.app.api.views.cluster_list import ClusterSelection, names_of_page
from shared.app.api.views.clusters import cluster_detail
from shared.app.api.views.drift import drift_of_cluster, drift_view
from shared.app.api.views.tree import outputs_view
from shared.app.api.views.why import why_view
from shared.app.recovery.missed_work import wake_notifier
from shared.cluster.history import Gaps
from shared.cluster.record import READY
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.measurements import CLUSTERS, of_fleet
from tests.support.notifications import notifying
from tests.support.notified import OPS, kinds, titles
from tests.support.one_cluster import ONE, files, record
from tests.support.pipeline_runs import accepted, cloud_with, push, status
from tests.support.sweeps import delete_by_hand, sweep

pytestmark = pytest.mark.lives

LAST = "2026-01-03"
"""The last day of the exemption; the clock begins on the first."""
AFTERWARDS = datetime(2026, 1, 4, 0, 0, 1, tzinfo=UTC)


def policy(field: str, action: str = "") -> str:
    """Return YAML of a policy with an exemption for a whole cluster."""
    what = f"{field}: {action}, " if action else ""
    rule = f"name: parked, fields: [{field}], action: ignore"
    who = f'owner: team-shop, reason: no season, expires: "{LAST}"'
    return f"  drift: {{{what}rules: [{{{rule}, {who}}}]}}\n"


def fleet(extra: str = "") -> dict[str, bytes]:
    return notifying(files(extra), OPS)


def ready(extra: str = "") -> MemoryCloud:
    cloud = cloud_with(fleet(extra), throttle=False)
    assert shown(cloud) == "Ready"
    return cloud


def stopped(cloud: MemoryCloud) -> None:
    cloud.azure.interventions.stop(ONE)


def deleted(cloud: MemoryCloud) -> None:
    delete_by_hand(cloud, ONE)


def shown(cloud: MemoryCloud) -> str:
    view = cluster_detail("one", cloud.ports)
    assert view is not None
    return str(view["phase"])


def head(cloud: MemoryCloud) -> tuple[str, str]:
    return status(cloud, cloud.state.fleet().commit)


def announced(cloud: MemoryCloud) -> list[tuple[str, bool]]:
    """Return the facts that the route got, and whether each was an end."""
    for _ in range(2):
        wake_notifier(cloud.ports)
        cloud.run(700)
    return [(kind.value, over) for kind, _, over in kinds(cloud)]


def pass_until(cloud: MemoryCloud, moment: datetime) -> None:
    cloud.clock.advance((moment - cloud.clock()).total_seconds())


BOTH = [(stopped, "stoppedCluster", "ClusterStopped"), (deleted, "missingCluster", "ClusterMissing")]


@pytest.mark.parametrize(("change", "field", "found"), BOTH)
def test_an_exempt_cluster_is_shown_as_it_is_and_no_alarm_until_the_exemption_ends(
    change: Callable[[MemoryCloud], None], field: str, found: str
) -> None:
    cloud = ready(policy(field))
    change(cloud)
    sweep(cloud)
    assert (shown(cloud), record(cloud).finding) == ("Exempt", found)
    ready_now = record(cloud).condition(READY)
    assert ready_now is not None
    assert (ready_now.status, ready_now.reason) == (False, found)
    assert head(cloud) == ("success", "0 of 1 clusters in sync, 1 exempt (1 create)")
    assert (drift_view(cloud.ports, FIRST_PAGE)["count"], announced(cloud)) == (0, [])
    one = drift_of_cluster("one", cloud.ports)
    assert one is not None
    assert one["clusters"] == []
    counted = {document.attributes["phase"]: document.value for document in measured(cloud)}
    assert (counted["Failed"], counted["Exempt"]) == (0, 1)
    assert named_in(cloud, Phase.EXEMPT) == ["one"]
    outputs = outputs_view("one", cloud.ports)
    assert outputs is not None
    assert outputs["phase"] == "Exempt"
    assert named_in(cloud, Phase.FAILED) == []
    why = why_view("one", cloud.ports)
    assert why is not None
    assert "the exemption parked of team-shop ignores that until 2026-01-03: no season" in why["doing"]
    assert why["suggestedAction"] == ""
    pass_until(cloud, AFTERWARDS)
    sweep(cloud)
    assert (shown(cloud), record(cloud).finding, head(cloud)[0]) == ("Failed", found, "failure")
    assert drift_view(cloud.ports, FIRST_PAGE)["count"] == 1
    assert announced(cloud) == [("lost", False)]


def measured(cloud: MemoryCloud) -> list:  # type: ignore[type-arg]
    found = of_fleet(cloud.state.summaries(details=True), Gaps())
    return [measurement for measurement in found if measurement.metric is CLUSTERS]


def named_in(cloud: MemoryCloud, phase: Phase) -> list[str]:
    selection = ClusterSelection(phases=frozenset({phase}))
    return list(names_of_page(selection.of(cloud.state.summaries()), selection, FIRST_PAGE)[0])


def test_an_exemption_counts_for_more_than_what_the_policy_corrects_and_only_until_it_ends() -> None:
    cloud = ready(policy("missingCluster", "recreate"))
    deleted(cloud)
    for _ in range(2):
        sweep(cloud)
    assert (shown(cloud), accepted(cloud)["create", "one"]) == ("Exempt", 1)
    pass_until(cloud, AFTERWARDS)
    sweep(cloud)
    assert (shown(cloud), accepted(cloud)["create", "one"]) == ("Ready", 2)
    cloud = ready(policy("stoppedCluster", "start"))
    stopped(cloud)
    for _ in range(2):
        sweep(cloud)
    assert (shown(cloud), record(cloud).job.active) == ("Exempt", False)
    pass_until(cloud, AFTERWARDS)
    sweep(cloud)
    assert shown(cloud) == "Ready"


def test_the_job_of_a_commit_leaves_an_exempt_cluster_as_it_is() -> None:
    cloud = ready(policy("missingCluster", "recreate"))
    deleted(cloud)
    push(cloud, fleet(policy("missingCluster", "recreate") + "  tags: {cost: a}\n"))
    cloud.run()
    assert (shown(cloud), accepted(cloud)["create", "one"]) == ("Exempt", 1)
    assert (head(cloud)[0], announced(cloud)) == ("success", [])
    cloud = ready(policy("stoppedCluster", "start"))
    stopped(cloud)
    push(cloud, fleet(policy("stoppedCluster", "start") + "  tags: {cost: a}\n"))
    cloud.run(seconds=3600, until=lambda: False)
    assert (shown(cloud), record(cloud).needs_action) == ("Suspended", False)
    assert "the cluster is stopped; the exemption parked of team-shop" in record(cloud).job.reason
    sweep(cloud)
    assert announced(cloud) == []
    pass_until(cloud, AFTERWARDS)
    cloud.run(seconds=3600, until=lambda: shown(cloud) == "Ready")
    assert shown(cloud) == "Ready"


@pytest.mark.parametrize(("change", "field", "found"), BOTH)
def test_an_exemption_that_comes_after_the_report_ends_it(
    change: Callable[[MemoryCloud], None], field: str, found: str
) -> None:
    cloud = ready()
    change(cloud)
    sweep(cloud)
    assert (announced(cloud), head(cloud)[0], record(cloud).finding) == ([("lost", False)], "failure", found)
    push(cloud, fleet(policy(field)))
    cloud.run(seconds=3600, until=lambda: False)
    sweep(cloud)
    assert shown(cloud) in ("Exempt", "Suspended")
    assert head(cloud)[0] != "failure"
    assert announced(cloud) == [("lost", False), ("lost", True)]
    assert titles(cloud)[-1] == "example: 1 cluster: lost became exempt in eastus"


def test_a_stopped_cluster_that_is_exempt_is_ready_again_once_somebody_starts_it() -> None:
    cloud = ready(policy("stoppedCluster"))
    stopped(cloud)
    sweep(cloud)
    cloud.azure.interventions.start(ONE)
    sweep(cloud)
    assert (shown(cloud), record(cloud).observation.loss, head(cloud)[0]) == ("Ready", None, "success")


def test_an_exemption_hides_no_job_that_had_failed_before() -> None:
    cloud = ready(policy("stoppedCluster"))
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
    push(cloud, fleet("    - {name: apps, vmSize: Standard_D4s_v5, count: 2}\n" + policy("stoppedCluster")))
    cloud.run()
    assert (shown(cloud), record(cloud).finding) == ("Failed", "")
    stopped(cloud)
    sweep(cloud)
    assert (shown(cloud), record(cloud).finding, head(cloud)[0]) == ("Failed", "ClusterStopped", "failure")
