"""A hydrated cluster with real controllers: keys from the vault, secrets from git, teams in their place."""

from __future__ import annotations

import base64
import ssl

import httpx
import pytest

from localcloud.keyvault.example_secrets import AGE_KEY
from shared.resource_ids import ObjectRef
from tests.authority.flux_components import components
from tests.authority.real_fleet import NAME, RealFleet
from tests.authority.sealed_secrets import SealingKey, controller
from tests.support.pulling_systems import ROLES
from tests.support.sops_files import encrypted
from tests.support.sources import CLIENT, WITH_IDENTITY

pytestmark = pytest.mark.timeout(600)
KEYS = """\
  bootstrapSecrets:
    - name: sops-age
      vault: platform
      keys: {age.agekey: fleet-age}
    - name: sealed-secrets-key
      namespace: sealed-secrets
      type: kubernetes.io/tls
      labels: {sealedsecrets.bitnami.com/sealed-secrets-key: active}
      vault: platform
      keys: {tls.crt: sealing-crt, tls.key: sealing-key}
"""
LAYER = """\
    kustomizations:
      - name: secrets
        path: ./secrets
        wait: true
        dependsOn: [{name: flux-system}]
        decryption: {provider: sops, secretRef: {name: sops-age}}
"""
PLAIN = """\
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: platform}
stringData: {password: hidden}
"""
SOPS, SEALED = ObjectRef("v1", "Secret", "login", "platform"), ObjectRef("v1", "Secret", "token", "platform")
APPLIED = ObjectRef("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "shop", "shop")
MENU = ObjectRef("v1", "ConfigMap", "menu", "shop")
OWN_SOURCE = b"""\
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: own, namespace: shop}
spec: {interval: 1m, url: oci://example.azurecr.io/shop, provider: azure}
"""
STOLEN = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: stolen}\n"


def in_vault(fleet: RealFleet, **values: str) -> None:
    """Set secrets in the vault as its owner does."""
    trust = ssl.create_default_context(cafile=str(fleet.state / "ca.pem"))
    base = f"https://127.0.0.1:{fleet.operator.cloud.ports['vault']}/_local/secrets"
    for name, value in values.items():
        url = f"{base}/{name.replace('_', '-')}"
        httpx.put(url, json={"value": value}, verify=trust, trust_env=False).raise_for_status()


def entry(fleet: RealFleet, ref: ObjectRef, key: str) -> str:
    """Return an entry of a Secret, "" without it."""
    with fleet.api() as api:
        found = api.get(ref)
    return base64.b64decode(found["data"][key]).decode() if found else ""


def reported(fleet: RealFleet) -> str:
    """Return what Flux says of the team's Kustomization."""
    with fleet.api() as api:
        found = api.get(APPLIED) or {}
    conditions = (found.get("status") or {}).get("conditions") or ()
    return next((condition["message"] for condition in conditions if condition["type"] == "Ready"), "")


def test_secrets_in_git_are_opened_with_the_keys_that_were_there_before_flux(fleet: RealFleet) -> None:
    key = SealingKey()
    in_vault(fleet, fleet_age=AGE_KEY, sealing_crt=key.certificate_pem, sealing_key=key.private_pem)
    secrets = {
        "platform/sealed-secrets.yaml": controller(),
        "secrets/login.yaml": encrypted(PLAIN),
        "secrets/token.yaml": key.sealed("token", "platform", {"token": "from-git"}),
    }
    fleet.ready(fleet.files(extra=KEYS, flux=LAYER) | secrets)
    assert entry(fleet, SOPS, "password") == "hidden"
    fleet.operator.wait(lambda: entry(fleet, SEALED, "token") == "from-git", "the sealed secret is opened")
    before = len(fleet.writes())
    fleet.ready(fleet.files(extra=KEYS + "  tags: {team: shop}\n", flux=LAYER) | secrets)
    written = {path.rpartition("/")[2] for path in fleet.writes()[before:]}
    assert written == {"flux-system", "secrets"}, (
        "a second job asks Flux to reconcile, and writes nothing else"
    )


def system_files(fleet: RealFleet) -> dict[str, bytes]:
    """Return a system on the cluster that has a ConfigMap from the fleet's own repository."""
    system = f"""\
apiVersion: roadstead.dev/v1alpha1
kind: System
metadata: {{name: shop}}
spec:
  owners: [shop-team@example.com]
  clusters: {{names: [{NAME}]}}
  namespaces: [shop]
  source: {{repository: {fleet.repository}, path: ./teams/shop}}
  quota: {{pods: 5}}
"""
    menu = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: menu}\ndata: {dish: soup}\n"
    return {"systems/shop.yaml": system.encode(), "teams/shop/menu.yaml": menu}


def test_a_team_has_its_namespace_and_is_refused_beyond_it(fleet: RealFleet) -> None:
    files = fleet.files() | system_files(fleet)
    fleet.ready(files)
    with fleet.api() as api:
        found = api.get(MENU)
        assert found is not None
        assert found["data"] == {"dish": "soup"}
        (quota,) = api.list("v1", "ResourceQuota", namespace="shop")
        assert quota["status"]["hard"]["pods"] == "5", "the quota controller counts it"
    fleet.operator.push(files | {"teams/shop/stolen.yaml": STOLEN})
    fleet.operator.wait(lambda: "forbidden" in reported(fleet), "Flux is refused", seconds=120)
    with fleet.api() as api:
        assert api.get(ObjectRef("v1", "Namespace", "stolen")) is None


def test_a_source_of_a_team_is_not_pulled_as_the_identity_of_the_platforms_flux(fleet: RealFleet) -> None:
    identity = f"    workloadIdentity: {{clientId: {CLIENT}}}\n"
    whole = components() + ROLES.encode()
    files = fleet.files(extra=WITH_IDENTITY, flux=identity, flux_components=whole) | system_files(fleet)
    fleet.ready(files | {"teams/shop/own.yaml": OWN_SOURCE})

    def said() -> str:
        with fleet.api() as api:
            found = api.get(ObjectRef("source.toolkit.fluxcd.io/v1", "OCIRepository", "own", "shop")) or {}
        conditions = (found.get("status") or {}).get("conditions") or ()
        return next((condition["message"] for condition in conditions if condition["type"] == "Ready"), "")

    fleet.operator.wait(lambda: "tenant ID is not set" in said(), "Flux has no identity for it", seconds=60)
