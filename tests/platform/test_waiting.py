"""What waits for what comes after it is refused, though no cycle of ``dependsOn`` says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.built_platforms import Platform, deployment

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.data.example.com}
spec:
  group: data.example.com
  names: {kind: Backup, listKind: BackupList, plural: backups, singular: backup}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
BACKUP = "apiVersion: data.example.com/v1\nkind: Backup\nmetadata: {name: a, namespace: platform}\n"
LATE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: late}\n"
OF_LATE = deployment().replace("namespace: platform", "namespace: late")
FIRST = {"prune": True, "wait": True}
HEALTH = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "platform"}


def after(name: str, **more: Any) -> dict[str, Any]:
    return {"dependsOn": [{"name": name, **more}]}


def circles(platform: Platform) -> list[str]:
    return [problem for problem in platform.problems if "wait for each other" in problem]


def test_what_its_parent_waits_for_cannot_wait_for_its_parent() -> None:
    platform = Platform(spec=FIRST).kustomize("edge", spec=after("flux-system"))
    assert circles(platform) == [
        "platform/edge.yaml:15:5 spec.dependsOn[0].name: Kustomizations wait for each other: "
        "flux-system/edge waits for flux-system/flux-system (dependsOn), and flux-system/flux-system waits "
        "for flux-system/edge (wait: true), so on a new cluster none of them is ever Ready; "
        "remove one of these"
    ]


def test_a_parent_that_reports_once_it_has_applied_may_be_waited_for() -> None:
    spec = {"prune": True, "wait": False}
    assert circles(Platform(spec=spec).kustomize("edge", spec=after("flux-system"))) == []


def test_a_dependency_with_an_expression_of_its_own_may_be_any() -> None:
    spec = after("flux-system", readyExpr="dep.status.observedGeneration > 0")
    assert circles(Platform(spec=FIRST).kustomize("edge", spec=spec)) == []


@pytest.mark.parametrize(
    ("core", "edge", "spec", "why"),
    [
        (
            "",
            deployment(),
            {"wait": False, "healthChecks": [HEALTH]},
            "a health check of Deployment platform/web",
        ),
        (OF_LATE, LATE, {}, "the namespace late"),
        (BACKUP, DEFINITION, {}, "the kind Backup"),
    ],
)
def test_nothing_may_need_what_waits_for_it(core: str, edge: str, spec: dict[str, Any], why: str) -> None:
    def platform(waiting: str, wanted: str) -> Platform:
        order = {name: after(wanted) if name == waiting else {} for name in ("core", "edge")}
        found = Platform().kustomize("core", *([core] if core else []), spec=order["core"] | spec)
        return found.kustomize("edge", edge, spec=order["edge"])

    (problem,) = circles(platform("edge", "core"))
    assert f"flux-system/core waits for flux-system/edge ({why})" in problem
    assert problem.startswith("platform/edge.yaml:15:5 spec.dependsOn[0].name: ")
    assert circles(platform("core", "edge")) == []


def test_what_applies_a_kustomization_needs_nothing_that_this_one_brings() -> None:
    (problem,) = circles(Platform(BACKUP).kustomize("crds", DEFINITION))
    assert "flux-system/flux-system waits for flux-system/crds (the kind Backup)" in problem
    assert "flux-system/crds waits for flux-system/flux-system (which applies it)" in problem


def test_a_namespace_and_kinds_that_are_there_before_are_no_reason_to_wait() -> None:
    namespace = LATE.replace("late", "flux-system")
    assert circles(Platform().kustomize("namespaces", namespace)) == []


def test_a_namespace_that_a_release_creates_may_come_later_too() -> None:
    release = (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: b}\n"
        "spec: {targetNamespace: late, install: {createNamespace: true}}\n"
    )
    platform = Platform(release).kustomize("core", OF_LATE).kustomize("edge", LATE, spec=after("core"))
    assert circles(platform) == []


def test_who_depends_on_what_is_suspended_is_told_that_nothing_comes() -> None:
    platform = Platform().kustomize("core", spec={"suspend": True}).kustomize("edge", spec=after("core"))
    assert platform.problems == []
    (note,) = [note for note in platform.notes if "is suspended" in note]
    assert note.startswith(
        "platform/edge.yaml:14:3 spec.dependsOn: Kustomization flux-system/core is suspended in "
    )
    platform = Platform().kustomize("core").kustomize("edge", spec={"suspend": True} | after("core"))
    assert not any("is suspended" in note for note in platform.notes)
