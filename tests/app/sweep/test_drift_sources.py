"""Where git sets a value that differs: the file and the line, read for a report and not for each cluster."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app.sweep import conclusions
from shared.cluster.failures.errors import Unavailable
from shared.cluster.record import ClusterRecord
from tests.support.one_cluster import ONE, files, pool, ready, record
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around, calls_of
from tests.support.sweeps import drifted, several, sweep, tag_by_hand

pytestmark = pytest.mark.lives


def sources_of(record: ClusterRecord) -> dict[str, str]:
    """Return where git sets each field that differs."""
    return (
        {field.path: field.source for field in record.divergence.drift.fields}
        if record.divergence.drift
        else {}
    )


def test_a_value_has_the_line_of_the_file_that_sets_it_be_it_the_cluster_or_its_class() -> None:
    cloud = ready()
    own = files(pool(count=2) + "  class: small\n  tags: {team: a}\n")
    shared = b"""\
apiVersion: roadstead.dev/v1alpha1
kind: ClusterClass
metadata: {name: small}
spec:
  tags:
    cost: a
"""
    commit = push(cloud, own | {"classes/small.yaml": shared})
    cloud.run()
    cloud.azure.interventions.scale(ONE, "apps", 5)
    tag_by_hand(cloud, ONE, cost="b", team="b", own="x")
    read = calls_of(cloud, "git_host", "tree")
    sweep(cloud)
    assert sources_of(record(cloud)) == {
        "nodePools[apps].count": "clusters/one/cluster.yaml:11",
        "tags.cost": "classes/small.yaml:6",
        "tags.team": "clusters/one/cluster.yaml:13",
        "tags.own": "",
    }
    assert read == [commit]


def test_a_pool_that_somebody_deletes_has_the_line_of_the_pool() -> None:
    cloud = ready(pool(count=2))
    cloud.azure.delete_pool(ONE, "apps")
    sweep(cloud)
    assert sources_of(record(cloud)) == {"nodePools[apps]": "clusters/one/cluster.yaml:11"}


def test_drift_that_stays_is_looked_up_once_and_no_drift_never() -> None:
    cloud = ready("  tags: {cost: a}\n")
    read = calls_of(cloud, "git_host", "tree")
    sweep(cloud)
    assert read == []
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    sweep(cloud)
    assert len(read) == 1
    push(cloud, files("\n\n  tags: {cost: a}\n"))
    cloud.run()
    tag_by_hand(cloud, ONE, cost="c")
    read.clear()
    sweep(cloud)
    assert (drifted(record(cloud)), read) == ({"tags.cost": ('"a"', '"c"')}, [])


def test_a_repository_that_does_not_answer_hides_no_drift_and_is_asked_again() -> None:
    cloud = ready("  tags: {cost: a}\n")
    tag_by_hand(cloud, ONE, cost="b")
    tree = cloud.ports.git_host.tree
    around(cloud, "git_host", tree=_fails)
    sweep(cloud)
    assert sources_of(record(cloud)) == {"tags.cost": ""}
    around(cloud, "git_host", tree=tree)
    since = record(cloud).divergence.drift
    sweep(cloud)
    assert sources_of(record(cloud)) == {"tags.cost": "clusters/one/cluster.yaml:11"}
    after = record(cloud).divergence.drift
    assert since is not None
    assert after is not None
    assert after.fields[0].since == since.fields[0].since


def _fails(_: str) -> Any:
    raise Unavailable("GitHub did not answer")


def test_one_message_reads_a_bounded_number_of_manifests_and_the_next_sweep_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conclusions, "MOST_MANIFESTS", 2)
    cloud = several("  tags: {cost: a}\n")
    for cluster in cloud.state.clusters():
        tag_by_hand(cloud, cluster.desired.id, cost="b")
    looked_up = []
    for _ in range(2):
        sweep(cloud)
        looked_up.append([bool(sources_of(cluster)["tags.cost"]) for cluster in cloud.state.clusters()])
    assert looked_up == [[True, True, False], [True, True, True]]
