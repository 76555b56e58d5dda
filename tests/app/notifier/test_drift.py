"""Drift is announced with its diff, as one message for many clusters, and its end is announced too."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.missed_work import wake_notifier
from shared.language.model.notification_kinds import NotificationKind
from shared.notifications.digest import body_of
from shared.resource_ids import ClusterId
from tests.support import fleet_files
from tests.support.notifications import notifying
from tests.support.notified import OPS, kinds, titles
from tests.support.one_cluster import ONE, SUBSCRIPTION
from tests.support.pipeline_runs import cloud_with, push
from tests.support.sweeps import delete_by_hand, sweep, tag_by_hand

TAGS = "  tags: {cost: a}\n"
DRIFT = "{name: drift, type: webhook, address: HOOK, events: [drift]}"


def fleet(*names: str, extra: str = TAGS, routes: tuple[str, ...] = (OPS,)) -> dict[str, bytes]:
    """Return a fleet of clusters with a tag."""
    files = fleet_files.fleet(*names)
    own = {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=extra) for name in names}
    return notifying(files | own, *routes)


def ready(*names: str, extra: str = TAGS, routes: tuple[str, ...] = (OPS,)) -> MemoryCloud:
    return cloud_with(fleet(*names, extra=extra, routes=routes), throttle=False)


def swept(cloud: MemoryCloud) -> None:
    """Let a sweep run, and the notifier look twice."""
    sweep(cloud)
    for _ in range(2):
        wake_notifier(cloud.ports)
        cloud.run(700)


def test_a_tag_that_somebody_changes_is_one_message_with_the_diff_and_its_end_is_another() -> None:
    cloud = ready("one")
    tag_by_hand(cloud, ONE, cost="b")
    swept(cloud)
    assert titles(cloud) == ["example: 1 cluster with drift in eastus"]
    text = cloud.routes.delivered["ops"][0].text
    assert "Why: differs from git in tags.cost\n" in text
    assert "\n# tags.cost: clusters/one/cluster.yaml:11; may have been changed " in text
    assert "Diff:\n--- one in git\n+++ one in Azure\n" in text
    assert "\n-    cost: a\n+    cost: b" in text
    swept(cloud)
    cloud.run(4 * 3600)
    assert len(titles(cloud)) == 1, "what stays as it is is announced once"
    tag_by_hand(cloud, ONE, cost="c")
    swept(cloud)
    assert "\n-    cost: a\n+    cost: c" in cloud.routes.delivered["ops"][1].text, "another value is news"
    tag_by_hand(cloud, ONE, cost="a")
    swept(cloud)
    assert titles(cloud)[2:] == ["example: 1 cluster as git has it again in eastus"]


def test_a_message_says_who_may_have_changed_the_field_and_when_and_who_deleted_a_cluster() -> None:
    cloud = ready("one")
    with cloud.azure.called_by("ann@example.com"):
        tag_by_hand(cloud, ONE, cost="b")
    swept(cloud)
    (line,) = [row for row in cloud.routes.delivered["ops"][0].text.splitlines() if row.startswith("# ")]
    assert line.startswith("# tags.cost: clusters/one/cluster.yaml:11; may have been changed 2026-01-01 00:")
    assert line.endswith(" UTC by ann@example.com")
    with cloud.azure.called_by("bob@example.com"):
        delete_by_hand(cloud, ONE)
    swept(cloud)
    text = cloud.routes.delivered["ops"][1].text
    assert "; deleted 2026-01-01 " in text
    assert " UTC by bob@example.com\n" in text


@pytest.mark.lives
def test_drift_of_many_clusters_is_one_message_with_some_diffs_and_so_is_its_end() -> None:
    names = tuple(f"aks-{n:02d}" for n in range(30))
    cloud = ready(*names, routes=(OPS, DRIFT))
    clusters = [ClusterId(SUBSCRIPTION, f"rg-{name}", name) for name in names]
    for cluster in clusters:
        tag_by_hand(cloud, cluster, cost="b")
    swept(cloud)
    assert titles(cloud) == ["example: 30 clusters with drift in eastus"]
    (message,) = cloud.routes.delivered["ops"]
    assert message.text.count("Diff:") == 3
    assert "27 more diffs: `roadstead drift` shows them." in message.text
    notifications = body_of(cloud.routes.delivered["drift"][0])["groups"][0]["notifications"]
    assert sorted(notification["clusters"][0] for notification in notifications) == list(names)
    assert sum(1 for notification in notifications if "+    cost: b" in notification["diff"]) == 3
    for cluster in clusters:
        tag_by_hand(cloud, cluster, cost="a")
    swept(cloud)
    assert titles(cloud)[1:] == ["example: 30 clusters as git has it again in eastus"]


def test_a_route_for_drift_hears_of_nothing_else() -> None:
    cloud = ready("one", routes=(DRIFT,))
    delete_by_hand(cloud, ONE)
    swept(cloud)
    assert titles(cloud, "drift") == []


def test_drift_that_a_job_corrects_is_announced_with_its_end() -> None:
    cloud = ready("one", extra=TAGS + "  drift: {action: correct}\n")
    tag_by_hand(cloud, ONE, cost="b")
    swept(cloud)
    assert kinds(cloud) == [(NotificationKind.DRIFT, "one", True)]


@pytest.mark.parametrize("fields", [1, 30])
def test_the_drift_of_a_cluster_that_git_removes_ends_and_its_diff_is_bounded(fields: int) -> None:
    tags = "".join(f"tag{n}: {'a' * 200}, " for n in range(fields))
    cloud = ready("one", "two", extra=f"  tags: {{{tags}}}\n")
    tag_by_hand(cloud, ONE, **{f"tag{n}": "b" * 200 for n in range(fields)})
    swept(cloud)
    (message,) = cloud.routes.delivered["ops"]
    (drifted,) = message.groups[0].notifications
    assert len(drifted.diff) <= 1000
    assert drifted.diff.endswith("...") == (fields > 1)
    push(cloud, fleet("two", extra=f"  tags: {{{tags}}}\n"))
    cloud.run()
    assert kinds(cloud)[1:] == [(NotificationKind.DRIFT, "one", True)]


def test_of_drift_that_no_job_changes_no_replay_is_suggested() -> None:
    cloud = ready("one")
    extra = {"properties": {"vmSize": "Standard_D2s_v5", "count": 1, "mode": "User"}}
    cloud.azure.put_pool(ONE, "extra", extra)
    swept(cloud)
    text = cloud.routes.delivered["ops"][0].text
    assert (
        "Next: `roadstead drift` shows each field; no job changes it, and a commit keeps Azure's value."
        in text
    )
    assert "roadstead replay" not in text
