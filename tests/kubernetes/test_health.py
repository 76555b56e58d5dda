"""What is wrong on a cluster, by the conditions of its objects."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.json_tree import Json
from shared.kubernetes.flux_objects import KUSTOMIZATION, SECRET, SOURCE, ref_of
from shared.kubernetes.health import (
    PATIENCE,
    Fault,
    changed,
    deployment_faults,
    flux_faults,
    in_order,
    kinds_of_flux,
    missing,
    node_faults,
    report_of,
    sync_faults,
)
from shared.kubernetes.inside import NAMED, Count
from shared.resource_ids import ObjectRef

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATELY, EARLIER = NOW - PATIENCE / 2, NOW - PATIENCE - timedelta(seconds=1)


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


NO_ARTIFACT = "Source artifact not found"


def live(
    kind: str = "Kustomization",
    name: str = "apps",
    *,
    status: str = "True",
    reason: str = "",
    changed: datetime = EARLIER,
    since: datetime = EARLIER,
    generation: int = 1,
    message: str = "what Flux says",
    **rest: Any,
) -> Json:
    """Return an object of Flux whose condition Ready is of generation 1."""
    fields = {"manager": "kustomize-controller", "operation": "Apply", "time": text(changed)}
    ready = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
        "lastTransitionTime": text(since),
    }
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "shop",
            "generation": generation,
            "managedFields": [
                fields,
                {**fields, "operation": "Update", "subresource": "status", "time": text(NOW)},
            ],
        },
        "spec": rest.pop("spec", {}),
        "status": {"conditions": [ready], **rest},
    }


def faults(*objects: Json) -> list[tuple[str, str]]:
    return [(fault.reason, fault.message) for fault in flux_faults(map(report_of, objects), NOW)]


def test_an_object_that_is_ready_or_suspended_is_no_fault() -> None:
    assert faults(live(), live(status="False", spec={"suspend": True})) == []


def test_a_failure_is_a_fault_at_once_in_the_words_of_flux() -> None:
    failed = live(status="False", reason="HealthCheckFailed", since=NOW)
    assert faults(failed) == [("HealthCheckFailed", "HealthCheckFailed: what Flux says")]


@pytest.mark.parametrize(
    ("tried", "applied", "revision"),
    [("main@sha1:b", "main@sha1:a", "main@sha1:b"), ("main@sha1:a", "main@sha1:a", ""), (None, None, "")],
)
def test_a_revision_is_named_that_flux_could_not_apply(
    tried: str | None, applied: str | None, revision: str
) -> None:
    failed = live(status="False", lastAttemptedRevision=tried, lastAppliedRevision=applied)
    (fault,) = flux_faults(map(report_of, [failed]), NOW)
    assert fault.attempt.revision == revision


def test_flux_at_work_is_a_fault_only_after_a_while() -> None:
    assert faults(live(status="Unknown", reason="Progressing", since=LATELY)) == []
    assert faults(live(status="Unknown", reason="Progressing")) == [
        ("NotReconciled", "Progressing: what Flux says, since 11:49 UTC")
    ]


def test_a_new_generation_that_flux_does_not_see_is_a_fault_after_a_while_whatever_it_said_before() -> None:
    for status in ("True", "False"):
        assert faults(live(status=status, generation=2, changed=LATELY)) == []
        assert faults(live(status=status, generation=2)) == [
            ("NotReconciled", "Flux has not reconciled its newest version yet, since 11:49 UTC")
        ]


def node(status: str | None, since: datetime) -> Json:
    ready = {"type": "Ready", "status": status, "lastTransitionTime": text(since), "message": "no kubelet"}
    conditions = [ready] if status else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-1", "creationTimestamp": text(since)},
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize("status", ["False", "Unknown", None])
def test_a_node_is_a_fault_once_it_is_not_ready_for_a_while(status: str | None) -> None:
    assert list(node_faults([node("True", EARLIER), node(status, LATELY)], NOW)) == []
    (fault,) = node_faults([node(status, EARLIER)], NOW)
    assert fault.reason == "NodeNotReady"
    assert str(fault).startswith("the Node node-1: not ready since 2026-01-01 11:49 UTC")


def test_a_deployment_that_was_changed_a_moment_ago_may_still_roll_out() -> None:
    down = live("Deployment", "helm-controller", spec={"replicas": 1}, observedGeneration=1)
    assert [fault.reason for fault in deployment_faults([down], NOW)] == ["NotRunning"]
    rolling = live("Deployment", "helm-controller", changed=LATELY, spec={"replicas": 1})
    assert list(deployment_faults([rolling], NOW)) == []


def test_sync_objects_that_select_something_else_name_the_fields() -> None:
    wanted = live(spec={"path": "./platform", "prune": True})
    other = live(spec={"path": "./other", "prune": True, "wait": True, "suspend": True})
    found = list(sync_faults([wanted], {ref_of(other): other}))
    assert [(fault.reason, fault.message) for fault in found] == [
        ("ObjectChanged", "somebody changed what Roadstead applied: spec.path"),
        ("Suspended", "somebody suspended it, so the cluster does not follow git"),
    ]
    assert list(sync_faults([wanted], {})) == [missing(ref_of(wanted))]


def test_a_pin_that_somebody_moves_by_hand_is_shown_with_the_manager_and_the_time() -> None:
    wanted = live(
        "GitRepository", "flux-system", spec={"ref": {"branch": "roadstead/pin/a"}, "interval": "1h"}
    )
    moved = live(
        "GitRepository", "flux-system", spec={"ref": {"branch": "roadstead/pin/b"}, "interval": "1h"}
    )
    by_hand: Json = {"f:spec": {"f:ref": {"f:branch": {}}}}
    entries = [
        {"manager": "roadstead", "operation": "Apply", "fieldsV1": {"f:spec": {"f:interval": {}}}},
        {"manager": "kubectl-patch", "operation": "Update", "time": text(EARLIER), "fieldsV1": by_hand},
        {
            "manager": "kubectl-edit",
            "operation": "Update",
            "time": text(LATELY),
            "fieldsV1": {"f:spec": {"f:url": {}}},
        },
    ]
    moved = {**moved, "metadata": {**moved["metadata"], "managedFields": entries}}
    (fault,) = sync_faults([wanted], {ref_of(moved): moved})
    by = f"kubectl-patch at {EARLIER:%Y-%m-%d %H:%M} UTC"
    assert fault.message == f"somebody changed what Roadstead applied: spec.ref ({by})"


def test_causes_come_first() -> None:
    refs = [
        ref_of(live(kind)) for kind in ("HelmRelease", "Kustomization", "OCIRepository", "ServiceAccount")
    ]
    found = in_order([Fault(ref, "Failed", "it failed") for ref in refs])
    kinds = [fault.ref.kind for fault in found]
    assert kinds == ["ServiceAccount", "OCIRepository", "Kustomization", "HelmRelease"]


def test_what_waits_for_another_is_at_work_and_comes_after_what_it_waits_for() -> None:
    waits = live(status="False", reason="DependencyNotReady", since=LATELY)
    assert faults(waits) == []
    waits = live("Kustomization", "addons", status="False", reason="DependencyNotReady")
    failed = live("Kustomization", "infrastructure", status="False", reason="BuildFailed")
    assert [fault.reason for fault in in_order(list(flux_faults(map(report_of, [waits, failed]), NOW)))] == [
        "BuildFailed",
        "DependencyNotReady",
    ]


def test_a_release_whose_chart_is_fetched_is_at_work_until_that_takes_too_long() -> None:
    """Report: fluxcd/helm-controller#1252."""
    lately, long_ago = (
        live("HelmRelease", "web", status="False", reason="SourceNotReady", since=since)
        for since in (LATELY, EARLIER)
    )
    assert faults(lately) == []
    assert [reason for reason, _ in faults(long_ago)] == ["SourceNotReady"]


