"""The small Flux does to a cluster what the real one would, from the content of a git repository."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from localcloud.flux.flux_conditions import ObjectNotReady
from localcloud.flux.kustomize.real_kustomize import built
from localcloud.kubernetes.world.object_store import At
from localcloud.kubernetes.world.writes.patches import MERGE
from tests.support.small_flux import KINDS, KUSTOMIZATION, SOURCE, FluxCluster, git_secret

MINUTE = 60

NAMESPACE_FILE = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
MAP_FILE = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: team}\ndata: {colour: blue}\n"


@pytest.fixture
def cluster() -> FluxCluster:
    """A cluster with components and a source, and one namespace and one ConfigMap in its folder."""
    files = {"clusters/alpha/ns.yaml": NAMESPACE_FILE, "clusters/alpha/apps/one.yaml": MAP_FILE % b"one"}
    made = FluxCluster({**files, "README.md": b"text"})
    made.install()
    made.source()
    return made


def test_source_and_kustomization_become_ready_and_the_objects_are_there(cluster: FluxCluster) -> None:
    cluster.sync()
    cluster.let_time_pass()
    revision = f"main@sha1:{'1' * 40}"
    assert cluster.ready(SOURCE) == ("True", "Succeeded", f"stored artifact for revision '{revision}'")
    assert cluster.ready() == ("True", "ReconciliationSucceeded", f"Applied revision: {revision}")
    status = cluster.world.get(cluster.at(*KUSTOMIZATION, "flux-system"))["status"]
    assert status["lastAppliedRevision"] == revision
    assert {"id": "team_one__ConfigMap", "v": "v1"} in status["inventory"]["entries"]
    labels = cluster.world.get(At(KINDS["ConfigMap"], "one", "team"))["metadata"]["labels"]
    assert labels["kustomize.toolkit.fluxcd.io/name"] == "flux-system"


def test_without_its_controllers_nothing_happens(cluster: FluxCluster) -> None:
    cluster.sync()
    for name in ("source-controller", "kustomize-controller"):
        cluster.world.delete(At(KINDS["Deployment"], name, "flux-system"))
    cluster.let_time_pass()
    assert cluster.ready() == cluster.ready(SOURCE) == ("", "", "")


def test_an_idle_round_writes_nothing(cluster: FluxCluster) -> None:
    cluster.sync()
    cluster.sync("broken", path="./nowhere")
    cluster.let_time_pass()
    before = cluster.world.version
    cluster.let_time_pass()
    assert cluster.world.version == before


def test_what_leaves_git_is_pruned_unless_pruning_is_disabled(cluster: FluxCluster) -> None:
    unpruned = (MAP_FILE % b"unpruned").replace(b"{name: ", b"{annotations: {%s: disabled}, name: ")
    unpruned = unpruned % b"kustomize.toolkit.fluxcd.io/prune"
    cluster.commit(
        {**cluster.files, "clusters/alpha/two.yaml": MAP_FILE % b"two", "clusters/alpha/k.yaml": unpruned}
    )
    cluster.sync()
    cluster.let_time_pass()
    assert cluster.maps() == ["one", "two", "unpruned"]
    cluster.commit({name: text for name, text in cluster.files.items() if "apps" in name or "ns" in name})
    cluster.let_time_pass()
    assert cluster.maps() == ["one", "two", "unpruned"]
    cluster.let_time_pass(MINUTE)
    assert cluster.maps() == ["one", "unpruned"]
    assert cluster.ready()[2] == f"Applied revision: main@sha1:{'3' * 40}"


def test_what_operators_change_or_delete_is_corrected_after_the_interval(cluster: FluxCluster) -> None:
    cluster.sync()
    cluster.let_time_pass()
    one = At(KINDS["ConfigMap"], "one", "team")
    cluster.world.patch(one, {"data": {"colour": "red", "by-hand": "1"}}, MERGE)
    cluster.let_time_pass()
    assert cluster.world.get(one)["data"]["colour"] == "red"
    cluster.clock.advance(600)
    cluster.let_time_pass()
    assert cluster.world.get(one)["data"] == {"colour": "blue", "by-hand": "1"}


def test_a_deleted_kustomization_takes_its_objects_with_it(cluster: FluxCluster) -> None:
    cluster.sync()
    cluster.let_time_pass()
    cluster.world.delete(cluster.at(*KUSTOMIZATION, "flux-system"))
    cluster.let_time_pass()
    assert cluster.world.find(cluster.at(*KUSTOMIZATION, "flux-system")) is None
    assert cluster.maps() == []


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({"url": "https://git.example.org/other.git"}, "GitOperationFailed", "repository not found"),
        (
            {"ref": {"branch": "gone"}, "secretRef": {"name": "right"}},
            "GitOperationFailed",
            'couldn\'t find remote ref "refs/heads/gone"',
        ),
        ({"ref": {"semver": "1.x"}}, "GitOperationFailed", "no ranges of tags"),
        ({"secretRef": {"name": "absent"}}, "AuthenticationFailed", 'secrets "absent" not found'),
        ({"secretRef": {"name": "wrong"}}, "GitOperationFailed", "authentication required"),
        ({}, "GitOperationFailed", "authentication required"),
    ],
)
def test_a_source_that_cannot_be_fetched_reports_the_reason(
    cluster: FluxCluster, spec: dict[str, Any], reason: str, message: str
) -> None:
    cluster.password = "right"
    cluster.apply(git_secret("wrong", "guess"))
    cluster.apply(git_secret("right", "right"))
    cluster.source(**spec)
    cluster.sync()
    cluster.let_time_pass()
    status, shown_reason, shown = cluster.ready(SOURCE)
    assert (status, shown_reason) == ("False", reason)
    assert message in shown
    assert "guess" not in shown
    assert cluster.ready()[:2] == ("False", "ArtifactFailed")


def test_a_source_recovers_once_its_secret_is_right(cluster: FluxCluster) -> None:
    cluster.password = "right"
    cluster.apply(git_secret("flux-system", "wrong"))
    cluster.source(secretRef={"name": "flux-system"})
    cluster.let_time_pass()
    assert cluster.ready(SOURCE)[0] == "False"
    cluster.apply(git_secret("flux-system", "right"))
    cluster.let_time_pass()
    assert cluster.ready(SOURCE)[0] == "True"


@pytest.mark.parametrize(
    ("file", "content", "reason", "message"),
    [
        ("bad.yaml", b"a: [1", "BuildFailed", "clusters/alpha/bad.yaml"),
        ("bad.yaml", b"hello: world", "BuildFailed", "clusters/alpha/bad.yaml"),
        ("kustomization.yaml", b"resources: [absent.yaml]", "BuildFailed", "absent.yaml"),
        (
            "unknown.yaml",
            b"apiVersion: example.org/v1\nkind: Gadget\nmetadata: {name: g, namespace: team}",
            "ReconciliationFailed",
            'no matches for kind "Gadget"',
        ),
        (
            "lost.yaml",
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost}",
            "ReconciliationFailed",
            "ConfigMap/lost namespace not specified",
        ),
        (
            "lost.yaml",
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost, namespace: gone}",
            "ReconciliationFailed",
            'ConfigMap/gone/lost not found: namespaces "gone" not found',
        ),
    ],
)
def test_a_failed_build_or_apply_reports_the_place(
    cluster: FluxCluster, file: str, content: bytes, reason: str, message: str
) -> None:
    cluster.commit({**cluster.files, f"clusters/alpha/{file}": content})
    cluster.sync()
    cluster.let_time_pass()
    status, shown_reason, shown = cluster.ready()
    assert (status, shown_reason) == ("False", reason)
    assert message in shown


def test_a_path_that_is_not_in_the_repository_is_an_artifact_failure(cluster: FluxCluster) -> None:
    cluster.sync(path="./clusters/alp")
    cluster.let_time_pass()
    assert cluster.ready()[1] == "ArtifactFailed"
    assert "kustomization path not found" in cluster.ready()[2]


def test_a_dependency_must_be_ready_first(cluster: FluxCluster) -> None:
    cluster.commit({**cluster.files, "apps/two.yaml": MAP_FILE % b"two"})
    cluster.sync("apps", path="./apps", dependsOn=[{"name": "flux-system"}])
    cluster.let_time_pass()
    assert cluster.ready(name="apps")[1] == "DependencyNotReady"
    assert "flux-system/flux-system" in cluster.ready(name="apps")[2]
    cluster.sync()
    cluster.let_time_pass()
    assert cluster.ready(name="apps")[1] == "DependencyNotReady"
    cluster.let_time_pass(30)
    assert cluster.ready(name="apps")[0] == "True"
    assert cluster.maps() == ["one", "two"]


def test_a_kustomization_file_lists_what_counts(cluster: FluxCluster) -> None:
    cluster.commit(
        {
            **cluster.files,
            "clusters/alpha/kustomization.yaml": b"resources: [ns.yaml, ../../base]",
            "base/two.yaml": MAP_FILE % b"two",
        }
    )
    cluster.sync()
    cluster.let_time_pass()
    assert cluster.maps() == ["two"]


OVERLAY = b"""
resources: [ns.yaml, ../../base]
commonAnnotations: {stage: prod}
patches:
- target: {kind: ConfigMap}
  patch: |-
    - {op: replace, path: /data/colour, value: red}
