"""A replacement: a cluster is created next to the one that it replaces, which is deleted once it is Ready."""

from __future__ import annotations

import pytest

from localcloud.memory.crashes import Counter
from localcloud.memory.memory_cloud import MemoryCloud, tripwired
from shared.app.api.acts.approval import approve
from shared.app.api.acts.cluster import replay
from shared.app.api.views.why import why_view
from shared.app.recovery.missed_work import resend_overdue
from shared.cluster.record_parts import Phase
from shared.plan.holds import HoldKind
from shared.plan.plan import Action, Item
from tests.support import fleet_files, lost_tables
from tests.support.crash_points import run_with_crashes
from tests.support.one_cluster import ONE
from tests.support.pipeline_runs import accepted, deliver_due, phases, push, ready, status, step_until
from tests.support.sample import sample
from tests.support.team_systems import system

pytestmark = pytest.mark.lives

Files = dict[str, bytes]
NEW = "clusters/two/cluster.yaml"
PROTECTED = "  deletionProtection: true\n"


def naming(old: str = "one", extra: str = "", *, also: str = "") -> Files:
    """Return a fleet whose cluster "two" replaces another one; ``also`` is a cluster that git still has."""
    manifest = fleet_files.cluster("two", extra=extra).decode()
    annotated = f"  name: two\n  annotations: {{roadstead.dev/replaces: {old}}}\n"
    files = fleet_files.fleet(*also.split())
    return files | {NEW: manifest.replace("  name: two\n", annotated, 1).encode()}


def item(cloud: MemoryCloud, commit: str, name: str = "one") -> Item:
    plan = cloud.state.plan(commit)
    assert plan is not None
    return next(item for item in plan.plan.items if item.cluster == name)


def replacing(extra: str = "") -> tuple[MemoryCloud, str]:
    """Return a cloud in which a commit that replaces the cluster is planned, and that commit."""
    cloud = ready("one")
    commit = push(cloud, naming(extra=extra))
    step_until(cloud, lambda: cloud.state.fleet().commit == commit)
    return cloud, commit


def why(cloud: MemoryCloud) -> str:
    view = why_view("one", cloud.ports)
    assert view is not None
    return f"{view['doing']} / {view['next']} / {view['suggestedAction']}"


def failed() -> tuple[MemoryCloud, str]:
    """Return a cloud in which Azure could not create the new cluster, and the commit that asks for it."""
    cloud = ready("one")
    cloud.azure.interventions.fail_next("two", "InvalidParameter", "no vCPUs are left")
    commit = push(cloud, naming())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.FAILED}
    return cloud, commit


def test_the_old_cluster_is_deleted_once_the_new_one_is_ready_and_not_before() -> None:
    cloud, commit = replacing()
    assert item(cloud, commit).hold is not None
    assert (item(cloud, commit, "two").action, item(cloud, commit).awaits_replacement) == (
        Action.CREATE,
        True,
    )
    seen: list[tuple[Phase | None, Phase | None]] = []

    def both() -> bool:
        found = phases(cloud)
        seen.append((found.get("one"), found.get("two")))
        return "one" not in found

    step_until(cloud, both)
    begins = next(position for position, (old, _) in enumerate(seen) if old is Phase.DELETING)
    assert {new for _, new in seen[begins:]} == {Phase.READY}
    cloud.run()
    assert (phases(cloud), accepted(cloud)["delete", "one"]) == ({"two": Phase.READY}, 1)
    assert status(cloud, commit) == ("success", "2 of 2 clusters in sync (1 create, 1 delete)")


def test_the_end_of_the_job_starts_the_delete_without_a_timer() -> None:
    cloud, _ = replacing()
    step_until(cloud, lambda: phases(cloud)["two"] is Phase.READY)
    before = cloud.clock()
    step_until(cloud, lambda: phases(cloud).get("one") is Phase.DELETING)
    assert (cloud.clock() - before).total_seconds() < 5


def test_a_message_that_is_lost_there_is_sent_by_the_timer_and_only_while_a_delete_waits() -> None:
    cloud, _ = replacing()
    step_until(cloud, lambda: phases(cloud)["two"] is Phase.READY)
    lost = [m for m in cloud.broker.peek("plans") if b'"replaced"' in m.draft.body]
    assert lost
    resend_overdue(cloud.ports)
    cloud.run()
    assert (phases(cloud), cloud.state.fleet().expects.ready) == ({"two": Phase.READY}, {})


