"""Flux that breaks after its cluster was verified: a check reports it, and takes it back when it is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.app.api.projection import iso
from shared.app.api.views.clusters import cluster_detail
from shared.app.api.views.why import why_view
from shared.app.worker.steps.flux.waiting import MOST, described
from shared.cluster.failures.errors import Unavailable
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import KUSTOMIZATION, NAMESPACE, SOURCE
from shared.ports.git_host import BranchCommit
from shared.resource_ids import ObjectRef
from tests.support.checks import check, condition, pass_time
from tests.support.one_cluster import ONE, advice, api, branch_files, ready, record
from tests.support.pipeline_runs import phases, push, status
from tests.support.replaced_ports import around
from tests.support.sweeps import delete_by_hand, ready_condition, sweep, tag_by_hand

pytestmark = pytest.mark.lives

BROKEN = {"platform/broken.yaml": b"kind: [unfinished"}
AUTHOR = "operator@example.invalid"
CONTROLLER = ObjectRef("apps/v1", "Deployment", "source-controller", NAMESPACE)


def state_of_commit(cloud: MemoryCloud) -> tuple[str, str]:
    return status(cloud, cloud.repository.head("main"))


def broken_by_a_commit() -> tuple[MemoryCloud, str]:
    """Return a cloud in which a commit broke what Flux applies, after a check found that."""
    cloud = ready(fleet=branch_files)
    check(cloud)
    assert condition(record(cloud)).status is True
    commit = push(cloud, branch_files() | BROKEN)
    cloud.run()
    check(cloud)
    return cloud, commit


def test_a_commit_that_breaks_flux_is_named_with_who_changed_the_path() -> None:
    cloud, commit = broken_by_a_commit()
    found = condition(record(cloud))
    assert (found.status, found.reason) == (False, "BuildFailed")
    assert found.message.startswith("the Kustomization flux-system in flux-system: BuildFailed: ")
    assert f" last; since then {commit[:8]} by {AUTHOR} has changed ./platform)" in found.message
    assert found.observed_generation == 1


def committed(cloud: MemoryCloud, path: str, content: bytes, author: str) -> str:
    """Commit a file, which Flux fetches by itself."""
    return cloud.repository.commit({path: content}, author=f"{author}@example.com")


def broken_by(cloud: MemoryCloud) -> str:
    """Return what a check says of the commits behind Flux that is broken."""
    check(cloud)
    found = condition(record(cloud))
    assert (found.status, found.reason) == (False, "BuildFailed")
    _, _, text = found.message.partition(" (Flux tried commit")
    return f" (Flux tried commit{text.partition(')')[0]})"


def test_an_unrelated_commit_after_the_one_that_breaks_flux_is_not_named_as_the_cause() -> None:
    cloud = ready(fleet=branch_files)
    applied = cloud.repository.head("main")
    bad = committed(cloud, "platform/broken.yaml", b"kind: [unfinished", "ann")
    other = committed(cloud, "docs/x.md", b"hello", "bob")
    tried = f"Flux tried commit {other[:8]} and applied {applied[:8]} last"
    assert broken_by(cloud) == f" ({tried}; since then {bad[:8]} by ann@example.com has changed ./platform)"


def test_who_changes_the_path_afterwards_is_not_named_alone() -> None:
    cloud = ready(fleet=branch_files)
    applied = cloud.repository.head("main")
    bad = committed(cloud, "platform/broken.yaml", b"kind: [unfinished", "ann")
    check(cloud)
    other = committed(cloud, "platform/harmless.yaml", b"# nothing", "bob")
    tried = f"Flux tried commit {other[:8]} and applied {applied[:8]} last"
    both = f"{other[:8]} by bob@example.com, {bad[:8]} by ann@example.com"
    several = "since then 2 commits have changed ./platform, and any may be the cause"
    assert broken_by(cloud) == f" ({tried}; {several}; newest first: {both})"


def test_a_history_that_cannot_be_read_names_no_cause() -> None:
    cloud = ready(fleet=branch_files)
    bad = committed(cloud, "platform/broken.yaml", b"kind: [unfinished", "ann")

    def away(*_: object) -> Sequence[BranchCommit]:
        raise Unavailable("GitHub did not answer")

    around(cloud, "git_host", changes=away)
    assert broken_by(cloud) == f" (Flux tried commit {bad[:8]})"


def change(number: int) -> BranchCommit:
    return BranchCommit(f"{number:040x}", f"a{number}@example.com", "")


def test_what_was_applied_is_never_named_and_a_long_list_is_not_given_as_a_whole() -> None:
    changes = [change(number) for number in range(5)]
    text = described(changes, changes[1:], "c0ffee", "./platform")
    assert text.endswith(f"since then {changes[0].commit[:8]} by a0@example.com has changed ./platform")
    assert described(changes, changes, "c0ffee", "./").endswith("; nothing in ./ itself has changed since")
    assert "since then 5 commits have changed ./ " not in described(changes, [], "c0ffee", "./")
    assert described(changes, [], "c0ffee", "./").endswith(" by a2@example.com, ...")
    assert "since then at least 30 commits" in described([*map(change, range(MOST))], [], "c0ffee", "./")
    assert described(changes, [], "", "./").startswith("; ./ was changed last by 00000000 by a0@")
    assert described([], [], "", "./") == ""


def test_flux_may_be_broken_for_a_while_before_the_cluster_is_no_longer_ready() -> None:
    cloud, _ = broken_by_a_commit()
    assert phases(cloud) == {"one": Phase.READY}
    assert state_of_commit(cloud)[0] == "success"
    shown = why_view("one", cloud.ports)
    assert shown is not None
    assert "FluxHealthy is False: the Kustomization flux-system" in shown["doing"]
    assert "Correct what the message names" in shown["suggestedAction"]
    cloud.run(seconds=cloud.ports.config.timing.unhealthy_seconds + 60, until=lambda: record(cloud).failed)
    cloud.run(seconds=60)
    assert ready_condition(record(cloud)) == (False, "FluxUnhealthy")
    state, description = state_of_commit(cloud)
    assert (state, "the Kustomization flux-system" in description) == ("failure", True)


def test_a_commit_that_repairs_flux_makes_the_cluster_ready_again_without_a_job() -> None:
    cloud, _ = broken_by_a_commit()
    pass_time(cloud, 1800)
    check(cloud)
    assert record(cloud).finding == "FluxUnhealthy"
    started = record(cloud).job.started
    push(cloud, branch_files())
    cloud.run()
    check(cloud)
    assert (phases(cloud), record(cloud).finding) == ({"one": Phase.READY}, "")
    assert (condition(record(cloud)).status, ready_condition(record(cloud))) == (True, (True, "Done"))
    assert state_of_commit(cloud)[0] == "success"
    assert record(cloud).job.started == started


def test_an_unhealthy_cluster_is_checked_until_it_is_healthy_without_the_timer() -> None:
    cloud, _ = broken_by_a_commit()
    cloud.run(seconds=7200, until=lambda: record(cloud).failed)
    push(cloud, branch_files())
    cloud.run(seconds=7200)
    assert (phases(cloud), condition(record(cloud)).status) == ({"one": Phase.READY}, True)
    assert cloud.idle(), "and then no longer"


def delete_flux(cloud: MemoryCloud) -> None:
    """Delete Flux from the cluster as ``flux uninstall`` does: what runs, then its definitions."""
    for name in ("source-controller", "kustomize-controller"):
        api(cloud).delete(api(cloud).get(replace(CONTROLLER, name=name)) or {})
    for document in api(cloud).list("apiextensions.k8s.io/v1", "CustomResourceDefinition"):
        api(cloud).delete(document)


def test_flux_that_somebody_deleted_is_found_and_a_replay_installs_it_again() -> None:
    cloud = ready(fleet=branch_files)
    delete_flux(cloud)
    check(cloud)
    found = condition(record(cloud))
    assert (found.status, found.reason) == (False, "ObjectMissing")
    assert "Roadstead applied it, and it no longer exists; and " in found.message
    assert replay("one", "an operator", cloud.ports).status == 202
    cloud.run()  # a job that ends has the cluster checked again
    assert (phases(cloud), condition(record(cloud)).status) == ({"one": Phase.READY}, True)


def test_an_object_that_somebody_changed_is_named_with_its_fields() -> None:
    cloud = ready(fleet=branch_files)
    live = api(cloud).get(SOURCE)
    assert live is not None
    api(cloud).replace({**live, "spec": {**live["spec"], "url": "https://github.com/example/other"}})
    check(cloud)
    messages = condition(record(cloud)).message
    assert "somebody changed what Roadstead applied: spec.url" in messages


def test_a_controller_that_somebody_scaled_is_not_as_it_was_applied() -> None:
    cloud = ready(fleet=branch_files)
    live = api(cloud).get(CONTROLLER)
    assert live is not None
    api(cloud).replace({**live, "spec": {**live["spec"], "replicas": 0}})
    check(cloud)
    assert condition(record(cloud)).message == (  # the Kustomization may be at work: its source comes back
        "the Deployment source-controller in flux-system: somebody changed what Roadstead applied"
    )


def test_flux_that_somebody_suspended_does_not_follow_git() -> None:
    cloud = ready(fleet=branch_files)
    live = api(cloud).get(KUSTOMIZATION)
    assert live is not None
    api(cloud).replace({**live, "spec": {**live["spec"], "suspend": True}})
    check(cloud)
    assert condition(record(cloud)).reason == "Suspended"


def test_a_sweep_leaves_what_a_check_found_and_a_check_what_a_sweep_found() -> None:
    cloud, _ = broken_by_a_commit()
    pass_time(cloud, 1800)
    check(cloud)
    before = record(cloud).job
    assert record(cloud).finding == "FluxUnhealthy"
    sweep(cloud)
    assert record(cloud).job == before
    cloud.azure.interventions.stop(record(cloud).desired.id)
    sweep(cloud)
    assert record(cloud).finding == "ClusterStopped"
    check(cloud)
    found = condition(record(cloud))
    assert (found.status, found.reason) == (None, "NotRead")
    assert "a sweep found ClusterStopped" in found.message
    assert record(cloud).finding == "ClusterStopped"


def test_a_check_says_what_is_so_of_flux_on_a_cluster_whose_operation_failed() -> None:
    cloud = ready("  drift: {fluxObjects: correct}\n", fleet=branch_files)
    cloud.azure.interventions.fail_next("one", "QuotaExceeded", "no vCPUs are left")
    tag_by_hand(cloud, ONE, own="x")
    sweep(cloud)
    assert record(cloud).finding == "ClusterFailed"
    check(cloud)
    assert condition(record(cloud)).status is True
    live = api(cloud).get(KUSTOMIZATION)
    assert live is not None
    api(cloud).delete(live)
    check(cloud)
    found = condition(record(cloud))
    assert (found.status, found.reason) == (False, "ObjectMissing")
    assert record(cloud).finding == "ClusterFailed", "what a sweep found is over with a sweep"
    tag_by_hand(cloud, ONE, own="y")
    sweep(cloud)
    assert (phases(cloud), record(cloud).finding) == ({"one": Phase.READY}, "")
    check(cloud)
    cloud.run()
    check(cloud)
    assert condition(record(cloud)).status is True
    assert api(cloud).get(KUSTOMIZATION) is not None


@pytest.mark.parametrize("how", ["stopped", "deleted", "claimed"])
def test_no_check_enters_a_cluster_that_is_stopped_or_missing_or_claimed(how: str) -> None:
    cloud = ready(fleet=branch_files)
    if how == "stopped":
        cloud.azure.interventions.stop(ONE)
    elif how == "deleted":
        delete_by_hand(cloud, ONE)
    else:
        tag_by_hand(cloud, ONE, **{"roadstead-contested-by": "other@staging"})
    sweep(cloud)
    kind = record(cloud).finding
    check(cloud)
    found = condition(record(cloud))
    assert (found.status, found.reason) == (None, "NotRead")
    assert found.message.startswith(f"a sweep found {kind}: ")


def test_the_api_shows_what_is_unknown_and_since_when_something_is_so() -> None:
    cloud, _ = broken_by_a_commit()
    shown: Any = cluster_detail("one", cloud.ports)
    (found,) = (document for document in shown["conditions"] if document["type"] == "FluxHealthy")
    assert (found["status"], found["observedGeneration"]) == ("False", 1)
    assert found["lastVerifiedTime"] == str(iso(condition(record(cloud)).verified))
    assert shown["reason"].startswith("FluxUnhealthy: the Kustomization flux-system")
    assert advice(cloud).startswith("Correct what the message names")


def test_a_check_renews_that_a_cluster_is_not_ready_while_it_finds_the_same() -> None:
    cloud, _ = broken_by_a_commit()
    pass_time(cloud, 1800)
    check(cloud)
    lost = ready_shown(cloud)
    assert lost["status"] == "False"
    pass_time(cloud, 1800)
    check(cloud)
    renewed = ready_shown(cloud)
    assert renewed["lastTransitionTime"] == lost["lastTransitionTime"]
    assert renewed["lastVerifiedTime"] == iso(condition(record(cloud)).verified)
    assert str(renewed["lastVerifiedTime"]) > str(lost["lastVerifiedTime"])
    cloud.azure.interventions.stop(record(cloud).desired.id)
    sweep(cloud)
    check(cloud)
    assert ready_shown(cloud)["reason"] == "ClusterStopped"


def test_a_check_that_cannot_read_a_cluster_verifies_nothing() -> None:
    cloud, _ = broken_by_a_commit()
    pass_time(cloud, 1800)
    check(cloud)
    lost = ready_shown(cloud)
    cloud.kubernetes.stop(record(cloud).desired.id)
    pass_time(cloud, 60)
    check(cloud)
    assert condition(record(cloud)).status is None
    assert ready_shown(cloud)["lastVerifiedTime"] == lost["lastVerifiedTime"]


def ready_shown(cloud: MemoryCloud) -> Any:
    """Return the condition Ready as the API shows it."""
    shown: Any = cluster_detail("one", cloud.ports)
    return next(document for document in shown["conditions"] if document["type"] == "Ready")


def test_the_objects_of_teams_count_too() -> None:
    cloud = ready(fleet=branch_files)
    api(cloud).apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    live = api(cloud).get(KUSTOMIZATION)
    assert live is not None
    metadata = {"name": "shop", "namespace": "shop"}
    source = {"kind": "GitRepository", "name": "shop"}
    identity = {"apiVersion": KUSTOMIZATION.api_version, "kind": KUSTOMIZATION.kind, "metadata": metadata}
    api(cloud).apply({**identity, "spec": {**live["spec"], "sourceRef": source}})
    check(cloud)
    found = condition(record(cloud))
    assert (found.status, found.reason) == (False, "ArtifactFailed")
    assert found.message.startswith("the Kustomization shop in shop: ArtifactFailed: ")