def test_a_source_that_has_nothing_yet_is_at_work_until_that_takes_too_long() -> None:
    """After each start of Flux, a Kustomization finds no artifact of its source for a moment."""
    lately, long_ago = (
        live(status="False", reason="ArtifactFailed", since=since, message=said)
        for since, said in ((LATELY, f"{NO_ARTIFACT}, retrying in 30s"), (EARLIER, NO_ARTIFACT))
    )
    wrong = live(
        status="False", reason="ArtifactFailed", since=LATELY, message="kustomization path not found"
    )
    assert faults(lately) == []
    assert [reason for reason, _ in faults(long_ago)] == ["ArtifactFailed"]
    assert [reason for reason, _ in faults(wrong)] == ["ArtifactFailed"]


def test_the_kinds_of_flux_are_those_that_the_components_define_in_their_stored_version() -> None:
    def definition(kind: str, *versions: str) -> Json:
        served = [{"name": version, "storage": version == versions[0]} for version in versions]
        group = "toolkit.example"
        return {
            "kind": "CustomResourceDefinition",
            "spec": {"group": group, "names": {"kind": kind}, "versions": served},
        }

    components = [definition("Kustomization", "v1", "v1beta2"), definition("GitRepository", "v1"), live()]
    assert list(kinds_of_flux(components)) == [
        ("toolkit.example/v1", "GitRepository"),
        ("toolkit.example/v1", "Kustomization"),
    ]