def test_why_and_the_commit_status_say_what_the_delete_waits_for() -> None:
    cloud, commit = replacing()
    step_until(cloud, lambda: "two" in phases(cloud))
    said = why(cloud)
    assert "its delete waits until two, which replaces it, is Ready" in said
    assert "two is Provisioning since" in said
    assert "the planner starts the delete by itself once that is so" in said
    assert "roadstead why two" in said
    step_until(cloud, lambda: bool(cloud.repository.statuses.latest(commit)))
    text = "0 of 2 clusters in sync; one: its delete waits until two, which replaces it, is Ready"
    assert status(cloud, commit) == ("pending", text)


def test_a_cluster_that_never_becomes_ready_keeps_the_old_one_and_the_status_ends() -> None:
    cloud, commit = failed()
    state, text = status(cloud, commit)
    assert (state, text.startswith("two: Failed")) == ("failure", True)
    assert "two is Failed since" in why(cloud)
    assert replay("two", "jo", cloud.ports).status == 202
    cloud.run()
    assert (phases(cloud), status(cloud, commit)[0]) == ({"two": Phase.READY}, "success")


def test_a_suspended_new_cluster_ends_the_status_too() -> None:
    cloud = ready("one")
    until = cloud.clock().replace(microsecond=0, year=2999).strftime("%Y-%m-%dT%H:%M:%SZ")
    commit = push(cloud, naming(extra=f'  suspend: {{owner: a, reason: b, until: "{until}"}}\n'))
    cloud.run(seconds=3600)
    assert (phases(cloud)["one"], phases(cloud)["two"]) == (Phase.READY, Phase.SUSPENDED)
    assert status(cloud, commit)[0] == "error"


def test_an_invalid_manifest_creates_nothing_and_deletes_nothing() -> None:
    cloud = ready("one")
    files = naming()
    commit = push(cloud, files | {NEW: files[NEW] + b"  x: y\n"})
    cloud.run()
    assert (phases(cloud), status(cloud, commit)[0]) == ({"one": Phase.READY}, "failure")
    assert item(cloud, commit).awaits_replacement
    push(cloud, naming())
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}


@pytest.mark.parametrize("moment", ["in work", "failed"])
def test_a_new_cluster_that_is_removed_again_leaves_the_old_one_to_a_person(moment: str) -> None:
    cloud, _ = failed() if moment == "failed" else replacing()
    step_until(cloud, lambda: "two" in phases(cloud))
    commit = push(cloud, fleet_files.fleet(budget=9))
    cloud.run()
    assert (phases(cloud), accepted(cloud)["delete", "one"]) == ({"one": Phase.READY}, 0)
    hold = item(cloud, commit).hold
    assert hold is not None
    assert (hold.kind, item(cloud, commit).needs_approval) == (HoldKind.REPLACEMENT_GONE, True)
    assert status(cloud, commit)[0] == "failure"
    push(cloud, fleet_files.fleet(budget=9) | {"README.md": b"another commit"})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    commit = cloud.state.fleet().commit
    assert approve(commit, ["one"], "jo", cloud.ports).status == 202
    cloud.run()
    assert (phases(cloud), status(cloud, commit)[0]) == ({}, "success")


def test_a_protected_cluster_needs_its_approval_once_the_new_one_is_ready() -> None:
    cloud = MemoryCloud()
    push(
        cloud,
        fleet_files.fleet() | {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra=PROTECTED)},
    )
    cloud.run()
    commit = push(cloud, naming())
    assert approve(commit, ["one"], "jo", cloud.ports).status != 202
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    assert "deletionProtection is on" in status(cloud, commit)[1]
    assert approve(commit, ["one"], "jo", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}


def test_the_folder_can_be_removed_by_a_later_commit() -> None:
    cloud = ready("one")
    push(cloud, naming(also="one"))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
    push(cloud, naming())
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}


def test_a_name_in_azure_that_the_old_cluster_has_is_refused_in_the_plan() -> None:
    cloud = MemoryCloud()
    given = "  nodeResourceGroup: nodes\n"
    push(cloud, fleet_files.fleet() | {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra=given)})
    cloud.run()
    commit = push(cloud, naming(extra=given))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert "one has nodeResourceGroup nodes in the same subscription too" in str(
        item(cloud, commit, "two").hold
    )


