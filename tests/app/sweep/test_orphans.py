"""Clusters with this fleet's tags that git and the records do not know: reported, and never deleted."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import fleet_view
from shared.language.model.notification_kinds import NotificationKind
from shared.ports.azure import PutCluster, PutGroup
from shared.resource_ids import ClusterId, GroupId
from tests.support import fleet_files
from tests.support.azure_ports import body
from tests.support.notifications import notifying
from tests.support.notified import ALL, kinds
from tests.support.one_cluster import ONE, SUBSCRIPTION, cluster, files, ready
from tests.support.pipeline_runs import accepted, cloud_with, push
from tests.support.sweeps import delete_by_hand, sweep

pytestmark = pytest.mark.lives

GHOST = ClusterId(SUBSCRIPTION, "rg-old", "ghost")


def create_ghost(cloud: MemoryCloud, **tags: str) -> None:
    """Create a cluster by hand that carries the tags of this fleet."""
    ours = {key: value for key, value in cluster(cloud)["tags"].items() if key.startswith("roadstead-")}
    ours |= {"roadstead-cluster": "ghost", **tags}
    cloud.ports.azure.call(PutGroup(GroupId(SUBSCRIPTION, "rg-old"), {"location": "eastus", "tags": {}}))
    cloud.ports.azure.call(PutCluster(GHOST, {**body(dnsPrefix="ghost"), "tags": ours}, etag=None))


def orphans(cloud: MemoryCloud) -> list[tuple[str, str]]:
    return [
        (orphan.cluster, orphan.resource)
        for listing in cloud.state.sweep().listings
        for orphan in listing.orphans
    ]


def test_an_orphan_is_reported_and_not_touched() -> None:
    cloud = ready()
    create_ghost(cloud)
    sweep(cloud)
    since = cloud.state.sweep().listings[0].orphans[0].since
    sweep(cloud)
    assert orphans(cloud) == [("ghost", GHOST.resource)]
    assert cloud.state.sweep().listings[0].orphans[0].since == since
    shown = fleet_view(cloud.ports)["sweep"]
    assert shown is not None
    assert [orphan["resource"] for orphan in shown["orphans"]] == [GHOST.resource]
    assert accepted(cloud)["delete", "ghost"] == 0
    assert GHOST in cloud.azure.ids()


def test_an_orphan_that_a_sweep_finds_is_notified_once_with_what_to_do_and_so_is_its_end() -> None:
    cloud = ready()
    push(cloud, notifying(files(), ALL))
    cloud.run()
    cloud.routes.delivered.clear()
    create_ghost(cloud)
    sweep(cloud)
    cloud.run(900)
    assert kinds(cloud, "all") == [(NotificationKind.ORPHAN, GHOST.resource, False)]
    (message,) = cloud.routes.delivered["all"]
    for part in (GHOST.resource, "its tags name the cluster ghost", "`roadstead import RESOURCE_ID`"):
        assert part in message.text
    sweep(cloud)
    cloud.run(900)
    assert len(kinds(cloud, "all")) == 1, "it is still there, which is no news"
    delete_by_hand(cloud, GHOST)
    sweep(cloud)
    cloud.run(900)
    assert kinds(cloud, "all")[1:] == [(NotificationKind.ORPHAN, GHOST.resource, True)]


def test_an_orphan_that_somebody_deletes_is_no_longer_reported() -> None:
    cloud = ready()
    create_ghost(cloud)
    sweep(cloud)
    delete_by_hand(cloud, GHOST)
    sweep(cloud)
    assert orphans(cloud) == []


def test_a_copy_of_a_known_cluster_in_another_place_is_an_orphan() -> None:
    cloud = ready()
    create_ghost(cloud, **{"roadstead-cluster": "one"})
    sweep(cloud)
    assert orphans(cloud) == [("one", GHOST.resource)]


def test_clusters_of_other_fleets_and_repositories_are_no_orphans() -> None:
    cloud = ready()
    create_ghost(cloud, **{"roadstead-fleet": "other"})
    sweep(cloud)
    assert orphans(cloud) == []
    cloud.azure.patch_cluster(
        GHOST,
        {"tags": {"roadstead-fleet": "example", "roadstead-cluster": "x", "roadstead-repository": "a/b"}},
    )
    sweep(cloud)
    assert orphans(cloud) == []
    assert ONE in cloud.azure.ids()


def test_a_fleet_that_has_no_cluster_yet_lists_the_subscriptions_that_its_shared_files_name() -> None:
    other = ready()
    ours = {key: value for key, value in cluster(other)["tags"].items() if key.startswith("roadstead-")}
    cloud = cloud_with(fleet_files.fleet(), throttle=False)
    cloud.ports.azure.call(PutGroup(GroupId(SUBSCRIPTION, "rg-old"), {"location": "eastus", "tags": {}}))
    ghost = {**body(dnsPrefix="ghost"), "tags": ours | {"roadstead-cluster": "ghost"}}
    cloud.ports.azure.call(PutCluster(GHOST, ghost, etag=None))
    sweep(cloud)
    assert orphans(cloud) == [("ghost", GHOST.resource)]
    assert accepted(cloud)["delete", "ghost"] == 0


def test_a_subscription_that_only_a_shared_file_names_and_that_cannot_be_listed_is_no_problem() -> None:
    unknown = "99999999-0000-0000-0000-000000000001"
    cloud = ready()
    of_class = files()
    path = next(path for path in of_class if path.startswith("classes/"))
    named = of_class[path].replace(b"spec:\n", f"spec:\n  subscriptionId: {unknown}\n".encode(), 1)
    push(cloud, of_class | {path: named})
    cloud.run()
    sweep(cloud)
    listings = cloud.state.sweep().listings
    assert [(listing.subscription, listing.problem) for listing in listings] == [(SUBSCRIPTION, "")]
    assert unknown in cloud.state.fleet().rules.subscriptions