configMapGenerator:
- {name: generated, namespace: team, literals: [a=b], options: {disableNameSuffixHash: true}}
"""


def test_an_overlay_is_built_by_the_real_kustomize(cluster: FluxCluster) -> None:
    base = {"base/kustomization.yaml": b"resources: [two.yaml]", "base/two.yaml": MAP_FILE % b"two"}
    broken = {"broken/kustomization.yaml": b"resources: [gone.yaml]\nnamePrefix: x"}
    cluster.commit({**cluster.files, **base, **broken, "clusters/alpha/kustomization.yaml": OVERLAY})
    cluster.sync()
    cluster.sync("broken", path="./broken")
    cluster.let_time_pass()
    assert cluster.maps() == ["generated", "two"]
    two = cluster.world.get(At(KINDS["ConfigMap"], "two", "team"))
    assert (two["data"]["colour"], two["metadata"]["annotations"]["stage"]) == ("red", "prod")
    status, reason, message = cluster.ready(name="broken")
    assert (status, reason) == ("False", "BuildFailed")
    assert "/tmp/kustomization-1/broken/gone.yaml" in message


def test_without_kubectl_an_overlay_is_refused_with_what_is_missing() -> None:
    with pytest.raises(ObjectNotReady, match="the local Flux needs kubectl to build clusters/alpha"):
        built({}, "clusters/alpha", ())


def test_definitions_are_established_before_their_objects(cluster: FluxCluster) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    widget = b"apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: one, namespace: team}\nspec: {}"
    folder = "clusters/alpha"
    files = {f"{folder}/a-widget.yaml": widget, f"{folder}/z-crd.yaml": yaml.safe_dump(definition).encode()}
    cluster.commit({**cluster.files, **files})
    cluster.sync()
    cluster.flux.reconcile()
    assert cluster.ready()[:2] == ("Unknown", "Progressing")
    cluster.let_time_pass()
    assert cluster.ready()[0] == "True"


def test_variables_are_filled_in_after_the_build(cluster: FluxCluster) -> None:
    text = (MAP_FILE % b"vars").replace(b"blue", b'"${colour} ${size:=small} ${none}"')
    cluster.commit({**cluster.files, "clusters/alpha/vars.yaml": text})
    values = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "v", "namespace": "flux-system"}}
    cluster.apply({**values, "data": {"colour": "red", "size": "huge"}})
    post = {"substituteFrom": [{"kind": "ConfigMap", "name": "v"}], "substitute": {"colour": "green"}}
    cluster.sync(postBuild=post)
    cluster.let_time_pass()
    assert cluster.world.get(At(KINDS["ConfigMap"], "vars", "team"))["data"]["colour"] == "green huge "


def test_a_request_by_annotation_is_handled_and_a_suspended_object_is_left_alone(
    cluster: FluxCluster,
) -> None:
    cluster.sync()
    cluster.let_time_pass()
    at = cluster.at(*KUSTOMIZATION, "flux-system")
    annotation = {"reconcile.fluxcd.io/requestedAt": "now"}
    cluster.world.patch(at, {"metadata": {"annotations": annotation}}, MERGE)
    cluster.let_time_pass()
    assert cluster.world.get(at)["status"]["lastHandledReconcileAt"] == "now"
    cluster.world.patch(at, {"spec": {"suspend": True}}, MERGE)
    cluster.commit({"clusters/alpha/ns.yaml": NAMESPACE_FILE})
    cluster.let_time_pass()
    assert cluster.maps() == ["one"]
