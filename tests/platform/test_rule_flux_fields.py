"""Fields of Flux's own kinds, and its annotations: what its controllers and the API server make of them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.built_platforms import CHARTS, NAMESPACE, Platform, deployment, release
from tests.support.flux_definitions import real_definitions

SHORT = [found for found in real_definitions() if found["spec"]["names"]["kind"] == "Kustomization"]
"""The definitions of components that have one controller alone, as those of the example fleet."""


def source(kind: str, **spec: Any) -> str:
    manifest = {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": kind,
        "metadata": {"name": "apps", "namespace": "platform"},
        "spec": {"interval": "1m", **spec},
    }
    return yaml.safe_dump(manifest)


def versioned(version: Any) -> str:
    return release("web", "podinfo").replace(
        "chart: podinfo\n", f"chart: podinfo\n      version: {version}\n"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (release("web", "podinfo", install={"crds": "replace"}), "must be Skip or Create or CreateReplace"),
        (release("web", "podinfo", releaseName="a" * 54), "must have at most 53 characters, and has 54"),
        (release("web", "podinfo").replace("  interval: 1h\n", ""), "interval is missing"),
        (release("web", "podinfo", values="a: b"), "must be an object, got"),
        (release("web", "podinfo", values={"a": "b"}), ""),
        (versioned("1.10"), 'must be a string, got 1.1; write it in quotes, as "1.1"'),
        (versioned("latest"), "latest is no version, such as 1.2.3, and no range"),
        (versioned("1.2.x.y"), "is no version"),
        *(
            (versioned(f"'{version}'"), "")
            for version in ("1.x", "^1.2 || >=3.0.0-0 <4", "1.2 - 1.4, !=1.3.1", "*")
        ),
        (source("GitRepository", url="git@github.com:a/b.git"), "write ssh:// before it, and / for the :"),
        (
            source("GitRepository", url="ssh://git@github.com/a/b"),
            "needs a key, and so it never becomes Ready",
        ),
        (source("GitRepository", url="ssh://git@github.com/a/b", secretRef={"name": "a"}), ""),
        (source("GitRepository", url="https://github.com/a/b", ref={"semver": "new"}), "is no version"),
        (source("GitRepository", url="https://github.com/a/b", ref={"semver": ">=1"}), ""),
        (source("OCIRepository", url="https://r.example/a"), "must begin with oci://"),
        (source("HelmRepository", url="charts.example.com"), "must begin with http:// or https:// or oci://"),
        (source("HelmRepository", url="${address}"), ""),
    ],
)
@pytest.mark.parametrize("definitions", [real_definitions(), SHORT, ()])
def test_fields_of_flux_are_checked_whoever_defines_them(text: str, problem: str, definitions: Any) -> None:
    """Report: fluxcd/flux2-kustomize-helm-example#56."""
    found = Platform(NAMESPACE, CHARTS, text, definitions=definitions).problems
    assert [problem in said for said in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("value", "refused"), [({"zone": None}, True), ({"zone": ""}, False), (None, True), ({}, False)]
)
def test_an_empty_value_of_a_custom_kind_is_refused(value: Any, refused: bool) -> None:
    """Report: hmcts/cnp-flux-config#22370; a real API server said the same of each type."""
    found = Platform().kustomize("a", spec={"postBuild": {"substitute": value}}).problems
    assert ["is empty; give it a value, or remove it" in said for said in found] == [True] * refused


def test_an_empty_value_of_a_built_in_kind_is_none() -> None:
    assert (
        Platform("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {k: }\n").problems
        == []
    )


