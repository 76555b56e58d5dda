"""Expired records are removed, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.housekeeping import purge_expired
from shared.cluster.failures.errors import Unavailable
from shared.cluster.history import Act
from shared.cluster.job import Contest, ContestKind
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.language.pin import PIN_BRANCHES, pin_branches
from shared.ports import FleetConfig, History, Timing
from shared.ports.state.fleet import Recovery
from tests.support import fleet_files
from tests.support.pipeline_runs import cloud_with, phases, push
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives

PINS = pin_branches("example")
VERSION = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: version, namespace: default}}
data: {{version: "{}"}}
"""


def test_events_of_a_deleted_cluster_stay_for_a_month() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two"))
    cloud.clock.advance(90 * 86400)
    push(cloud, fleet_files.fleet("two"))
    cloud.run()
    assert purge_expired(cloud.ports)["events"] == 0, "the older ones stay as long as the last one"
    cloud.clock.advance(29 * 86400)
    assert purge_expired(cloud.ports)["events"] == 0
    cloud.clock.advance(2 * 86400)
    assert purge_expired(cloud.ports)["events"] > 0
    assert not cloud.state.events("one", 5)
    assert cloud.state.events("two", 5)
    assert cloud.state.plan(cloud.state.fleet().commit)


def test_acts_stay_for_the_days_of_the_setting() -> None:
    cloud = MemoryCloud()
    cloud.state.save_act(Act("a", cloud.clock(), "approve", "c0ffee", "ada"))
    cloud.clock.advance(364 * 86400)
    assert purge_expired(cloud.ports)["acts"] == 0
    cloud.clock.advance(2 * 86400)
    assert purge_expired(cloud.ports)["acts"] == 1


def test_a_failed_removal_delays_no_other() -> None:
    cloud = MemoryCloud()
    cloud.state.remember_delivery("old", cloud.clock())
    cloud.clock.advance(8 * 86400)

    class Broken:
        def __getattr__(self, name: str) -> object:
            if name == "prune_events_before":
                raise Unavailable("Table Storage did not answer")
            return getattr(cloud.state, name)

    broken: object = Broken()
    removed = purge_expired(replace(cloud.ports, state=broken))  # type: ignore[arg-type]
    kept = ("plans", "blobs", "acts", "notifications", "rollouts")
    others = (
        *kept,
        "changes by hand",
        "readings",
        "days of own operations",
        "dead letters",
        "branches of pins",
        "plans of pull requests",
    )
    assert removed == {"deliveries": 1} | dict.fromkeys(others, 0)


def test_manifests_that_the_branch_no_longer_has_are_removed() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two"))
    old = cloud.repository.tree(cloud.state.fleet().commit)
    assert purge_expired(cloud.ports)["blobs"] == 0
    push(cloud, fleet_files.fleet("two"))
    cloud.run()
    assert purge_expired(cloud.ports)["blobs"] == 1
    current = cloud.repository.tree(cloud.state.fleet().commit)
    (removed,) = {entry.sha for entry in old} - {entry.sha for entry in current}
    assert cloud.state.blobs([removed]) == {}


def test_a_busy_cluster_has_about_the_configured_number_of_events() -> None:
    config = FleetConfig(
        "example", "example/fleet", timing=Timing(lease_seconds=20, poll_seconds=5), history=History(5)
    )
    cloud = MemoryCloud(config=config)
    for count in range(1, 30):
        files = fleet_files.fleet("one")
        files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=1 + count % 4)
        push(cloud, files)
        cloud.run()
    assert 5 <= len(cloud.state.events("one", 1000)) < 60


def test_every_step_has_events_with_its_start_and_its_end() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    ended = [event for event in cloud.state.events("one", 100) if event.reason in ("StepDone", "Ready")]
    steps = [event.step for event in reversed(ended)]
    assert steps[:3] == ["resource-group", "cluster", "node-pools"]
    assert steps[-1] == "verify"
    assert all(event.started and event.started <= event.at for event in ended)


def test_no_record_is_read_as_a_whole_to_know_which_clusters_exist() -> None:
    cloud = cloud_with(fleet_files.following_branch(fleet_files.fleet("one")))
    whole = list[str]()

    def clusters() -> list[ClusterRecord]:
        whole.append("all of them")
        return []

    around(cloud, "state", clusters=clusters)
    purge_expired(cloud.ports)
    assert whole == []
    assert cloud.state.events("one", 5)


def test_a_pin_that_no_cluster_has_or_had_before_is_no_branch_any_more() -> None:
    cloud, commits = MemoryCloud(), list[str]()
    for version in range(3):
        files = fleet_files.fleet("one")
        files["platform/version.yaml"] = VERSION.format(version).encode()
        commits.append(push(cloud, files))
        cloud.run()
    pins = [f"{PINS}{commit}" for commit in commits]
    assert {*cloud.ports.git_host.branches(PINS)} == {*pins}
    assert purge_expired(cloud.ports)["branches of pins"] == 1
    assert {*cloud.ports.git_host.branches(PINS)} == {*pins[1:]}


