"""The small Flux does to a cluster what the real one would, from the content of a git repository."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from localcloud.common.clock import ManualClock
from localcloud.flux.flux_controllers import Flux, Source
from localcloud.kubernetes.world.kinds import BUILT_IN
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Write
from localcloud.kubernetes.world.patches import MERGE

COMPONENTS = Path(__file__).parents[2] / "examples/fleet/flux/gotk-components.yaml"
SOURCE = ("source.toolkit.fluxcd.io/v1", "GitRepository")
KUSTOMIZATION = ("kustomize.toolkit.fluxcd.io/v1", "Kustomization")
MINUTE = 60
URL = "https://git.example.org/fleet.git"
WRITE = Write(manager="test", force=True)
KINDS = {kind.kind: kind for kind in BUILT_IN}

NAMESPACE_FILE = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
MAP_FILE = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: team}\ndata: {colour: blue}\n"


@dataclass
class Cluster:
    """A cluster in memory with Flux, and the repository that Flux reads."""

    files: dict[str, bytes] = field(default_factory=dict)
    revision: str = "1" * 40
    password: str | None = None

    def __post_init__(self) -> None:
        self.clock = ManualClock()
        self.world = KubernetesWorld(self.clock)
        self.flux = Flux(self.world, self._read, self.clock)

    def _read(self, url: str, branch: str) -> Source | None:
        if url != URL:
            return None
        wanted = self.password
        accepts = None if wanted is None else lambda _user, password: bool(password == wanted)
        return Source(self.revision if branch == "main" else "", lambda: self.files, accepts)

    def commit(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.revision = f"{int(self.revision[0]) + 1}" * 40

    def at(self, api_version: str, kind: str, name: str, namespace: str = "flux-system") -> At:
        found = self.world.kind(api_version, kind)
        assert found is not None
        return At(found, name, namespace if found.namespaced else "")

    def apply(self, manifest: Mapping[str, Any]) -> None:
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "")
        at = self.at(manifest["apiVersion"], manifest["kind"], metadata["name"], namespace)
        self.world.apply(at, manifest, WRITE)

    def install(self) -> None:
        for manifest in yaml.safe_load_all(COMPONENTS.read_text()):
            self.apply(manifest)
        self.let_time_pass()

    def sync(self, name: str = "flux-system", **spec: Any) -> None:
        ref = {"kind": "GitRepository", "name": "flux-system"}
        whole = {"interval": "10m", "path": "./clusters/alpha", "prune": True, "sourceRef": ref, **spec}
        self.apply(_object(KUSTOMIZATION, name, whole))

    def source(self, **spec: Any) -> None:
        whole = {"interval": "1m", "url": URL, "ref": {"branch": "main"}, **spec}
        self.apply(_object(SOURCE, "flux-system", whole))

    def let_time_pass(self, seconds: int = 4) -> None:
        """Let time go by, at least as long as Kubernetes needs to establish a definition."""
        for _ in range(4):
            self.clock.advance(seconds / 4)
            self.flux.reconcile()

    def ready(self, kind: tuple[str, str] = KUSTOMIZATION, name: str = "flux-system") -> tuple[str, str, str]:
        value = self.world.get(self.at(*kind, name))
        status = value.get("status") or {}
        found = [item for item in status.get("conditions", ()) if item["type"] == "Ready"]
        assert not found or found[0]["observedGeneration"] == value["metadata"]["generation"]
        succeeded = status.get("observedGeneration") == value["metadata"]["generation"]
        assert not found or succeeded == (found[0]["status"] == "True")
        return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else ("", "", "")

    def maps(self, namespace: str = "team") -> list[str]:
        return [item["metadata"]["name"] for item in self.world.list(KINDS["ConfigMap"], namespace)[0]]


def _object(kind: tuple[str, str], name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "flux-system"}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec}


@pytest.fixture
def cluster() -> Cluster:
    """A cluster with components and a source, and one namespace and one ConfigMap in its folder."""
    files = {"clusters/alpha/ns.yaml": NAMESPACE_FILE, "clusters/alpha/apps/one.yaml": MAP_FILE % b"one"}
    made = Cluster({**files, "README.md": b"text"})
    made.install()
    made.source()
    return made


def test_source_and_kustomization_become_ready_and_the_objects_are_there(cluster: Cluster) -> None:
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


def test_without_its_controllers_nothing_happens(cluster: Cluster) -> None:
    cluster.sync()
    for name in ("source-controller", "kustomize-controller"):
        cluster.world.delete(At(KINDS["Deployment"], name, "flux-system"))
    cluster.let_time_pass()
    assert cluster.ready() == cluster.ready(SOURCE) == ("", "", "")


def test_an_idle_round_writes_nothing(cluster: Cluster) -> None:
    cluster.sync()
    cluster.sync("broken", path="./nowhere")
    cluster.let_time_pass()
    before = cluster.world.version
    cluster.let_time_pass()
    assert cluster.world.version == before


def test_what_leaves_git_is_pruned_unless_pruning_is_disabled(cluster: Cluster) -> None:
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


def test_what_operators_change_or_delete_is_corrected_after_the_interval(cluster: Cluster) -> None:
    cluster.sync()
    cluster.let_time_pass()
    one = At(KINDS["ConfigMap"], "one", "team")
    cluster.world.patch(one, {"data": {"colour": "red", "by-hand": "1"}}, MERGE)
    cluster.let_time_pass()
    assert cluster.world.get(one)["data"]["colour"] == "red"
    cluster.clock.advance(600)
    cluster.let_time_pass()
    assert cluster.world.get(one)["data"] == {"colour": "blue", "by-hand": "1"}


def test_a_deleted_kustomization_takes_its_objects_with_it(cluster: Cluster) -> None:
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
        ({"ref": {"tag": "v1"}}, "GitOperationFailed", "branches only"),
        ({"secretRef": {"name": "absent"}}, "AuthenticationFailed", 'secrets "absent" not found'),
        ({"secretRef": {"name": "wrong"}}, "GitOperationFailed", "authentication required"),
        ({}, "GitOperationFailed", "authentication required"),
    ],
)
def test_a_source_that_cannot_be_fetched_reports_the_reason(
    cluster: Cluster, spec: dict[str, Any], reason: str, message: str
) -> None:
    cluster.password = "right"
    cluster.apply(_secret("wrong", "guess"))
    cluster.apply(_secret("right", "right"))
    cluster.source(**spec)
    cluster.sync()
    cluster.let_time_pass()
    status, shown_reason, shown = cluster.ready(SOURCE)
    assert (status, shown_reason) == ("False", reason)
    assert message in shown
    assert "guess" not in shown
    assert cluster.ready()[:2] == ("False", "ArtifactFailed")


def _secret(name: str, password: str) -> dict[str, Any]:
    data = {"username": "git", "password": password}
    coded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "flux-system"}} | {
        "data": coded
    }


def test_a_source_recovers_once_its_secret_is_right(cluster: Cluster) -> None:
    cluster.password = "right"
    cluster.apply(_secret("flux-system", "wrong"))
    cluster.source(secretRef={"name": "flux-system"})
    cluster.let_time_pass()
    assert cluster.ready(SOURCE)[0] == "False"
    cluster.apply(_secret("flux-system", "right"))
    cluster.let_time_pass()
    assert cluster.ready(SOURCE)[0] == "True"


@pytest.mark.parametrize(
    ("file", "content", "reason", "message"),
    [
        ("bad.yaml", b"a: [1", "BuildFailed", "clusters/alpha/bad.yaml"),
        ("bad.yaml", b"hello: world", "BuildFailed", "clusters/alpha/bad.yaml"),
        ("kustomization.yaml", b"resources: [absent.yaml]", "BuildFailed", "absent.yaml"),
        ("kustomization.yaml", b"namePrefix: x", "BuildFailed", "namePrefix"),
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
    cluster: Cluster, file: str, content: bytes, reason: str, message: str
) -> None:
    cluster.commit({**cluster.files, f"clusters/alpha/{file}": content})
    cluster.sync()
    cluster.let_time_pass()
    status, shown_reason, shown = cluster.ready()
    assert (status, shown_reason) == ("False", reason)
    assert message in shown


def test_a_path_that_is_not_in_the_repository_is_an_artifact_failure(cluster: Cluster) -> None:
    cluster.sync(path="./clusters/alp")
    cluster.let_time_pass()
    assert cluster.ready()[1] == "ArtifactFailed"
    assert "kustomization path not found" in cluster.ready()[2]


def test_a_dependency_must_be_ready_first(cluster: Cluster) -> None:
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


def test_a_kustomization_file_lists_what_counts(cluster: Cluster) -> None:
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


def test_definitions_are_established_before_their_objects(cluster: Cluster) -> None:
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


def test_variables_are_filled_in_after_the_build(cluster: Cluster) -> None:
    text = (MAP_FILE % b"vars").replace(b"blue", b'"${colour} ${size:=small} ${none}"')
    cluster.commit({**cluster.files, "clusters/alpha/vars.yaml": text})
    values = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "v", "namespace": "flux-system"}}
    cluster.apply({**values, "data": {"colour": "red", "size": "huge"}})
    post = {"substituteFrom": [{"kind": "ConfigMap", "name": "v"}], "substitute": {"colour": "green"}}
    cluster.sync(postBuild=post)
    cluster.let_time_pass()
    assert cluster.world.get(At(KINDS["ConfigMap"], "vars", "team"))["data"]["colour"] == "green huge "


def test_a_request_by_annotation_is_handled_and_a_suspended_object_is_left_alone(cluster: Cluster) -> None:
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