@pytest.mark.parametrize("definitions", [SHORT, ()])
def test_a_version_that_flux_serves_no_more_is_a_note_where_nobody_knows_its_version(
    definitions: Any,
) -> None:
    text = release("web", "podinfo").replace("fluxcd.io/v2", "fluxcd.io/v2beta1")
    found = Platform(CHARTS, text, definitions=definitions)
    assert found.problems == []
    assert any("serves no helm.toolkit.fluxcd.io/v2beta1 HelmRelease" in note for note in found.notes)
    assert any("write helm.toolkit.fluxcd.io/v2, whose fields may differ" in note for note in found.notes)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("kustomize.toolkit.fluxcd.io/prune: disabled", ""),
        ("kustomize.toolkit.fluxcd.io/prune: Disabled", ""),
        ("kustomize.toolkit.fluxcd.io/prune: enabled", ""),
        ("kustomize.toolkit.fluxcd.io/prune: 'false'", "so it acts as without; write disabled"),
        ("kustomize.toolkit.fluxcd.io/force: 'true'", "write enabled"),
        ("kustomize.toolkit.fluxcd.io/ssa: merge", ""),
        ("kustomize.toolkit.fluxcd.io/ssa: disabled", "write Override or Merge or IfNotPresent or Ignore"),
        (
            "kustomize.toolkit.fluxcd.io/reconsile: disabled",
            "did you mean kustomize.toolkit.fluxcd.io/reconcile",
        ),
        ("kustomize.toolkit.fluxcd.io/name: core", ""),
        ("fluxcd.io/ignore: 'true'", "is of Flux 1, and Flux 2 applies this all the same"),
        ("fluxcd.io/ignore: 'false'", ""),
        ("example.com/prune: 'false'", ""),
    ],
)
def test_an_annotation_that_flux_does_not_know_is_a_note(mark: str, said: str) -> None:
    key, _, value = mark.partition(": ")
    text = yaml.safe_load(deployment())
    text["metadata"]["annotations"] = {key: yaml.safe_load(value)}
    found = Platform(NAMESPACE, yaml.safe_dump(text))
    assert found.problems == []
    assert [said in note for note in found.notes] == ([True] if said else [])


@pytest.mark.parametrize(
    ("definitions", "refused"), [(real_definitions(), True), (SHORT, False), ((), False)]
)
def test_a_field_that_flux_does_not_have_is_refused_where_its_version_is_known(
    definitions: Any, refused: bool
) -> None:
    """Report: gimlet-io/gimlet#484: a server-side apply refuses the field, and with it the whole path."""
    found = Platform(CHARTS, release("web", "podinfo", value={"a": 1}), definitions=definitions)
    assert any("there is no such field; did you mean values?" in text for text in found.problems) == refused
    assert any("no such field in Flux 2.7; did you mean values?" in text for text in found.notes) != refused
    newer = Platform(CHARTS, release("web", "podinfo", values={"a": 1}), definitions=definitions)
    assert not any("no such field" in text for text in (*newer.problems, *newer.notes))


MARKED = deployment(image="r.example/web:1.0.0").replace("web:1.0.0", "web:1.0.0 # MARKER")


def automated(marker: str, *, path: str = "./platform", policy: str = "web") -> list[str]:
    """Return the notes of a platform whose images are written by an automation."""
    objects: tuple[tuple[str, str, dict[str, Any]], ...] = (
        (
            "ImageUpdateAutomation",
            "auto",
            {"sourceRef": {"kind": "GitRepository", "name": "flux-system"}, "update": {"path": path}},
        ),
        ("ImageRepository", "web", {"image": "r.example/web"}),
        (
            "ImagePolicy",
            policy,
            {"imageRepositoryRef": {"name": "web"}, "policy": {"semver": {"range": "1"}}},
        ),
    )
    of_images = "---\n".join(
        yaml.safe_dump(
            {
                "apiVersion": "image.toolkit.fluxcd.io/v1",
                "kind": kind,
                "metadata": {"name": name, "namespace": "flux-system"},
                "spec": spec,
            }
        )
        for kind, name, spec in objects
    )
    found = Platform(NAMESPACE, of_images, MARKED.replace("# MARKER", marker))
    return [note for note in found.notes if "no automation writes this image" in note]


@pytest.mark.parametrize(
    ("marker", "path", "policy", "said"),
    [
        ('# {"$imagepolicy": "flux-system:web"}', "./platform", "web", []),
        ('# {"$imagepolicy": "flux-system:web:tag"}', "./platform", "web", []),
        ("", "./platform/apps", "web", ['has the comment {"$imagepolicy": "flux-system:web"}']),
        ("", "./", "web", []),
        (
            '# {"$imagepolicy": "flux-system:web"}',
            "./platform",
            "wep",
            ['"flux-system:wep"}', "there is no ImagePolicy flux-system/web"],
        ),
    ],
)
def test_an_image_that_no_automation_writes_is_a_note(
    marker: str, path: str, policy: str, said: list[str]
) -> None:
    """Reports: fluxcd/image-automation-controller#159, #214."""
    found = automated(marker, path=path, policy=policy)
    assert [part in note for part, note in zip(said, found, strict=True)] == [True] * len(said)


