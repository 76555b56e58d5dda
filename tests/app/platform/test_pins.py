"""A commit that changes what Flux applies is planned, staged and verified like a change of a manifest."""

from __future__ import annotations

from typing import Any, cast

import pytest

from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.why import why_view
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import SOURCE
from shared.plan.plan import Action
from shared.ports import KubernetesApi
from tests.support import one_cluster
from tests.support.pipeline_runs import accepted, phases, push, record_of, status
from tests.support.replaced_ports import Around, around
from tests.support.staged_fleets import (
    APPROVED_STAGES,
    DEV,
    NAMESPACE,
    PROD,
    on,
    pin,
    pulls,
    ready_fleet,
    staged,
    with_file,
)

pytestmark = pytest.mark.lives


def test_a_commit_that_changes_what_flux_applies_goes_through_the_stages() -> None:
    cloud = ready_fleet()
    first = pin(cloud, DEV[0]).commit
    commit = push(cloud, with_file("monitoring.yaml", NAMESPACE))
    cloud.run(until=lambda: any(pulls(cloud, name).endswith(commit) for name in PROD))
    assert on(cloud, commit) >= {*DEV}
    assert all(phases(cloud)[name] is Phase.READY for name in DEV)
    cloud.run()
    assert on(cloud, commit) == {*DEV, *PROD}
    assert status(cloud, commit)[0] == "success"
    assert pin(cloud, PROD[0]).before == first
    assert cloud.git_host.tip(f"roadstead/pin/example/{commit}") == commit


def test_a_new_and_a_rebuilt_cluster_start_at_what_their_stage_completed_last() -> None:
    cloud = ready_fleet(APPROVED_STAGES)
    first = pin(cloud, PROD[0]).commit
    changed = with_file("monitoring.yaml", NAMESPACE, staged(APPROVED_STAGES))
    commit = push(cloud, changed)
    cloud.run(until=lambda: on(cloud, commit) >= {*DEV})
    path = "clusters/b1/cluster.yaml"
    asked = b'metadata:\n  annotations: {roadstead.dev/rebuild: "2026-01-02T00:00:00Z"}\n'
    again = {path: changed[path].replace(b"metadata:\n", asked)}
    new = {"clusters/b5/cluster.yaml": changed[path].replace(b"b1", b"b5")}
    push(cloud, changed | again | new)
    cloud.run()
    assert (accepted(cloud)["delete", "b1"], on(cloud, commit)) == (1, {*DEV})
    assert (phases(cloud)["b5"], pulls(cloud, "b5")) == (Phase.READY, f"roadstead/pin/example/{first}")
    assert (phases(cloud)["b1"], pulls(cloud, "b1")) == (Phase.READY, f"roadstead/pin/example/{first}")


def test_only_the_clusters_whose_folder_changes_get_the_commit() -> None:
    cloud = ready_fleet()
    more = "  flux: {kustomizations: [{name: more, path: ./apart}]}\n"
    apart = staged(extra=more, only=PROD) | {
        "apart/more.yaml": NAMESPACE.replace(b"monitoring", b"more, labels: {}")
    }
    first = push(cloud, apart)
    cloud.run()
    assert status(cloud, first)[0] == "success"
    commit = push(cloud, apart | {"apart/more.yaml": apart["apart/more.yaml"].replace(b"{}", b"{a: b}")})
    cloud.run()
    assert on(cloud, commit) == {*PROD}
    plan = cloud.state.plan(commit)
    assert plan is not None
    assert {item.cluster for item in plan.plan.items if item.action is Action.UPDATE} == {*PROD}


def test_a_commit_that_changes_no_file_of_the_platform_moves_no_pin() -> None:
    cloud = ready_fleet()
    first = pin(cloud, DEV[0])
    commit = push(cloud, staged() | {"README.md": b"# the fleet\n"})
    cloud.run()
    assert pin(cloud, DEV[0]) == first
    assert status(cloud, commit)[0] == "success"
    assert cloud.git_host.tip(f"roadstead/pin/example/{commit}") is None


def test_what_flux_cannot_apply_stops_in_the_first_stage_and_the_revert_passes() -> None:
    cloud = ready_fleet()
    first = pin(cloud, PROD[0]).commit
    unknown = b"apiVersion: example.org/v1\nkind: Unknown\nmetadata: {name: a, namespace: default}\n"
    commit = push(cloud, with_file("unknown.yaml", unknown))
    cloud.run(seconds=3600, until=lambda: False)
    state, text = status(cloud, commit)
    assert state == "failure"
    assert text.startswith("rollout paused: a1: ") or text.startswith("a1: ")
    assert on(cloud, first) >= {*PROD}
    why = why_view("a1", cloud.ports)
    assert why is not None
    assert "Kustomization" in why["doing"]
    back = push(cloud, staged())
    cloud.run()
    assert status(cloud, back)[0] == "success"
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)


def test_what_is_invalid_moves_no_pin_and_the_status_says_why() -> None:
    cloud = ready_fleet()
    first = pin(cloud, DEV[0]).commit
    bad = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: Apps_Bad}\n"
    commit = push(cloud, with_file("bad.yaml", bad))
    cloud.run(seconds=600, until=lambda: False)
    assert on(cloud, first) == {*DEV, *PROD}
    state, text = status(cloud, commit)
    assert (state, "Apps_Bad" in text or "platform/bad.yaml" in text) == ("failure", True)
    why = why_view("a1", cloud.ports)
    assert why is not None
    back = push(cloud, staged())
    cloud.run()
    assert status(cloud, back)[0] == "success"
    assert on(cloud, first) == {*DEV, *PROD}


