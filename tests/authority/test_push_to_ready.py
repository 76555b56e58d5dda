"""From push to Ready on a real cluster: real API server, real controllers, real Flux."""

from __future__ import annotations

import ssl

import httpx
import pytest

from shared.resource_ids import ObjectRef
from tests.authority.flux_components import NAMESPACE, components, retired_controller
from tests.authority.programs import KUSTOMIZE
from tests.authority.real_fleet import READY_SECONDS, RealFleet

pytestmark = pytest.mark.timeout(1200)
ALONE = {"namespaces", "configmaps", "secrets", "clusterroles", "gitrepositories", "kustomizations"}
"""Of these kinds Roadstead has one object; what it has several of is listed."""
SOURCE = ObjectRef("source.toolkit.fluxcd.io/v1", "GitRepository", "flux-system", "flux-system")
OWNER = ObjectRef("v1", "ConfigMap", "platform-info", "platform")


def test_a_second_apply_writes_nothing_but_the_request_that_flux_reconciles(fleet: RealFleet) -> None:
    fleet.ready(fleet.files())
    with fleet.api() as api:
        applied = api.get(OWNER)
        assert applied is not None
        assert applied["data"] == {"owner": "platform-team"}
    before, asked = fleet.writes(), len(fleet.reads())
    assert {resource for resource, name in fleet.reads() if name} <= ALONE
    fleet.ready(fleet.files(extra="  tags: {team: shop}\n"))
    assert {resource for resource, name in fleet.reads()[asked:] if name} <= ALONE
    assert sorted(fleet.writes()[len(before) :]) == [
        "patch /apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/flux-system",
        "patch /apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/flux-system",
    ]


def test_a_private_repository_is_read_with_the_credentials_of_the_app(fleet: RealFleet) -> None:
    fleet.without_credentials(allowed=False)
    refs = f"{fleet.repository}/info/refs?service=git-upload-pack"
    trust = ssl.create_default_context(cafile=str(fleet.state / "ca.pem"))
    assert httpx.get(refs, verify=trust, trust_env=False).status_code == 401
    fleet.ready(fleet.files())
    with fleet.api() as api:
        source = api.get(SOURCE)
        assert source is not None
        assert source["spec"]["secretRef"] == {"name": "flux-system"}


def test_a_commit_that_changes_only_the_platform_is_pulled_and_one_that_is_invalid_is_not(
    fleet: RealFleet,
) -> None:
    files = fleet.files()
    fleet.without_credentials(allowed=False)
    fleet.ready(files)
    changed = files | {"platform/more.yaml": _config_map("more", "pulled")}
    pulled = fleet.ready(changed)
    assert _data(fleet, "more") == {"is": "pulled"}
    refused = fleet.operator.push(changed | {"platform/broken.yaml": b"a: ["})
    fleet.operator.wait_for_status(refused, "failure", seconds=READY_SECONDS)
    assert "broken.yaml" in fleet.planned()
    assert pulled in fleet.revision()
    fleet.ready(changed)


def test_a_branch_that_does_not_exist_is_named_until_it_does(fleet: RealFleet) -> None:
    fleet.operator.push(fleet.files(flux="    branch: no-such\n"))
    fleet.wait_for_reason("GitRepository", "no-such")
    fleet.ready(fleet.files())


def test_a_commit_that_flux_cannot_apply_is_not_ready_until_it_is_repaired(fleet: RealFleet) -> None:
    files = fleet.files()
    fleet.ready(files)
    lost = _config_map("lost", "nowhere").replace(b"namespace: platform", b"namespace: not-there")
    commit = fleet.operator.push(files | {"platform/lost.yaml": lost, **_changed(fleet)})
    fleet.wait_for_reason("Kustomization", "not-there")
    assert fleet.operator.status(commit) != "success"
    fleet.ready(files | _changed(fleet))


def test_an_upgrade_of_flux_removes_what_the_new_components_no_longer_have(fleet: RealFleet) -> None:
    retired = retired_controller("image-reflector-controller")
    old = components(release="old", tags={KUSTOMIZE.name: "v1.7.2"}, more=retired)
    fleet.ready(fleet.files(flux_components=old))
    fleet.ready(fleet.files())
    with fleet.api() as api:
        deployments = {
            document["metadata"]["name"]: document
            for document in api.list("apps/v1", "Deployment", namespace=NAMESPACE)
        }
        assert set(deployments) == {"source-controller", "kustomize-controller", "notification-controller"}
        image = deployments[KUSTOMIZE.name]["spec"]["template"]["spec"]["containers"][0]["image"]
        assert image.endswith(f":{KUSTOMIZE.version}")
        for kind in ("ServiceAccount", "Service"):
            names = {document["metadata"]["name"] for document in api.list("v1", kind, namespace=NAMESPACE)}
            assert "image-reflector-controller" not in names
        assert api.get(OWNER) is not None


def test_an_upgrade_to_an_image_that_does_not_exist_is_not_ready(fleet: RealFleet) -> None:
    fleet.ready(fleet.files())
    fleet.operator.push(fleet.files(flux_components=components(tags={KUSTOMIZE.name: "v0-missing"})))
    fleet.wait_for_reason(KUSTOMIZE.name)
    fleet.ready(fleet.files())


def _config_map(name: str, value: str) -> bytes:
    metadata = f"{{name: {name}, namespace: platform}}"
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\ndata: {{is: {value}}}\n".encode()


def _data(fleet: RealFleet, name: str) -> object:
    with fleet.api() as api:
        return (api.get(ObjectRef("v1", "ConfigMap", name, "platform")) or {}).get("data")


def _changed(fleet: RealFleet) -> dict[str, bytes]:
    path = "clusters/one/cluster.yaml"
    return {path: fleet.files(extra="  tags: {team: shop}\n")[path]}
