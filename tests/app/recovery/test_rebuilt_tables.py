"""Every table is lost, and the app knows its clusters by the id of its settings: the records are rebuilt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.lease_guard import GuardedKubernetes
from shared.app.api.acts.cluster import take_over
from shared.app.api.views.clusters import fleet_view
from shared.app.worker import worker
from shared.cluster.failures.errors import Unauthorized
from shared.cluster.job import ContestKind, JobQueue
from shared.cluster.queues.messages import JobMessage
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import GitCredentials
from shared.ports import FleetConfig
from shared.ports.azure import GetGroup, ListClusters
from tests.support import fleet_files
from tests.support.extension_clusters import FLUX, PRIVATE
from tests.support.lost_tables import CONFIG, ID, lose, ready
from tests.support.one_cluster import ONE, WINDOW, advice, cluster, files, pool, record
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import change_pool_by_hand, sweep, tag_by_hand

pytestmark = pytest.mark.lives

EXAMPLE = ["atlantic-aks", "pacific-aks", "sargasso-aks"]


def records(cloud: MemoryCloud) -> dict[str, ClusterRecord]:
    return {cluster_record.name: cluster_record for cluster_record in cloud.state.clusters()}


def written_inside(cloud: MemoryCloud) -> list[str]:
    """Return the list to which every write into a cluster is added from now on."""
    written: list[str] = []

    def note(verb: str, _: object) -> None:
        written.append(verb)

    cloud.with_ports(lambda ports: replace(ports, kubernetes=GuardedKubernetes(ports.kubernetes, note)))
    return written


def test_the_records_are_rebuilt_without_a_write_to_azure_or_to_a_cluster() -> None:
    cloud = ready(fleet_files.example())
    before, lives = accepted(cloud), records(cloud)
    inside = written_inside(cloud)
    lose(cloud)
    assert phases(cloud) == dict.fromkeys(EXAMPLE, Phase.READY)
    assert (accepted(cloud), inside) == (before, [])
    for name, rebuilt in records(cloud).items():
        old = lives[name]
        assert (rebuilt.azure.life, rebuilt.document, rebuilt.observation.facts) == (
            old.uid,
            old.document,
            old.observation.facts,
        )
        assert rebuilt.observation.verified == old.observation.verified
        assert "the record was recovered, and nothing was written" in cloud.state.events(name, 1)[0].message


def test_an_app_that_cannot_list_the_clusters_asks_for_none_to_be_compared() -> None:
    cloud = MemoryCloud(config=CONFIG, throttle=False)
    on_azure(cloud, ListClusters, refuse)
    push(cloud, files())
    cloud.run(seconds=60, until=lambda: False)
    assert not record(cloud).recovering


def refuse(_: object) -> object:
    raise Unauthorized("no role")


def test_a_message_of_the_lost_tables_does_nothing() -> None:
    cloud = ready(files())
    old = record(cloud)
    lose(cloud)
    before, now = accepted(cloud), record(cloud)
    for sequence in (1, old.job.sequence, old.job.sequence + 1):
        message = JobMessage(cluster="one", uid=old.uid, generation=old.generation, sequence=sequence)
        for queue in JobQueue:
            worker.handle(message, queue, cloud.ports)
    cloud.run()
    assert (accepted(cloud), record(cloud)) == (before, now)


def test_what_differs_from_git_is_named_and_waits_for_a_person() -> None:
    cloud = ready(files(pool() + WINDOW))
    change_pool_by_hand(cloud, ONE, "apps", count=5)
    before, inside = accepted(cloud), written_inside(cloud)
    cloud.repository.push(files(pool() + WINDOW + "  tags: {team: shop}\n"))
    lose(cloud)
    assert (accepted(cloud), inside) == (before, [])
    held = record(cloud)
    assert "it differs from git in tags.team, nodePools[apps].count" in held.job.reason
    assert held.job.next_run.contest is not None
    assert held.job.next_run.contest.kind is ContestKind.RECOVERY
    assert "roadstead takeover" in advice(cloud)
    assert fleet_view(cloud.ports)["problem"].endswith(": one")


def test_a_takeover_has_the_values_of_git_written() -> None:
    cloud = ready(files())
    cloud.repository.push(files("  tags: {team: shop}\n"))
    lose(cloud)
    assert record(cloud).contested
    assert take_over("one", "jo", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cluster(cloud)["tags"]["team"] == "shop"
    assert not record(cloud).recovering


def test_a_commit_that_takes_what_exists_ends_the_wait() -> None:
    cloud = ready(files())
    tag_by_hand(cloud, ONE, team="shop")
    cloud.repository.push(files("  tags: {team: books}\n"))
    lose(cloud)
    before = accepted(cloud)
    push(cloud, files("  tags: {team: shop}\n"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud) == before


def test_what_differs_inside_a_cluster_waits_too() -> None:
    cloud = ready(files())
    path = next(path for path in files() if path.endswith("gotk-components.yaml"))
    cloud.repository.push(files() | {path: files()[path].replace(b"replicas: 1", b"replicas: 2")})
    before, inside = accepted(cloud), written_inside(cloud)
    lose(cloud)
    assert (accepted(cloud), inside) == (before, [])
    assert "the job would apply the " in record(cloud).job.reason


def test_a_cluster_that_goes_with_its_group_before_its_record_is_rebuilt_waits_for_a_person() -> None:
    cloud = ready(files())
    path = next(path for path in files() if path.endswith("gotk-components.yaml"))
    cloud.repository.push(files() | {path: files()[path].replace(b"replicas: 1", b"replicas: 2")})
    lose(cloud)
    assert record(cloud).recovering
    cloud.azure.delete_group(ONE.subscription, ONE.resource_group)
    cloud.run(seconds=3600)
    assert record(cloud).contested
    assert "it does not exist in Azure, where the job would put" in record(cloud).job.reason
    assert take_over("one", "jo", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_stopped_cluster_is_not_started_while_its_record_is_rebuilt() -> None:
    cloud = ready(files("  drift: {stoppedCluster: start}\n"))
    cloud.azure.interventions.stop(ONE)
    before = accepted(cloud)
    lose(cloud)
    assert accepted(cloud) == before
    assert "the job would start cluster" in record(cloud).job.reason


def test_a_cluster_that_git_does_not_have_is_reported_and_stays() -> None:
    cloud = ready(fleet_files.fleet("one", "two"))
    before = accepted(cloud)
    cloud.repository.push(fleet_files.fleet("one"))
    lose(cloud)
    sweep(cloud)
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud) == before
    [listing] = cloud.state.sweep().listings
    assert [orphan.cluster for orphan in listing.orphans] == ["two"]


def test_a_removal_after_the_rebuild_deletes_the_cluster_and_its_group() -> None:
    cloud = ready(files())
    lose(cloud)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetGroup(ONE.group)) is None


def test_a_removal_while_a_difference_is_held_waits_for_a_person() -> None:
    cloud = ready(files())
    cloud.repository.push(files("  tags: {team: shop}\n"))
    lose(cloud)
    before = accepted(cloud)
    push(cloud, fleet_files.fleet())
    cloud.run(seconds=1200, until=lambda: False)
    assert accepted(cloud) == before
    assert record(cloud).contested


@pytest.mark.parametrize(
    "config", [replace(CONFIG, installation="another-app"), replace(CONFIG, branch="staging")]
)
def test_an_app_with_another_id_or_branch_is_still_stopped(config: FleetConfig) -> None:
    first = ready(files())
    other = MemoryCloud(seed=1, config=config, peer=first, throttle=False, timer_seconds=60)
    other.repository.reset(other.repository.push(files()), other.ports.config.branch)
    other.run(seconds=300, until=lambda: False)
    assert record(other).contested
    assert accepted(first)["create", "one"] == 1


def without_id() -> FleetConfig:
    return replace(CONFIG, installation="")


def test_an_app_that_gets_an_id_keeps_its_clusters_and_tags_them_with_their_next_job() -> None:
    cloud = ready(fleet_files.fleet("one", "two", budget=2), without_id())
    former = cloud.state.fleet().app.installation
    cloud.with_ports(lambda ports: replace(ports, config=CONFIG))
    before = accepted(cloud)
    push(cloud, fleet_files.fleet("one", "two", budget=2) | {"README.md": b"nothing changes"})
    cloud.run()
    sweep(cloud)
    assert accepted(cloud) == before
    assert cloud.state.fleet().app.former == (former,)
    changed = fleet_files.fleet("one", "two", budget=2)
    changed["clusters/one/cluster.yaml"] = fleet_files.cluster("one", extra="  tags: {team: shop}\n")
    push(cloud, changed)
    cloud.run()
    assert set(phases(cloud).values()) == {Phase.READY}
    assert cluster(cloud)["tags"]["roadstead-installation"] == f"{ID}@main"
    assert record(cloud).ownership.predecessors == (former,)
    push(cloud, fleet_files.fleet(budget=2))
    cloud.run()
    assert phases(cloud) == {}
    assert cloud.ports.azure.call(GetGroup(ONE.group)) is None, "the group has the tag of the former id"


def test_git_credentials_that_azure_never_shows_are_no_reason_to_write() -> None:
    credentials = GitCredentials("roadstead", "a-token", "github.com")
    cloud = ready(files(PRIVATE + FLUX), replace(CONFIG, git_credentials=credentials))
    before = accepted(cloud)
    lose(cloud)
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud) == before
    push(cloud, files(PRIVATE + FLUX + "  tags: {a: b}\n"))
    cloud.run()
    assert accepted(cloud)["put-configuration", "flux-system"] == 2