def images(kind: str, namespace: str, **spec: Any) -> str:
    """Return an object of the automation of images."""
    names = {"name": "web", "namespace": namespace}
    return yaml.safe_dump(
        {"apiVersion": "image.toolkit.fluxcd.io/v1", "kind": kind, "metadata": names, "spec": spec}
    )


POLICY = {"imageRepositoryRef": {"name": "web"}, "policy": {"semver": {"range": "1"}}}
OWN = {"sourceRef": {"kind": "GitRepository", "name": "flux-system"}, "update": {"path": "./platform"}}


@pytest.mark.parametrize(
    "named",
    ["patches: [{path: values.yaml}]", "configMapGenerator: [{name: v, files: [a.yaml=values.yaml]}]"],
)
def test_a_marker_in_a_patch_or_in_values_of_a_generator_counts(named: str) -> None:
    """Source: fluxcd.io, "Automate image updates to Git": a comment in any YAML file of the folder."""
    texts = (
        images("ImageUpdateAutomation", "flux-system", **OWN),
        images("ImagePolicy", "flux-system", **POLICY),
    )
    found = Platform(NAMESPACE, *texts).kustomize("apps", deployment())
    folder = "platform/layers/apps"
    found.files[f"{folder}/kustomization.yaml"] = f"resources: [all.yaml]\n{named}\n"
    found.files[f"{folder}/values.yaml"] = 'tag: 1.0.0 # {"$imagepolicy": "flux-system:web:tag"}\n'
    assert not [note for note in found.notes if "no automation writes" in note]
    del found.files[f"{folder}/values.yaml"]
    assert [note for note in found.notes if "no automation writes" in note]


def test_a_policy_for_the_automation_of_another_repository_is_no_note() -> None:
    """Source: fluxcd.io, "ImageUpdateAutomation": it applies the policies of its own namespace."""
    other = {"sourceRef": {"kind": "GitRepository", "name": "team"}, "update": {"path": "./"}}
    texts = (
        images("ImageUpdateAutomation", "flux-system", **OWN),
        images("ImageUpdateAutomation", "platform", **other),
        images("ImagePolicy", "platform", **POLICY),
    )
    assert not [note for note in Platform(NAMESPACE, *texts).notes if "no automation writes" in note]


@pytest.mark.parametrize(
    ("waiting", "own", "said"),
    [
        ({"timeout": "2m"}, {}, "waits 2m, and so fails while HelmRelease flux-system/web (5m) may"),
        ({"timeout": "5m"}, {}, ""),
        ({"interval": "1m"}, {}, "waits 1m"),
        ({"timeout": "10m"}, {"timeout": "1h"}, "HelmRelease flux-system/web (1h)"),
        ({"timeout": "1h30m"}, {"timeout": "80m"}, ""),
        ({"timeout": "2m", "wait": False}, {}, ""),
        ({"timeout": "2m"}, {"suspend": True}, ""),
        ({"timeout": "${time}"}, {}, ""),
    ],
)
def test_a_kustomization_that_waits_less_than_a_release_takes_is_a_note(
    waiting: dict[str, Any], own: dict[str, Any], said: str
) -> None:
    """Report: fluxcd/kustomize-controller#709."""
    text = release("web", "podinfo", **own)
    notes = Platform(CHARTS).kustomize("apps", text, spec={"interval": "10m", **waiting}).notes
    assert [said in note for note in notes if "still be installed" in note] == ([True] if said else [])


