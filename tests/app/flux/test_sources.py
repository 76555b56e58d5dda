"""What a cluster pulls besides git over HTTPS: artifacts of registries, containers of storage accounts."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import KUSTOMIZATION, SOURCE
from shared.resource_ids import ObjectRef
from tests.support.flux_components import FILE
from tests.support.flux_definitions import with_real_definitions
from tests.support.one_cluster import ONE, advice, api, files, live, record
from tests.support.pipeline_runs import phases, push
from tests.support.sources import CLIENT, colour, manifests, pulling

pytestmark = pytest.mark.lives

FLEET = "repository: 'oci://example.azurecr.io/fleet'"
IDENTITY = f"workloadIdentity: {{clientId: {CLIENT}}}"
BLOBS = "repository: 'https://store.blob.core.windows.net', bucketName: fleet, provider: azure"
ARTIFACT = ObjectRef(SOURCE.api_version, "OCIRepository", "flux-system", "flux-system")


def brought(cloud: MemoryCloud, content: dict[str, bytes], seconds: float = 600) -> Phase:
    push(cloud, content)
    cloud.run(seconds=seconds)
    return phases(cloud)["one"]


def with_artifact(colours: str = "blue", tag: str = "latest") -> MemoryCloud:
    cloud = MemoryCloud(throttle=False)
    cloud.stores.push("fleet", tag, manifests(colours))
    return cloud


def test_a_cluster_is_hydrated_from_an_artifact_without_a_git_credential() -> None:
    cloud = with_artifact()
    assert brought(cloud, pulling(FLEET)) is Phase.READY
    assert colour(cloud) == "blue"
    assert api(cloud).get(SOURCE) is None


def test_a_job_ends_with_what_the_tag_points_to_after_its_request() -> None:
    cloud = with_artifact()
    assert brought(cloud, pulling(FLEET)) is Phase.READY
    digest = cloud.stores.push("fleet", "latest", manifests("green"))
    assert brought(cloud, pulling(FLEET) | files_of_tag("one")) is Phase.READY
    assert colour(cloud) == "green"
    events = "\n".join(event.message for event in cloud.state.events("one", limit=50))
    assert f"Flux applied latest@{digest}" in events


def files_of_tag(value: str) -> dict[str, bytes]:
    """Return the cluster of ``FLEET`` with a tag of Azure, so that a commit changes it."""
    whole = pulling(FLEET)
    path = "clusters/one/cluster.yaml"
    return {path: whole[path] + f"  tags: {{round: {value}}}\n".encode()}


def test_a_digest_in_git_is_exactly_what_is_applied() -> None:
    cloud = with_artifact("blue")
    first = cloud.stores.push("fleet", "latest", manifests("blue"))
    cloud.stores.push("fleet", "latest", manifests("green"))
    assert brought(cloud, pulling(f"{FLEET}, digest: '{first}'")) is Phase.READY
    assert colour(cloud) == "blue"
    assert live(cloud, KUSTOMIZATION)["status"]["lastAppliedRevision"] == first


def test_the_newest_version_of_a_range_is_applied() -> None:
    cloud = with_artifact("blue", "1.2.0")
    cloud.stores.push("fleet", "1.10.0", manifests("green"))
    cloud.stores.push("fleet", "2.0.0", manifests("red"))
    cloud.stores.push("fleet", "1.11.0-rc.1", manifests("grey"))
    assert brought(cloud, pulling(f"{FLEET}, semver: 1.x")) is Phase.READY
    assert colour(cloud) == "green"


def test_a_private_registry_lets_the_identity_of_flux_in() -> None:
    cloud = with_artifact()
    cloud.stores.registry.users, cloud.stores.registry.identities = {}, (CLIENT,)
    assert brought(cloud, pulling(f"{FLEET}, provider: azure, {IDENTITY}", identity=True)) is Phase.READY
    assert colour(cloud) == "blue"


@pytest.mark.parametrize(
    ("flux", "reason"),
    [
        (f"{FLEET}, provider: azure", "AuthenticationFailed: failed to get credential from azure"),
        (FLEET, "OCIArtifactPullFailed: failed to determine artifact digest"),
        (f"{FLEET}, tag: gone, provider: azure, {IDENTITY}", "OCIArtifactPullFailed"),
    ],
)
def test_what_the_registry_refuses_says_what_to_do(flux: str, reason: str) -> None:
    cloud = with_artifact()
    cloud.stores.registry.users, cloud.stores.registry.identities = {}, (CLIENT,)
    assert brought(cloud, pulling(flux, identity=True), 300) is not Phase.READY
    assert record(cloud).job.reason.startswith(f"Flux: OCIRepository flux-system: {reason}")
    assert "the identity of Flux needs the role AcrPull" in advice(cloud)
    assert advice(cloud).endswith("in spec.flux, or push the artifact.")


def test_another_identity_replaces_the_pods_that_have_the_former_one() -> None:
    cloud = with_artifact()
    other = CLIENT.replace("31", "32")
    cloud.stores.registry.users, cloud.stores.registry.identities = {}, (CLIENT, other)
    flux = f"{FLEET}, provider: azure, {IDENTITY}"
    assert brought(cloud, pulling(flux, identity=True)) is Phase.READY
    before = live(cloud, ObjectRef("apps/v1", "Deployment", "source-controller", "flux-system"))
    assert brought(cloud, pulling(flux.replace(CLIENT, other), identity=True)) is Phase.READY
    after = live(cloud, ObjectRef("apps/v1", "Deployment", "source-controller", "flux-system"))
    assert before["spec"]["template"]["metadata"] != after["spec"]["template"]["metadata"]
    account = live(cloud, ObjectRef("v1", "ServiceAccount", "source-controller", "flux-system"))
    assert account["metadata"]["annotations"]["azure.workload.identity/client-id"] == other


def test_an_account_of_its_own_needs_the_feature_gate_and_the_advice_says_so() -> None:
    cloud = with_artifact()
    flux = f"{FLEET}, provider: azure, serviceAccountName: reader"
    assert brought(cloud, pulling(flux, identity=True), 300) is not Phase.READY
    assert "FeatureGateDisabled" in record(cloud).job.reason
    assert "ObjectLevelWorkloadIdentity" in advice(cloud)


def test_a_cluster_is_hydrated_from_a_container() -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.stores.containers["fleet"], cloud.stores.readers = manifests("blue"), {CLIENT}
    assert brought(cloud, pulling(f"{BLOBS}, {IDENTITY}", identity=True)) is Phase.READY
    assert colour(cloud) == "blue"


def test_a_container_that_refuses_says_what_to_do() -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.stores.containers["fleet"], cloud.stores.readers = manifests("blue"), set()
    assert brought(cloud, pulling(f"{BLOBS}, {IDENTITY}", identity=True), 300) is not Phase.READY
    assert record(cloud).job.reason.startswith("Flux: Bucket flux-system: BucketOperationFailed: ")
    assert "Storage Blob Data Reader" in advice(cloud)


def test_a_cluster_moves_from_git_to_an_artifact_with_the_same_objects() -> None:
    cloud = MemoryCloud(throttle=False)
    assert brought(cloud, pulling("path: ./platform") | manifests("blue")) is Phase.READY
    inside = cloud.kubernetes.world(ONE)
    assert inside is not None
    uid = live(cloud, ObjectRef("v1", "ConfigMap", "colour", "default"))["metadata"]["uid"]
    cloud.stores.push("fleet", "latest", manifests("green"))
    assert brought(cloud, pulling(FLEET)) is Phase.READY
    found = live(cloud, ObjectRef("v1", "ConfigMap", "colour", "default"))
    assert (found["metadata"]["uid"], found["data"]) == (uid, {"colour": "green"})
    assert api(cloud).get(SOURCE) is None
    assert api(cloud).get(ARTIFACT) is not None


def test_a_named_source_of_a_registry_has_a_kustomization_of_its_own() -> None:
    cloud = with_artifact()
    more = (
        "sources: [{name: shared, kind: OCIRepository, url: 'oci://example.azurecr.io/fleet'}], "
        "kustomizations: [{name: shared, source: shared, path: ./platform}]"
    )
    assert brought(cloud, pulling(more)) is Phase.READY
    assert colour(cloud) == "blue"


def test_the_extension_pulls_an_artifact_too() -> None:
    cloud = with_artifact()
    assert brought(cloud, files(f"  flux: {{install: extension, {FLEET}}}\n")) is Phase.READY
    assert colour(cloud) == "blue"
    shown = cloud.azure.get_flux_configuration(ONE, "flux-system")["properties"]
    assert (shown["sourceKind"], shown["ociRepository"]["url"]) == (
        "OCIRepository",
        "oci://example.azurecr.io/fleet",
    )


@pytest.mark.parametrize(
    "flux",
    [
        f"{FLEET}, digest: 'sha256:{'0' * 64}', provider: azure, {IDENTITY}",
        f"{FLEET}, semver: 1.x, provider: azure, serviceAccountName: reader",
        f"{BLOBS}, prefix: platform/, {IDENTITY}",
        "repository: 'ssh://git@github.com/example/fleet', secretRef: {name: deploy-key}",
        "sources: [{name: c, kind: OCIRepository, url: 'oci://e.io/c', layerSelector: {operation: copy}}]",
    ],
)
def test_flux_accepts_each_kind_of_source_by_its_own_definitions(flux: str) -> None:
    cloud = MemoryCloud(throttle=False)
    push(cloud, with_real_definitions(pulling(flux, identity=True)))
    cloud.run(seconds=300)
    assert record(cloud).job.step.name is Step.VERIFY, record(cloud).job.reason


def test_components_without_the_version_of_artifacts_that_is_needed_are_refused_with_the_remedy() -> None:
    cloud = with_artifact()
    older = pulling(FLEET)
    older[FILE] = older[FILE].replace(b'"name": "v1", "served"', b'"name": "v1beta2", "served"')
    assert brought(cloud, older, 300) is Phase.FAILED
    reason = "spec.flux.repository needs OCIRepository, which flux/gotk-components.yaml does not define"
    assert reason in record(cloud).job.reason
