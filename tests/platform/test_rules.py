"""What is refused in a platform before it is merged: each rule with what it refuses and what it lets pass."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.platform.inventory import ObjectId
from shared.platform.rules import RULES
from tests.support.built_platforms import (
    CHARTS,
    MAIN,
    NAMESPACE,
    SOURCE,
    Platform,
    deployment,
    release,
    waiting,
)


def test_a_platform_that_is_right_has_no_problem() -> None:
    platform = Platform(NAMESPACE, deployment()).kustomize("core", deployment("gateway"))
    assert platform.problems == []
    assert platform.notes == []


@pytest.mark.parametrize(
    ("name", "creates", "hint"),
    [
        ("platfrom", False, "did you mean platform?"),
        ("elsewhere", False, "add it, unless something else creates it"),
        ("elsewhere", True, ""),
        ("kube-system", False, ""),
        ("${team}", False, ""),
    ],
)
def test_a_namespace_that_nothing_defines_is_a_note(name: str, creates: bool, hint: str) -> None:
    spec = {"targetNamespace": name, "install": {"createNamespace": creates}}
    text = deployment().replace("namespace: platform", f"namespace: {name}")
    variables = {"postBuild": {"substituteFrom": [{"kind": "Secret", "name": "values", "optional": True}]}}
    platform = Platform(NAMESPACE, CHARTS, release("web", "podinfo", **spec), text, spec=variables)
    assert platform.problems == []
    found = [note for note in platform.notes if "nothing here defines the namespace" in note]
    assert [hint in note for note in found] == ([True] if hint else [])


def test_every_rule_has_a_source() -> None:
    assert all(rule.source for rule in RULES)


def test_an_object_of_two_kustomizations_is_refused_with_both_files() -> None:
    platform = Platform().kustomize("core", deployment()).kustomize("edge", deployment(image="pause:3.9"))
    assert platform.problems == [
        "platform/layers/edge/all.yaml:4:3 metadata.name: Deployment platform/web has two owners: "
        "Kustomization flux-system/core with ./platform/layers/core (platform/layers/core/all.yaml) and "
        "Kustomization flux-system/edge with ./platform/layers/edge (platform/layers/edge/all.yaml); keep it "
        "in one of them: they overwrite each other, and it is deleted when it leaves one of them"
    ]


@pytest.mark.parametrize("namespace", ["", "\n  namespace: default"])
def test_an_object_without_a_namespace_is_the_one_in_default(namespace: str) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a{namespace}\n"
    platform = Platform(text, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n")
    assert len(platform.problems) == (1 if not namespace else 0)


SHARED = """
apiVersion: v1
kind: {kind}
metadata:
  name: shared
  annotations: {{kustomize.toolkit.fluxcd.io/{mark}}}
