"""Tables that were restored from an older moment: a recovery compares, writes nothing, and asks a person."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import take_over
from shared.app.api.views.clusters import fleet_view
from shared.app.door import epoch_tag
from shared.app.recovery.housekeeping import purge_expired
from shared.cluster.failures.errors import Unavailable
from shared.cluster.job import ContestKind
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.frozen import replace
from shared.kubernetes.flux_objects import SOURCE
from shared.language.pin import name_of_pin, pin_branches
from shared.ports.azure import GetCluster, GetGroup, GetTags, PatchTags
from shared.ports.state.fleet import TablesAge
from tests.support import fleet_files
from tests.support.bootstrap_secrets import AGE, SOPS, with_value
from tests.support.identity_access import ACCESS, ISSUER, with_identity
from tests.support.lost_tables import APP_GROUP, CONFIG, go_on_without_a_plan, ready, recovered, with_epoch
from tests.support.one_cluster import (
    ONE,
    WINDOW,
    advice,
    cluster,
    files,
    live,
    pool,
    pools,
    record,
)
from tests.support.pipeline_runs import (
    accepted,
    cloud_with,
    one_step_a_message,
    phases,
    push,
    step_until,
)
from tests.support.policies import POLICIES
from tests.support.replaced_ports import on_azure

VERSION = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: version, namespace: default}\n"

pytestmark = pytest.mark.lives

AGAIN = {"README.md": b"git is as it was before the commit that the tables lost"}
PROTECTED = "  deletionProtection: true\n"


def epoch(cloud: MemoryCloud) -> int:
    return int(cloud.ports.azure.call(GetTags(APP_GROUP)).get(epoch_tag(cloud.ports.config), "0"))


# The epoch: it grows before the jobs of a plan begin, and outside the tables it stands in a tag.


def test_apps_that_share_a_resource_group_have_an_epoch_each() -> None:
    first = cloud_with(fleet_files.fleet("one"), config=CONFIG, throttle=False)
    configs = [replace(CONFIG, branch="staging"), replace(CONFIG, installation="another")]
    for number, config in enumerate(configs):
        second = MemoryCloud(config=config, peer=first, throttle=False)
        push(second, fleet_files.fleet(f"of-{number}"), config.branch)
        second.run()
        assert second.state.fleet().tables == TablesAge(1)
    first.clock.advance(3600)
    first.run(seconds=1800)
    assert first.state.fleet().tables == TablesAge(1)
    others = [epoch_tag(config) for config in (*configs, replace(CONFIG, fleet="other"))]
    assert len({epoch_tag(CONFIG), *others}) == 4


def test_the_epoch_grows_once_for_each_plan_that_begins_jobs() -> None:
    cloud = cloud_with(fleet_files.fleet("one", "two", "three"), config=CONFIG, throttle=False)
    assert (epoch(cloud), cloud.state.fleet().tables.epoch) == (1, 1)
    push(cloud, fleet_files.fleet("one", "two", "three") | AGAIN)
    cloud.run()
    assert epoch(cloud) == 1
    push(cloud, fleet_files.fleet("one", "two", budget=1))
    cloud.run()
    assert (epoch(cloud), cloud.state.fleet().tables.epoch) == (2, 2)
    writes = [write for write in cloud.azure.accepted if write["accepted"] == "update-tags"]
    assert len(writes) == 2


def test_no_job_begins_before_the_epoch_stands_outside_the_tables() -> None:
    cloud, away = MemoryCloud(config=CONFIG, throttle=False), [Unavailable("answered 503")] * 3
    azure = cloud.ports.azure

    def refuse(operation: PatchTags) -> object:
        if away:
            raise away.pop()
        return azure.call(operation)

    on_azure(cloud, PatchTags, refuse)
    push(cloud, files())
    cloud.run(until=lambda: not away)
    assert phases(cloud) == {}
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert epoch(cloud) == cloud.state.fleet().tables.epoch


def test_tables_of_a_moment_since_which_no_plan_began_jobs_need_no_recovery() -> None:
    cloud = MemoryCloud(config=CONFIG, throttle=False)
    push(cloud, files())
    step_until(cloud, lambda: bool(phases(cloud)) and record(cloud).job.step.name is Step.CLUSTER)
    older = cloud.state.backup()
    cloud.run()
    before = accepted(cloud)
    cloud.restore(older)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert (accepted(cloud), record(cloud).generation) == (before, 1)


def test_no_pin_is_deleted_by_tables_that_were_restored_a_moment_ago() -> None:
    """They know the pin before; that the cluster has another one since, a comparison has not found yet."""
    cloud = ready(fleet_files.fleet("one"))
    older = cloud.state.backup()
    files = {**fleet_files.fleet("one"), "platform/version.yaml": VERSION}
    pins = pin_branches(cloud.ports.config.fleet)
    pin = f"{pins}{push(cloud, files)}"
    cloud.run()
    cloud.restore(older)
    purge_expired(cloud.ports)
    assert pin in cloud.ports.git_host.branches(pins)


# The recovery.


def test_it_ends_when_every_record_was_compared_and_nothing_was_written() -> None:
    cloud = ready(fleet_files.fleet("one", "two"))
    older = cloud.state.backup()
    push(cloud, fleet_files.fleet("one", "two", "three"))
    cloud.run()
    before = accepted(cloud)
    cloud.restore(older)
    cloud.run(until=lambda: cloud.state.fleet().tables.recovery is not None)
    assert fleet_view(cloud.ports)["problem"].startswith("the tables were lost or restored")
    cloud.run()
    assert recovered(cloud)
    assert fleet_view(cloud.ports)["problem"] == ""
    assert phases(cloud) == dict.fromkeys(("one", "two", "three"), Phase.READY)
    assert accepted(cloud) == before
    assert not any(cluster_record.recovering for cluster_record in cloud.state.clusters())
    assert epoch(cloud) == cloud.state.fleet().tables.epoch
    message = cloud.state.events("one", 1)[0].message
    assert "the record was recovered, and nothing was written" in message


def test_no_job_goes_on_before_every_record_is_a_part_of_it() -> None:
    cloud = ready(files(pool("Standard_D4s_v5")))
    push(cloud, files(pool("Standard_D8s_v5") + "  tags: {team: shop}\n"))
    step_until(cloud, lambda: record(cloud).generation == 2)
    older = cloud.state.backup()
    cloud.run()
    commit = push(cloud, files(pool("Standard_D4s_v5", count=3) + "  tags: {team: books}\n"))
    cloud.run()
    live, profiles, before = cluster(cloud), pools(cloud), accepted(cloud)
    cloud.clock.advance(3600)
    cloud.restore(older)
    go_on_without_a_plan(cloud)
    assert (record(cloud).generation, accepted(cloud)) == (2, before)
    cloud.run()
    assert recovered(cloud)
    assert (phases(cloud), record(cloud).commit) == ({"one": Phase.READY}, commit)
    assert (cluster(cloud), pools(cloud), accepted(cloud)) == (live, profiles, before)


def test_a_recovery_that_is_interrupted_goes_on() -> None:
    cloud = ready(fleet_files.fleet("one", "two"))
    older = cloud.state.backup()
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    cloud.restore(older)
    save, away = cloud.state.save, [Unavailable("answered 503")]

    def refuse(saved: object) -> object:
        if away and getattr(saved, "name", "") == "two":
            raise away.pop()
        return save(saved)  # type: ignore[arg-type]

    cloud.state.save = refuse  # type: ignore[method-assign, assignment]
    before = accepted(cloud)
    cloud.run()
    assert recovered(cloud)
    assert (phases(cloud)["one"], accepted(cloud)) == (Phase.READY, before)


BOOKS, SHOP = "  tags: {team: books}\n", "  tags: {team: shop}\n"
DIFFERS = [
    pytest.param(BOOKS, SHOP, "it differs from git in tags.team", id="a tag"),
    pytest.param(pool(), pool(count=3), "it differs from git in nodePools[apps].count", id="a node pool"),
    pytest.param(ACCESS, ISSUER, "the job would put federated credential", id="grants"),
    pytest.param(POLICIES, "", "the job would put policy assignment", id="policies"),
    pytest.param(WINDOW, WINDOW.replace("Sunday", "Monday"), "maintenanceWindows", id="a window"),
    pytest.param(AGE, "", "the job would apply the ConfigMap", id="a bootstrap secret"),
]
"""What git has, what a commit had that the tables lost, and what its job would do."""


@pytest.mark.parametrize(("extra", "lost", "would"), DIFFERS)
@pytest.mark.parametrize("in_a_job", [False, True])
def test_what_a_lost_commit_changed_waits_for_a_person(
    extra: str, lost: str, would: str, *, in_a_job: bool
) -> None:
    cloud = with_epoch(with_value(with_identity()))
    push(cloud, files(extra))
    usual = one_step_a_message(cloud).ports
    step_until(cloud, lambda: bool(phases(cloud)) and record(cloud).job.step.name is Step.FLUX_COMPONENTS)
    older = cloud.state.backup()
    cloud.run()
    older = older if in_a_job else cloud.state.backup()
    push(cloud, files(lost))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    cloud.repository.push(files(extra) | AGAIN)
    cloud.ports = usual
    cloud.restore(older)
    before = accepted(cloud)
    assert recovered(cloud)
    assert accepted(cloud) == before
    assert would in record(cloud).job.reason
    assert "roadstead takeover" in advice(cloud)
    assert take_over("one", "jo", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


# Flux could not apply its commit at the moment when the tables were lost, or were restored.

UNKNOWN = b"apiVersion: example.org/v1\nkind: Unknown\nmetadata: {name: a, namespace: default}\n"


@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.parametrize("repaired", ["meanwhile", "later"])
def test_it_ends_where_flux_fails_and_a_repair_moves_the_pin_forward(repaired: str, *, lost: bool) -> None:
    cloud = ready(files())
    older = cloud.state.backup()
    broken = files() | {"platform/unknown.yaml": UNKNOWN}
    push(cloud, broken)
    cloud.run(seconds=600, until=lambda: False)
    before = accepted(cloud)
    cloud.restore(None if lost else older)
    push(cloud, (files() if repaired == "meanwhile" else broken) | AGAIN)
    assert recovered(cloud)
    assert not record(cloud).recovering
    if repaired == "later":
        assert "Unknown" in record(cloud).job.reason
        push(cloud, files())
        cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert pulled(cloud) == cloud.git_host.tip("main")
    assert accepted(cloud) == before


def test_a_secret_that_git_lacks_waits_for_a_person_also_where_flux_fails() -> None:
    cloud = with_epoch(with_value(MemoryCloud(config=CONFIG, throttle=False)))
    push(cloud, files())
    cloud.run()
    older = cloud.state.backup()
    push(cloud, files(AGE) | {"platform/unknown.yaml": UNKNOWN})
    cloud.run(seconds=600, until=lambda: False)
    cloud.restore(older)
    push(cloud, files() | AGAIN)
    assert recovered(cloud)
    assert live(cloud, SOPS)
    assert (record(cloud).recovering, record(cloud).contested) == (True, True)
    assert "the job would delete the Secret" in record(cloud).job.reason
    waits = record(cloud).generation
    cloud.run(seconds=3600, until=lambda: False)
    assert record(cloud).generation == waits, "no plan follows the other while a person is waited for"


def pulled(cloud: MemoryCloud) -> str:
    """Return the commit that Flux pulls on the cluster."""
    return name_of_pin(live(cloud, SOURCE)["spec"]["ref"]["branch"])


# Deletes wait for a person.


def tombstone_and_later_life(*, extra: str = "") -> MemoryCloud:
    """Return a cloud that has a cluster in its second life, with tables of the first one's tombstone."""
    cloud = ready(files())
    push(cloud, fleet_files.fleet())
    step_until(cloud, lambda: phases(cloud) == {"one": Phase.DELETING})
    older = cloud.state.backup()
    cloud.run()
    push(cloud, files(extra))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    if extra:
        cloud.repository.push(fleet_files.fleet())
    cloud.restore(older)
    return cloud