def test_a_region_that_cannot_delete_keeps_nobody_from_the_new_cluster_and_the_status_says_so() -> None:
    cloud, commit = replacing()
    step_until(cloud, lambda: accepted(cloud)["delete", "one"] == 1)
    cloud.azure.interventions.abort(ONE)
    cloud.run()
    assert phases(cloud) == {"one": Phase.FAILED, "two": Phase.READY}
    assert status(cloud, commit)[0] == "failure"
    assert "one: Failed at delete-cluster" in status(cloud, commit)[1]
    push(cloud, naming() | {"README.md": b"another commit"})
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}


def test_a_delete_that_has_not_begun_waits_where_the_new_cluster_is_not_ready_any_more() -> None:
    cloud, _ = replacing()
    step_until(cloud, lambda: phases(cloud).get("one") is Phase.DELETING)
    assert accepted(cloud)["delete", "one"] == 0
    push(cloud, naming(extra="    - {name: apps, vmSize: Standard_D4s_v5, count: 1}\n"))
    while phases(cloud)["two"] is Phase.READY:
        deliver_due(cloud, "plans")  # the deleter stands still meanwhile
        cloud.clock.advance(1)
    step_until(cloud, lambda: phases(cloud)["two"] is Phase.READY)
    assert accepted(cloud)["delete", "one"] == 0
    assert "two, which replaces the cluster, is not Ready any more: it is Updating" in why(cloud)
    cloud.run()
    assert phases(cloud) == {"two": Phase.READY}


def test_a_crash_at_any_point_deletes_once_and_only_after_the_new_cluster_is_ready() -> None:
    def replaced(counter: Counter) -> None:
        cloud, _ = replacing()
        cloud.with_ports(lambda ports: tripwired(ports, counter))
        cloud.run()
        assert phases(cloud) == {"two": Phase.READY}
        made = [(write["accepted"], write["resource"].rsplit("/", 1)[-1]) for write in cloud.azure.accepted]
        assert made.index(("create", "two")) < made.index(("delete", "one"))
        assert (accepted(cloud)["create", "two"], accepted(cloud)["delete", "one"]) == (1, 1)
        assert cloud.dead_letters == []

    run_with_crashes(replaced, least=100, most=6)


def test_tables_that_are_lost_while_it_waits_delete_nothing() -> None:
    cloud = lost_tables.ready(fleet_files.fleet("one"))
    push(cloud, naming())
    step_until(cloud, lambda: "two" in phases(cloud))
    lost_tables.lose(cloud)
    cloud.run()
    assert accepted(cloud)["delete", "one"] == 0


def test_a_crash_at_any_call_of_a_plan_deletes_no_cluster_whose_replacement_is_misspelt() -> None:
    def misspelt(counter: Counter) -> int:
        cloud = ready("one")
        commit = push(cloud, naming("oen"))
        cloud.with_ports(lambda ports: tripwired(ports, counter))
        step_until(cloud, lambda: cloud.state.fleet().commit == commit)
        calls = counter.calls
        cloud.run()
        hold = item(cloud, commit).hold
        assert hold is not None
        assert (hold.kind, accepted(cloud)["delete", "one"]) == (HoldKind.REPLACEMENT_UNKNOWN, 0)
        assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
        return calls

    calls = misspelt(Counter())
    assert calls > 15
    for point in sample("misspelt", range(2 * calls + 1), 6):
        misspelt(Counter(point))


def test_a_replacement_that_its_systems_make_too_large_still_holds_the_delete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shared.language.resolve.cluster_resolver.MAX_RESOLVED_BYTES", 20_000)
    cloud = ready("one")
    cloud.azure.interventions.fail_next("two", "InvalidParameter", "no vCPUs are left")
    push(cloud, naming(also="one"))
    cloud.run()
    systems = {f"systems/s{number}.yaml": system(f"s{number}", "two") for number in range(60)}
    commit = push(cloud, naming() | systems)
    step_until(cloud, lambda: cloud.state.fleet().commit == commit)
    assert phases(cloud) == {"one": Phase.READY, "two": Phase.FAILED}
    assert item(cloud, commit, "two").action is Action.INVALID
    assert item(cloud, commit).awaits_replacement