def test_the_pins_of_another_fleet_on_another_branch_of_the_repository_stay() -> None:
    """Each of the fleets moves its cluster twice, so that nobody needs the first pin of either."""
    own = MemoryCloud()
    config = replace(own.ports.config, fleet="other", branch="staging")
    other = MemoryCloud(config=config, peer=own, repository=own.repository)
    pinned = dict[str, list[str]]()
    for cloud, name in ((own, "one"), (other, "two")):
        fleet, branch = cloud.ports.config.fleet, cloud.ports.config.branch
        for version in range(3):
            files = {**fleet_files.fleet(name), "platform/version.yaml": VERSION.format(version).encode()}
            written = {b"  name: example\n": f"  name: {fleet}\n", b"branch: main\n": f"branch: {branch}\n"}
            for before, after in written.items():
                files["fleet.yaml"] = files["fleet.yaml"].replace(before, after.encode())
            commit = push(cloud, files, branch)
            cloud.run()
            pinned.setdefault(fleet, []).append(f"{pin_branches(fleet)}{commit}")
        assert phases(cloud) == {name: Phase.READY}
    assert purge_expired(own.ports)["branches of pins"] == 1
    assert {*own.git_host.branches(PIN_BRANCHES)} == {*pinned["example"][1:], *pinned["other"]}
    assert purge_expired(other.ports)["branches of pins"] == 1
    assert {*own.git_host.branches(PIN_BRANCHES)} == {*pinned["example"][1:], *pinned["other"][1:]}


def test_the_pin_that_a_stopped_cluster_runs_stays_a_branch_whatever_it_was_given_since() -> None:
    cloud, commits = MemoryCloud(), list[str]()
    for version in range(4):
        files = {**fleet_files.fleet("one"), "platform/version.yaml": VERSION.format(version).encode()}
        commits.append(push(cloud, files))
        cloud.run(seconds=1800)
        cloud.azure.interventions.stop(cloud.state.clusters()[0].desired.id)
    purge_expired(cloud.ports)
    left = {name.removeprefix(PINS) for name in cloud.ports.git_host.branches(PINS)}
    assert left == {commits[0], *commits[2:]}


def test_no_pin_is_deleted_while_nobody_knows_what_a_cluster_pulls() -> None:
    cloud = MemoryCloud()
    first = push(cloud, fleet_files.fleet("one"))
    cloud.run()
    push(cloud, {**fleet_files.fleet("one"), "platform/version.yaml": VERSION.format(1).encode()})
    cloud.run()
    push(cloud, {**fleet_files.fleet("one"), "platform/version.yaml": VERSION.format(2).encode()})
    cloud.run()
    record = cloud.state.clusters()[0]
    recovering = replace(record, ownership=replace(record.ownership, recovering=True))
    saved = cloud.state.save(recovering)
    assert purge_expired(cloud.ports)["branches of pins"] == 0
    assert f"{PINS}{first}" in cloud.ports.git_host.branches(PINS)
    waits = replace(record.job.next_run, contest=Contest(ContestKind.INSTALLATION))
    contested = replace(saved, ownership=record.ownership, job=replace(record.job, next_run=waits))
    saved = cloud.state.save(contested)
    assert purge_expired(cloud.ports)["branches of pins"] == 0
    cloud.state.save(replace(saved, job=record.job))
    assert purge_expired(cloud.ports)["branches of pins"] == 1


def test_no_pin_is_deleted_while_a_new_manifest_is_invalid_or_a_recovery_lasts() -> None:
    cloud = MemoryCloud()
    for version in range(3):
        push(cloud, {**fleet_files.fleet("one"), "platform/version.yaml": VERSION.format(version).encode()})
        cloud.run()
    valid = {**fleet_files.fleet("one"), "platform/version.yaml": VERSION.format(2).encode()}
    push(cloud, {**valid, "clusters/two/cluster.yaml": b"spec: {}"})
    cloud.run()
    assert purge_expired(cloud.ports)["branches of pins"] == 0, "two may have been there before"
    push(cloud, valid)
    cloud.run()
    fleet = cloud.state.fleet()
    lasting = replace(fleet.tables, recovery=Recovery(cloud.clock(), fleet.tables.epoch))
    saved = cloud.state.save_fleet(replace(fleet, tables=lasting))
    assert purge_expired(cloud.ports)["branches of pins"] == 0
    cloud.state.save_fleet(replace(saved, tables=fleet.tables))
    assert purge_expired(cloud.ports)["branches of pins"] > 0


def test_once_a_day_the_log_says_that_anybody_could_move_a_pin(caplog: pytest.LogCaptureFixture) -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    purge_expired(cloud.ports)
    assert "no rule of the git host keeps people from moving roadstead/pin/example/*" in caplog.text
    caplog.clear()
    cloud.repository.guarded = ("roadstead/pin/**/*",)
    purge_expired(cloud.ports)
    assert "no rule of the git host" not in caplog.text