def test_a_restored_tombstone_does_not_delete_a_cluster_that_git_has() -> None:
    cloud = tombstone_and_later_life()
    before, life = accepted(cloud), cluster(cloud)["tags"]["roadstead-life"]
    assert recovered(cloud)
    assert phases(cloud) == {"one": Phase.READY}
    assert (accepted(cloud), record(cloud).azure.life) == (before, life)


def test_a_restored_tombstone_waits_for_a_person_before_it_deletes_a_later_life() -> None:
    cloud = tombstone_and_later_life(extra=PROTECTED)
    before = accepted(cloud)
    assert recovered(cloud)
    assert accepted(cloud) == before
    contest = record(cloud).job.next_run.contest
    assert contest is not None
    assert contest.kind is ContestKind.RECOVERY
    assert "the job would delete cluster" in record(cloud).job.reason
    assert "roadstead takeover one" in advice(cloud).replace("NAME", "one")
    assert take_over("one", "jo", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetCluster(ONE)) is None
    assert cloud.ports.azure.call(GetGroup(ONE.group)) is None


def test_a_removal_in_git_waits_until_the_cluster_was_compared_and_then_deletes_it() -> None:
    cloud = tombstone_and_later_life()
    assert recovered(cloud)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetCluster(ONE)) is None


def test_a_record_of_an_earlier_life_deletes_nothing_by_itself() -> None:
    cloud = ready(files())
    older = cloud.state.backup()
    push(cloud, fleet_files.fleet())
    cloud.run()
    push(cloud, files())
    cloud.run()
    cloud.restore(older)
    before = accepted(cloud)
    push(cloud, fleet_files.fleet())
    assert recovered(cloud)
    assert (accepted(cloud), record(cloud).contested) == (before, True)
