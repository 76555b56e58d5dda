"""Tables that were restored from an older moment: what is younger in Azure is neither deleted nor undone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from localcloud.azure.world.arm_resources import Timings
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import take_over
from shared.app.recovery.missed_work import resend_overdue
from shared.cluster.job import ContestKind
from shared.cluster.record import Phase
from shared.ports.azure import GetCluster, GetGroup, PatchCluster, PutCluster, PutPool
from tests.support import fleet_files
from tests.support.one_cluster import ONE, advice, cluster, files, pool, pools, ready, record
from tests.support.pipeline_runs import accepted, phases, push, step_until
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import drifted, sweep, tag_by_hand

PROTECTED = "  deletionProtection: true\n"


def tombstone_and_later_life(*, extra: str = "") -> MemoryCloud:
    """Return a cloud that has a cluster in its second life, with tables of the first one's tombstone."""
    cloud = ready()
    push(cloud, fleet_files.fleet())
    step_until(cloud, lambda: phases(cloud) == {"one": Phase.DELETING})
    older = cloud.state.backup()
    cloud.run()
    assert phases(cloud) == {}
    push(cloud, files(extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    cloud.clock.advance(3600)
    if extra:
        push(cloud, fleet_files.fleet())
        cloud.run(seconds=600)
        assert phases(cloud) == {"one": Phase.READY}
    cloud.state.restore(older)
    return cloud


def restored_before_another_life() -> MemoryCloud:
    """Return a cloud that has a cluster in its second life, with tables that know the first one."""
    cloud = ready()
    older = cloud.state.backup()
    push(cloud, fleet_files.fleet())
    cloud.run()
    push(cloud, files())
    cloud.run()
    cloud.state.restore(older)
    return cloud


def test_a_restored_tombstone_does_not_delete_a_cluster_that_git_has() -> None:
    cloud = tombstone_and_later_life()
    before, life = accepted(cloud), cluster(cloud)["tags"]["roadstead-life"]
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud) == before
    assert record(cloud).life == life


def test_a_restored_tombstone_does_not_delete_the_cluster_of_a_later_life() -> None:
    cloud = tombstone_and_later_life(extra=PROTECTED)
    before = accepted(cloud)
    cloud.run(seconds=1800, until=lambda: False)
    assert accepted(cloud) == before
    contest = record(cloud).job.next_run.contest
    assert contest is not None
    assert contest.kind is ContestKind.LIFE
    assert "the cluster one is not deleted: it was created, or written to, after" in record(cloud).job.reason
    assert "roadstead takeover one" in advice(cloud)
    assert take_over("one", "jo", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetCluster(ONE)) is None
    assert cloud.ports.azure.call(GetGroup(ONE.group)) is None


def test_a_delete_by_the_record_of_an_earlier_life_waits_for_a_takeover() -> None:
    cloud = ready()
    older = cloud.state.backup()
    push(cloud, fleet_files.fleet())
    cloud.run()
    push(cloud, files())
    cloud.run()
    cloud.clock.advance(3600)
    cloud.state.restore(older)
    before = accepted(cloud)
    push(cloud, fleet_files.fleet())
    cloud.run(seconds=1800, until=lambda: False)
    assert accepted(cloud) == before
    assert record(cloud).contested


def test_a_restored_record_learns_the_later_life_before_git_removes_the_cluster() -> None:
    cloud = restored_before_another_life()
    commit = push(cloud, files() | {"README.md": b"the next push"})
    sweep(cloud)
    assert phases(cloud) == {"one": Phase.READY}
    assert record(cloud).commit == commit
    assert record(cloud).life == cluster(cloud)["tags"]["roadstead-life"]
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetCluster(ONE)) is None


def test_what_a_commit_changes_after_a_restore_waits_for_a_person() -> None:
    cloud = restored_before_another_life()
    before, generation = accepted(cloud), record(cloud).generation
    push(cloud, files("  tags: {team: shop}\n"))
    cloud.run(seconds=1200, until=lambda: False)
    assert accepted(cloud) == before
    assert "it differs from git in tags.team" in record(cloud).job.reason
    assert record(cloud).generation > 1_000_000 > generation
    assert take_over("one", "jo", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cluster(cloud)["tags"]["team"] == "shop"


def test_a_sweep_finds_that_a_record_is_older_and_rebuilds_it_without_a_write() -> None:
    cloud = ready()
    older = cloud.state.backup()
    cloud.clock.advance(600)
    push(cloud, files("  tags: {team: shop}\n"))
    cloud.run()
    push(cloud, files() | {"README.md": b"git is as it was, and the cluster is not"})
    cloud.run()
    cloud.state.restore(older)
    before, generation = accepted(cloud), record(cloud).generation
    sweep(cloud)
    cloud.run(seconds=600)
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud) == before
    assert record(cloud).generation > 1_000_000 > generation


def test_a_restored_job_does_not_bring_an_older_spec_back() -> None:
    cloud = ready(pool("Standard_D4s_v5"))
    push(cloud, files(pool("Standard_D8s_v5") + "  tags: {team: shop}\n"))
    step_until(cloud, lambda: record(cloud).generation == 2)
    older = cloud.state.backup()
    cloud.run()
    cloud.clock.advance(600)
    commit = push(cloud, files(pool("Standard_D4s_v5", count=3) + "  tags: {team: books}\n"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    live, profiles = cluster(cloud), pools(cloud)
    cloud.clock.advance(3600)
    cloud.state.restore(older)
    written: list[object] = []
    for kind in (PutCluster, PutPool):
        on_azure(cloud, kind, written.append)
    resend_overdue(cloud.ports)
    while cloud.broker.counts("changes").active:
        cloud.step()
    assert record(cloud).job.reason.startswith("Outdated: ")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert record(cloud).commit == commit
    assert written == []
    assert (cluster(cloud), pools(cloud)) == (live, profiles)


def test_a_deletion_in_azure_that_the_restored_tombstone_does_not_know_is_waited_for() -> None:
    cloud = ready()
    push(cloud, fleet_files.fleet())
    step_until(cloud, lambda: phases(cloud) == {"one": Phase.DELETING})
    older = cloud.state.backup()
    cloud.azure.engine.timings = Timings(delete_cluster=600)
    cloud.run(seconds=60, until=lambda: False)
    cloud.state.restore(older)
    cloud.run()
    assert phases(cloud) == {}
    assert accepted(cloud)["delete", "one"] == 1


def test_a_time_that_a_wrong_clock_wrote_stops_no_delete() -> None:
    cloud = ready()
    tags = {**cluster(cloud)["tags"], "roadstead-job": (cloud.clock() + timedelta(days=30)).isoformat()}
    cloud.ports.azure.call(PatchCluster(ONE, {"tags": tags}, etag=cluster(cloud)["eTag"]))
    cloud.run(seconds=60)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetCluster(ONE)) is None


def test_a_job_that_a_wrong_clock_began_is_not_taken_for_one_that_the_tables_do_not_know() -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.with_ports(lambda ports: replace(ports, clock=lambda: cloud.clock() + timedelta(minutes=10)))
    push(cloud, files())
    step_until(cloud, lambda: phases(cloud) != {})
    cloud.with_ports(lambda ports: replace(ports, clock=cloud.clock))
    cloud.run()
    push(cloud, files("  drift: {action: report}\n"))
    cloud.run()
    assert (phases(cloud), record(cloud).generation) == ({"one": Phase.READY}, 2)
    assert record(cloud).job.started < cloud.clock()
    cloud.clock.advance(900)
    tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    assert record(cloud).generation == 2
    assert drifted(record(cloud)) == {"tags.own": ("", '"x"')}
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