FLUX = "flux-system"
WORST_FIRST = [
    missing(ObjectRef("v1", "Namespace", FLUX)),
    missing(ObjectRef("v1", "CustomResourceDefinition", "kustomizations.kustomize.toolkit.fluxcd.io")),
    missing(KUSTOMIZATION),
    missing(SOURCE),
    changed(ObjectRef("apps/v1", "Deployment", "kustomize-controller", FLUX)),
    Fault(ObjectRef("apps/v1", "Deployment", "source-controller", FLUX), "NotRunning", "it does not run"),
    missing(SECRET),
    Fault(KUSTOMIZATION, "Suspended", "somebody suspended it"),
    changed(ObjectRef("v1", "CustomResourceDefinition", "kustomizations.kustomize.toolkit.fluxcd.io")),
    missing(ObjectRef("v1", "Namespace", "shop")),
    missing(ObjectRef("v1", "ServiceAccount", "kustomize-controller", FLUX)),
    missing(ObjectRef("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "cluster-reconciler")),
    Fault(SOURCE, "GitOperationFailed", "no such branch"),
    Fault(KUSTOMIZATION, "ArtifactFailed", "no such folder"),
    Fault(ObjectRef("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "infra", FLUX), "BuildFailed", "no"),
    missing(ObjectRef("rbac.authorization.k8s.io/v1", "RoleBinding", "team", "shop")),
    missing(ObjectRef("helm.toolkit.fluxcd.io/v2", "HelmRelease", "web", "shop")),
    Fault(ObjectRef("helm.toolkit.fluxcd.io/v2", "HelmRelease", "db", "shop"), "InstallFailed", "no"),
    missing(ObjectRef("networking.k8s.io/v1", "NetworkPolicy", "allow-egress", FLUX)),
    changed(ObjectRef("v1", "ConfigMap", "cluster-facts", FLUX)),
    Fault(KUSTOMIZATION, "DependencyNotReady", "it waits"),
]


@pytest.mark.parametrize("seed", range(5))
def test_what_hurts_most_comes_first_whatever_was_read_first(seed: int) -> None:
    mixed = random.Random(seed).sample(WORST_FIRST, len(WORST_FIRST))
    assert [str(fault) for fault in in_order(mixed)] == [str(fault) for fault in WORST_FIRST]


def test_the_objects_that_are_named_of_many_are_those_that_hurt_most() -> None:
    refs = [ObjectRef("networking.k8s.io/v1", "NetworkPolicy", f"deny-{n}", "shop") for n in range(NAMED)]
    controller = ObjectRef("apps/v1", "Deployment", "source-controller", FLUX)
    part = Count(NOW).components(9, [missing(ref) for ref in (*refs, controller)])
    assert part.unhealthy[0].name == "source-controller"
    assert (part.failed, len(part.unhealthy)) == (NAMED + 1, NAMED)