@pytest.mark.parametrize("is_attached", [False, True])
def test_classes_of_aks_are_those_of_aks_alone(is_attached: bool) -> None:
    """Source: kubernetes.io, "Storage Classes": a class binds at once by default."""
    names = {"name": "data", "namespace": "platform"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": names, "spec": CLAIM}
    platform = Platform(NAMESPACE, is_attached=is_attached)
    notes = platform.kustomize("apps", yaml.safe_dump(claim), spec={"wait": True}).notes
    assert any("waits for PersistentVolumeClaim" in note for note in notes) != is_attached


def test_a_claim_that_an_operator_may_use_is_no_note() -> None:
    """Source: kubevirt.io, "Disks and Volumes": a virtual machine names a claim."""
    names = {"name": "data", "namespace": "platform"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": names, "spec": CLAIM}
    machine = {**claim, "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "spec": {}}
    texts = (yaml.safe_dump(claim), yaml.safe_dump(machine))
    notes = Platform(NAMESPACE).kustomize("apps", *texts, spec={"wait": True}).notes
    assert not [note for note in notes if "waits for PersistentVolumeClaim" in note]


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.mark.parametrize(
    ("spec", "waits", "users", "said"),
    [
        ({}, True, [], True),
        ({"storageClassName": "managed-csi"}, True, [], True),
        ({"storageClassName": "azurefile-csi"}, True, [], False),
        ({"storageClassName": "own"}, True, [], True),
        ({"volumeName": "disk"}, True, [], False),
        ({"storageClassName": ""}, True, [], False),
        ({}, False, [], False),
        ({}, True, [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}], False),
        ({}, True, [{"name": "d", "persistentVolumeClaim": {"claimName": "other"}}], True),
    ],
)
def test_a_claim_that_no_pod_uses_keeps_its_kustomization_waiting(
    spec: dict[str, Any], waits: bool, users: list[Any], said: bool
) -> None:
    """Reports: argoproj/argo-cd#29205, #29441: such a claim is pending indefinitely."""
    names = {"name": "data", "namespace": "platform"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": names,
        "spec": {**CLAIM, **spec},
    }
    own = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: own}\nprovisioner: a.b\n"
    workload = yaml.safe_load(deployment())
    workload["spec"]["template"]["spec"]["volumes"] = users
    texts = (yaml.safe_dump(claim), yaml.safe_dump(workload))
    platform = Platform(NAMESPACE, f"{own}volumeBindingMode: WaitForFirstConsumer\n")
    notes = platform.kustomize("apps", *texts, spec={"wait": waits}).notes
    assert any("waits for PersistentVolumeClaim platform/data" in note for note in notes) == said


@pytest.mark.parametrize("name", [{"a": 1}, [{}], 1, None])
def test_names_of_an_odd_form_stop_no_rule(name: Any) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": CLAIM}
    claim["metadata"] = {"name": "data", "namespace": "platform"}
    workload = yaml.safe_load(deployment())
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": name}}]
    workload["spec"]["template"]["spec"]["volumes"] = volumes
    source = {"kind": "GitRepository", "name": name}
    automation = images("ImageUpdateAutomation", "platform", sourceRef=source, update={"path": "./"})
    texts = (yaml.safe_dump(claim), yaml.safe_dump(workload), automation)
    platform = Platform(NAMESPACE).kustomize("apps", *texts, spec={"wait": True})
    assert not [note for note in platform.notes if "TypeError" in note]


@pytest.mark.parametrize(
    ("kind", "finalizer"),
    [
        ("apiVersion: argoproj.io/v1alpha1\nkind: Application", "resources-finalizer.argocd.argoproj.io"),
        ("apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository", "finalizers.fluxcd.io"),
        (
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition",
            "customresourcecleanup.apiextensions.k8s.io",
        ),
    ],
)
def test_a_finalizer_without_a_slash_is_taken_of_other_kinds(kind: str, finalizer: str) -> None:
    """Source: argo-cd.readthedocs.io, "App Deletion"; apiextensions-apiserver, its finalizer package."""
    text = f"{kind}\nmetadata: {{name: a, namespace: platform, finalizers: [{finalizer}]}}\n"
    assert not [problem for problem in Platform(NAMESPACE, text).problems if "finalizer" in problem]


def test_what_argo_deletes_with_its_application_is_no_note() -> None:
    """Source: argo-cd.readthedocs.io, "App Deletion": people write this finalizer, and Argo CD adds none."""
    kind = "apiVersion: argoproj.io/v1alpha1\nkind: Application"
    finalizer = "resources-finalizer.argocd.argoproj.io/background"
    text = f"{kind}\nmetadata: {{name: a, namespace: platform, finalizers: [{finalizer}]}}\n"
    assert not [note for note in Platform(NAMESPACE, text).notes if "finalizer" in note]