def test_the_rest_of_a_change_is_carried_out_while_the_pin_stays() -> None:
    cloud = ready_fleet()
    first = pin(cloud, DEV[0]).commit
    bad = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: Apps_Bad}\n"
    commit = push(cloud, with_file("bad.yaml", bad, staged(extra="  tags: {change: x}\n")))
    cloud.run(seconds=3600)
    assert on(cloud, first) == {*DEV, *PROD}
    record = record_of(cloud, "a1")
    assert (record.commit, record.document["spec"]["tags"]["change"]) == (commit, "x")
    assert status(cloud, commit)[0] == "failure"


def test_what_destroys_a_namespace_waits_for_an_approval_of_that_commit() -> None:
    cloud = ready_fleet()
    push(cloud, with_file("monitoring.yaml", NAMESPACE))
    cloud.run()
    before = pin(cloud, DEV[0]).commit
    commit = push(cloud, staged())
    cloud.run(seconds=600, until=lambda: False)
    assert on(cloud, before) == {*DEV, *PROD}
    plan = cloud.state.plan(commit)
    assert plan is not None
    assert plan.plan.deletes_needing_approval == {*DEV, *PROD}
    assert "Namespace monitoring is deleted" in str(plan.plan.items[0].hold)


def test_another_path_waits_for_an_approval_where_flux_would_destroy_what_it_had() -> None:
    cloud = ready_fleet()
    apart = {"apart/more.yaml": NAMESPACE}
    commit = push(cloud, staged(extra="  flux: {path: ./apart}\n", only=PROD) | apart)
    cloud.run(seconds=600, until=lambda: False)
    plan = cloud.state.plan(commit)
    assert plan is not None
    assert plan.plan.deletes_needing_approval == {*PROD}
    record = record_of(cloud, PROD[0])
    assert record.document["spec"]["flux"]["path"] == "./platform"
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)


@pytest.mark.parametrize("ahead", [True, False])
def test_a_pin_that_somebody_moved_goes_forward_and_never_back(ahead: bool) -> None:
    cloud = one_cluster.ready()
    first = one_cluster.record(cloud).desired.pin
    more = one_cluster.files() | {"platform/monitoring.yaml": NAMESPACE}
    second = push(cloud, more)
    cloud.run()
    third = push(cloud, more | {"README.md": b"# the fleet\n"})
    cloud.run()
    assert first is not None
    theirs = third if ahead else first.commit
    if ahead:
        cloud.git_host.move_branch(f"roadstead/pin/example/{third}", None, third)
    kind = one_cluster.world(cloud).kind(SOURCE.api_version, SOURCE.kind)
    assert kind is not None
    patch = {"spec": {"ref": {"branch": f"roadstead/pin/example/{theirs}"}}}
    at = At(kind, SOURCE.name, SOURCE.namespace)
    one_cluster.world(cloud).patch(at, patch, MERGE, WriteMode(manager="kubectl-patch"))
    tagged = one_cluster.files("  tags: {a: b}\n")
    newest = push(cloud, more | {"clusters/one/cluster.yaml": tagged["clusters/one/cluster.yaml"]})
    cloud.run(seconds=300, until=lambda: False)
    assert phases(cloud) == {"one": Phase.READY}
    expected = newest if ahead else second  # another plan brings what is ahead to the head
    assert one_cluster.live(cloud, SOURCE)["spec"]["ref"]["branch"] == f"roadstead/pin/example/{expected}"


@pytest.mark.parametrize("call", ["list", "apply"])
def test_an_instance_that_stood_still_before_a_call_takes_no_pin_back(call: str) -> None:
    cloud = one_cluster.ready()
    more = one_cluster.files() | {"platform/monitoring.yaml": NAMESPACE}
    kind = one_cluster.world(cloud).kind(SOURCE.api_version, SOURCE.kind)
    assert kind is not None
    at, newer, connect = At(kind, SOURCE.name, SOURCE.namespace), list[str](), cloud.ports.kubernetes.connect

    def connected(*args: Any, **options: Any) -> KubernetesApi:
        api = connect(*args, **options)

        def late(*what: Any, **how: Any) -> Any:
            asked = what[0]["kind"] if call == "apply" else what[1]
            if asked == SOURCE.kind and not (how.get("dry_run") or newer):
                newer.append(
                    push(cloud, more | {"platform/more.yaml": NAMESPACE.replace(b"monitoring", b"more")})
                )
                cloud.git_host.move_branch(f"roadstead/pin/example/{newer[0]}", None, newer[0])
                patch = {"spec": {"ref": {"branch": f"roadstead/pin/example/{newer[0]}"}}}
                one_cluster.world(cloud).patch(at, patch, MERGE, WriteMode(manager="roadstead"))
            return getattr(api, call)(*what, **how)

        wrapped: Any = Around(api, **{call: late})
        return cast("KubernetesApi", wrapped)

    around(cloud, "kubernetes", connect=connected)
    push(cloud, more)
    cloud.run(until=lambda: bool(newer))
    assert one_cluster.live(cloud, SOURCE)["spec"]["ref"] == {"branch": f"roadstead/pin/example/{newer[0]}"}
    cloud.run()
    assert one_cluster.live(cloud, SOURCE)["spec"]["ref"] == {"branch": f"roadstead/pin/example/{newer[0]}"}
    assert phases(cloud) == {"one": Phase.READY}


def test_a_cluster_is_not_created_where_what_flux_would_apply_is_invalid() -> None:
    cloud = MemoryCloud()
    bad = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: Apps_Bad}\n"
    commit = push(cloud, with_file("bad.yaml", bad))
    cloud.run(seconds=300, until=lambda: False)
    assert phases(cloud) == {}
    plan = cloud.state.plan(commit)
    assert plan is not None
    assert plan.plan.items[0].reason.startswith("the cluster is not created, because what Flux would apply ")
    push(cloud, staged())
    cloud.run()
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)
