"""Why a cluster is in its state when the newest commit does not change or create it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import cluster_detail, fleet_view
from shared.app.api.views.plans import plan_view
from shared.app.api.views.why import why_view
from shared.cluster.failures.errors import Throttled, Unauthenticated
from shared.cluster.outcomes import Retry
from shared.cluster.transitions.acceptance import accept_retry
from shared.cluster.transitions.apply_outcome import apply_outcome, postpone
from shared.json_tree import Json
from shared.ports.azure import PutCluster
from tests.support import fleet_files
from tests.support.foreign_cluster import foreign
from tests.support.one_cluster import ONE, advice, cluster, files, ready, record
from tests.support.pipeline_runs import push
from tests.support.replaced_ports import around

pytestmark = pytest.mark.lives

BROKEN = "  locaton: nowhere\n"


def why(cloud: MemoryCloud, name: str = "one") -> Json:
    explained = why_view(name, cloud.ports)
    assert explained is not None
    return explained


@pytest.mark.parametrize(
    ("pushed", "plan", "doing", "action"),
    [
        (
            files(BROKEN),
            "invalid",
            "commit {commit} is invalid for this cluster",
            "Correct the file: `roadstead validate` reports every problem",
        ),
        (
            fleet_files.fleet(),
            "on-hold",
            "the delete of commit {commit} needs approval",
            "`roadstead approve {commit}` releases the delete; or restore the folder, commit",
        ),
        (
            {path: text.replace(b"eastus", b"westus2") for path, text in files().items()},
            "on-hold",
            "commit {commit} is on hold for this cluster",
            "Restore the old value, remove the cluster's folder, add the new cluster under another name, or "
            "rebuild the cluster in its new place: roadstead rebuild.",
        ),
    ],
    ids=["an invalid manifest", "a protected cluster", "another location"],
)
def test_why_shows_what_the_newest_commit_does_not_carry_out_and_the_action(
    pushed: dict[str, bytes], plan: str, doing: str, action: str
) -> None:
    cloud = ready("  deletionProtection: true\n")
    commit = push(cloud, pushed)[:8]
    cloud.run()
    explained = why(cloud)
    verified = "is idle: generation 1 was verified Ready"
    assert explained["doing"] == f"{verified}; {doing.format(commit=commit)}"
    assert explained["plan"]["action"] == plan
    assert explained["suggestedAction"].startswith(action.format(commit=commit))
    assert explained["plan"]["reason"] == explained["plan"]["cause"]


def planned_later(cloud: MemoryCloud, pushed: dict[str, bytes]) -> tuple[datetime, str | None]:
    """Push files an hour later; return when, and since when the newest plan has the cluster on hold."""
    cloud.run(seconds=3600, until=lambda: False)
    at = cloud.clock().replace(microsecond=0)
    push(cloud, pushed)
    cloud.run(seconds=60, until=lambda: False)
    return at, why(cloud)["plan"]["since"]


def test_a_cluster_is_on_hold_since_the_first_plan_in_a_row_that_had_it_so_for_its_reason() -> None:
    cloud = ready("  deletionProtection: true\n")
    assert why(cloud)["plan"]["since"] is None
    without = {path: text for path, text in files().items() if not path.startswith("clusters/")}
    removed, since = planned_later(cloud, without)
    assert since is not None
    assert timedelta(0) <= datetime.fromisoformat(since) - removed < timedelta(minutes=1)
    assert planned_later(cloud, without | {"notes.txt": b"x"})[1] == since
    plan = plan_view(cloud.state.fleet().commit, cloud.ports)
    assert plan is not None
    assert [item["since"] for item in plan["items"]] == [since]
    broken, other = planned_later(cloud, files("  deletionProtection: true\n" + BROKEN))
    assert other is not None
    assert datetime.fromisoformat(other) >= broken
    again, third = planned_later(cloud, without)
    assert third is not None
    assert datetime.fromisoformat(third) >= again


def test_a_failed_cluster_shows_its_own_remedy_and_that_of_the_newest_commit() -> None:
    cloud = MemoryCloud()
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
    push(cloud, files())
    cloud.run()
    push(cloud, files(BROKEN))
    cloud.run()
    suggested = why(cloud)["suggestedAction"]
    assert suggested.startswith("Correct the value in the message.")
    assert suggested.endswith("`roadstead validate` reports every problem with its place.")


def test_a_new_cluster_with_an_invalid_manifest_is_explained_before_it_exists() -> None:
    cloud = MemoryCloud()
    commit = push(cloud, files(BROKEN))[:8]
    cloud.run()
    explained = why(cloud)
    assert (explained["phase"], explained["plan"]["action"]) == ("NotCreated", "invalid")
    assert explained["doing"] == f"does not exist, and commit {commit} does not create it"
    assert "spec.locaton" in explained["plan"]["reason"]
    shown = cluster_detail("one", cloud.ports)
    assert shown is not None
    assert (shown["phase"], shown["plan"]) == ("NotCreated", explained["plan"])
    assert why_view("two", cloud.ports) is None


def test_a_rate_limit_is_shown_before_the_last_error() -> None:
    cloud = ready()
    now = cloud.clock()
    beginning = accept_retry(record(cloud), now=now)
    refused = apply_outcome(beginning, Retry(Throttled("slow down")), now=now, jitter=0)
    until, rate_limited = now + timedelta(hours=3), "waits for Azure's write limit"
    cloud.state.save(
        postpone(refused, until=until, reason=rate_limited, reservations={"key": (until,)}, now=now)
    )
    explained = why(cloud)
    assert explained["doing"] == f"{rate_limited}, in the step resource-group (1 of 12 of provision)"
    assert (explained["next"], explained["nextAt"]) == ("runs the step", until.isoformat(timespec="seconds"))
    assert explained["lastError"]["class"] == "Throttled"
    assert advice(cloud).startswith(
        "No action needed. If it persists, find out what else uses the same subscription"
    )


def test_a_delete_without_our_tags_suggests_restoring_them() -> None:
    cloud = ready()
    existing = cluster(cloud)
    cloud.ports.azure.call(PutCluster(ONE, {**existing, "tags": {}}, etag=existing["eTag"]))
    cloud.clock.advance(600)
    push(cloud, fleet_files.fleet())
    cloud.run()
    assert why(cloud)["lastError"]["class"] == "NotOwned"
    assert advice(cloud).startswith("Restore the tags in the message, or delete the resource by hand")


def test_a_cluster_of_another_fleet_suggests_another_name() -> None:
    cloud = MemoryCloud(throttle=False)
    foreign(cloud)
    push(cloud, files())
    cloud.run()
    assert why(cloud)["lastError"]["class"] == "NotOwned"
    assert "Otherwise give the cluster another name; a resource without the tags of a fleet can be" in advice(
        cloud
    )


def test_an_unreadable_repository_is_shown_for_each_cluster() -> None:
    cloud = ready()

    def refused(branch: str) -> str:
        raise Unauthenticated("the token has expired")

    around(cloud, "git_host", read_head=refused)
    push(cloud, files("  tags: {a: b}\n"))
    cloud.run()
    explained = why(cloud)
    assert "the token has expired" in explained["problem"]
    assert explained["suggestedAction"].startswith("The timer plans again")
    assert explained["suggestedAction"].endswith(
        "the key with which it reads the repository (docs/settings.md), and deploys it."
    )


def test_an_invalid_fleet_file_is_named_once_for_the_whole_fleet() -> None:
    cloud = ready()
    pushed = files()
    commit = push(cloud, pushed | {"fleet.yaml": pushed["fleet.yaml"] + b"  guard: {}\n"})
    cloud.run()
    fleet, plan_record = fleet_view(cloud.ports), cloud.state.plan(commit)
    place = "fleet.yaml:" + str(pushed["fleet.yaml"].count(b"\n") + 1)
    assert fleet["problem"].startswith(f"{place}:3 spec.guard: there is no such field")
    assert fleet["fleetSuggestedAction"].startswith("Correct the file")
    assert plan_record is not None
    assert plan_record.reported == f"failure: {fleet['problem']}"