"""


@pytest.mark.parametrize(
    ("mark", "refused"),
    [
        ("prune: disabled", False),
        ("ssa: Merge", True),
        ("reconcile: disabled", False),
        ("ssa: Ignore", False),
    ],
)
def test_equal_objects_of_two_owners_are_right_where_nothing_deletes_them(mark: str, refused: bool) -> None:
    text = SHARED.format(kind="Namespace", mark=mark)
    platform = Platform().kustomize("core", text).kustomize("edge", text)
    assert bool(platform.problems) == refused


def test_equal_objects_that_hold_nothing_are_a_note() -> None:
    source = CHARTS
    platform = Platform().kustomize("core", source).kustomize("edge", source)
    assert platform.problems == []
    assert "has two owners" in platform.notes[0]


def test_a_cycle_is_refused_with_each_file() -> None:
    platform = Platform().kustomize("core", spec=waiting("edge")).kustomize("edge", spec=waiting("core"))
    assert platform.problems == [
        "platform/core.yaml:15:5 spec.dependsOn[0].name: a cycle of dependsOn: flux-system/core "
        "(platform/core.yaml) waits for flux-system/edge, and flux-system/edge (platform/edge.yaml) waits "
        "for flux-system/core, so none of them is ever applied; no Kustomization of the same source hears "
        "of a new commit either; remove one of these lines"
    ]


def test_a_kustomization_that_waits_for_itself_is_a_cycle() -> None:
    assert "waits for flux-system/a, so" in Platform().kustomize("a", spec=waiting("a")).problems[0]


@pytest.mark.lives
def test_a_chain_of_dependencies_that_is_deeper_than_python_calls_is_right() -> None:
    platform = Platform()
    for number in range(sys.getrecursionlimit() + 100):
        platform.kustomize(f"k{number}", spec=waiting(*([f"k{number - 1}"] if number else [])))
    assert platform.problems == []


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ({"name": "cores"}, "did you mean core?"),
        ({"name": "core", "namespace": "apps"}, "it is in the namespace flux-system"),
        ({"name": "nothing-like-it"}, "add it, or correct the name"),
    ],
)
def test_a_dependency_that_is_nowhere_is_refused(wanted: dict[str, str], hint: str) -> None:
    platform = Platform().kustomize("core").kustomize("edge", spec={"dependsOn": [wanted]})
    assert len(platform.problems) == 1
    assert platform.problems[0].startswith("platform/edge.yaml:15:5 spec.dependsOn[0].name: there is no")
    assert hint in platform.problems[0]


def test_a_dependency_of_the_manifest_of_the_cluster_is_there() -> None:
    platform = Platform(spec={"wait": False}).kustomize("edge", spec=waiting("flux-system"))
    assert platform.problems == []


def test_helm_releases_that_wait_for_each_other_are_refused() -> None:
    first, second = (release(a, "podinfo", **waiting(b)) for a, b in (("a", "b"), ("b", "a")))
    assert "a cycle of dependsOn" in Platform(CHARTS, first, second).problems[0]


def test_a_kustomization_that_checks_and_prunes_nothing_is_a_note() -> None:
    notes = Platform().kustomize("core", spec={"wait": False, "prune": False}).notes
    assert any("flux-system/core: Ready as soon as applied" in note for note in notes)
    assert any("flux-system/core: without prune" in note for note in notes)


def test_a_source_that_roadstead_applies_is_a_note() -> None:
    source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, "
    source += (
        "namespace: flux-system}\nspec: {interval: 1m, url: https://example.com/a, ref: {branch: main}}\n"
    )
    assert Platform(source).problems == []
    assert "Roadstead applies it too" in Platform(source).notes[0]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, ""),
        ({"timeout": "5m"}, ""),
        ({"path": "platform/"}, ""),
        ({"path": "./other"}, "spec.path"),
        ({"prune": False}, "spec.prune"),
        ({"suspend": True}, "spec.suspend"),
        ({"sourceRef": {"kind": "GitRepository", "name": "other"}}, "spec.sourceRef"),
    ],
)
def test_the_platform_points_no_kustomization_of_the_fleet_elsewhere(
    spec: dict[str, Any], field: str
) -> None:
    main = {
        "path": "./platform",
        "prune": True,
        "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
    }
    given = {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "flux-system", "namespace": "flux-system"},
        "spec": {"interval": "10m", **main, **spec},
    }
    platform = Platform(yaml.safe_dump(given), provided=(SOURCE, MAIN))
    found = [text for text in platform.problems if "two owners" in text]
    assert [f"{field} differs" in text for text in found] == ([True] if field else [])


@pytest.mark.parametrize(("marks", "refused"), [("", True), (", annotations: {MARK/prune: disabled}", False)])
def test_a_namespace_of_a_team_is_in_the_platform_only_where_it_stays_when_it_leaves(
    marks: str, refused: bool
) -> None:
    text = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop{marks}}}\n"
    shop = ObjectId("", "Namespace", "", "shop")
    platform = Platform(text.replace("MARK", "kustomize.toolkit.fluxcd.io"), provided=(SOURCE, shop))
    assert ["two owners: Roadstead" in text for text in platform.problems] == [True] * refused
    assert ["two owners: Roadstead" in text for text in platform.notes] == [True] * (not refused)


def test_the_namespace_of_flux_in_a_platform_is_a_note() -> None:
    """What ``flux bootstrap`` writes has it; when it leaves git, a guard asks for an approval."""
    flux = ObjectId("", "Namespace", "", "flux-system")
    text = NAMESPACE.replace("platform", "flux-system")
    found = Platform(text, provided=(SOURCE, flux))
    assert found.problems == []
    assert "when it leaves the platform, Flux deletes it" in found.notes[0]


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (
            {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "webs"},
            "did you mean web?",
        ),
        ({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "name": "web"}, ""),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "name": "of-a-chart"}, ""),
        ({"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "of-a-chart"}, ""),
        ({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "of-a-chart"}, ""),
        (
            {"apiVersion": "v1", "kind": "Job", "name": "migrate"},
            "there is no Job in the core group; write batch/v1",
        ),
    ],
)
def test_a_health_check_of_what_only_git_defines_is_there(check: dict[str, str], problem: str) -> None:
    """Report: fluxcd/kustomize-controller#373."""
    spec = {"wait": False, "healthChecks": [{**check, "namespace": "flux-system"}]}
    found = Platform(CHARTS, release("web", "podinfo")).kustomize("core", spec=spec).problems
    assert [problem in text for text in found] == ([True] if problem else [])


def test_a_chart_of_the_repository_is_there_with_its_values() -> None:
    values = ["charts/web/values.yaml", "charts/web/large.yaml"]
    reference = {"kind": "GitRepository", "name": "flux-system"}
    spec = {"chart": "./charts/web", "valuesFiles": values, "sourceRef": reference}
    manifest = yaml.safe_load(release("web", "podinfo"))
    manifest["spec"]["chart"]["spec"] = spec
    platform = Platform(yaml.safe_dump(manifest))
    assert [problem.split(": ")[1].partition(" in this")[0] for problem in platform.problems] == [
        "there is no chart ./charts/web",
        "there is no file ./charts/web/values.yaml",
        "there is no file ./charts/web/large.yaml",
    ]
    platform.files |= {f"charts/web/{name}": "a: b\n" for name in ("Chart.yaml", "values.yaml", "large.yaml")}
    assert platform.problems == []


CASES = Path(__file__).parents[2] / "examples"


def trees() -> Sequence[Path]:
    return sorted(path for path in CASES.glob("*/platform/**/*.yaml") if path.name != "kustomization.yaml")


@pytest.mark.parametrize("path", trees(), ids=lambda path: str(path.relative_to(CASES)))
def test_nothing_is_wrong_with_the_fields_of_the_examples(path: Path) -> None:
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    platform = Platform(provided=[SOURCE, ObjectId("", "ConfigMap", "flux-system", "cluster-facts")])
    kinds = platform.platform.kinds
    faults = [fault for document in documents for fault in kinds.faults(document)]
    assert faults == []
