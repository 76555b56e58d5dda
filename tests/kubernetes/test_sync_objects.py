"""What Flux pulls and applies, as objects: sources, Kustomizations, and the facts of the cluster."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from shared.kubernetes.inside import facts_of
from shared.kubernetes.sync_objects import sync_objects
from shared.language.model.cluster.flux import Flux
from tests.support.desired_clusters import changed, desired

FLUX = {"repository": "https://github.com/example/fleet", "path": "./platform"}
EXISTING = {
    "id": "/subscriptions/s/resourceGroups/rg-one/providers/Microsoft.ContainerService/managedClusters/one",
    "identity": {"type": "SystemAssigned", "tenantId": "tenant", "principalId": "principal"},
    "properties": {
        "currentKubernetesVersion": "1.36.2",
        "fqdn": "one.hcp.example.io",
        "nodeResourceGroup": "MC_rg-one_one",
        "oidcIssuerProfile": {"enabled": True, "issuerURL": "https://issuer.example.io/one/"},
        "identityProfile": {"kubeletidentity": {"clientId": "kubelet"}},
        "addonProfiles": {
            "azureKeyvaultSecretsProvider": {"identity": {"clientId": "vault"}},
            "azurepolicy": {},
        },
    },
}
"""Members of a managed cluster as the REST reference of AKS shows them."""


def objects(**flux: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the specs of the objects of a cluster, by their kinds and names."""
    spec = desired("one").spec.model_copy(update={"flux": Flux.model_validate(FLUX | flux)})
    cluster = desired("one")
    object.__setattr__(cluster, "spec", spec)
    return {
        (sync_object["kind"], sync_object["metadata"]["name"]): sync_object.get("spec") or sync_object["data"]
        for sync_object in sync_objects(cluster, "example", None)
    }


def test_without_more_entries_the_objects_are_those_of_flux_bootstrap() -> None:
    assert objects() == {
        ("GitRepository", "flux-system"): {
            "interval": "1m0s",
            "ref": {"branch": "main"},
            "url": "https://github.com/example/fleet",
        },
        ("Kustomization", "flux-system"): {
            "interval": "10m0s",
            "path": "./platform",
            "prune": True,
            "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
        },
    }


def test_sources_and_kustomizations_have_the_fields_of_flux() -> None:
    found = objects(
        sources=[
            {
                "name": "charts",
                "kind": "OCIRepository",
                "url": "oci://example.azurecr.io/charts",
                "semver": "1.x",
                "provider": "azure",
            },
            {
                "name": "blobs",
                "kind": "Bucket",
                "endpoint": "https://x.blob.core.windows.net",
                "bucketName": "b",
            },
            {"name": "apps", "url": "https://github.com/example/apps", "tag": "v1"},
        ],
        kustomizations=[
            {"name": "flux-system", "wait": True},
            {
                "name": "apps",
                "source": "apps",
                "path": "deploy",
                "dependsOn": [{"name": "flux-system"}],
                "timeout": "5m",
                "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-facts"}]},
            },
            {"name": "charts", "source": "charts"},
        ],
    )
    assert found["OCIRepository", "charts"] == {
        "interval": "1m0s",
        "url": "oci://example.azurecr.io/charts",
        "provider": "azure",
        "ref": {"semver": "1.x"},
    }
    assert found["Bucket", "blobs"]["bucketName"] == "b"
    assert found["GitRepository", "apps"]["ref"] == {"tag": "v1"}
    assert found["Kustomization", "flux-system"]["wait"] is True
    assert found["Kustomization", "charts"]["sourceRef"] == {"kind": "OCIRepository", "name": "charts"}
    assert found["Kustomization", "apps"] == {
        "interval": "10m0s",
        "path": "./deploy",
        "prune": True,
        "timeout": "5m",
        "dependsOn": [{"name": "flux-system"}],
        "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-facts", "optional": False}]},
        "sourceRef": {"kind": "GitRepository", "name": "apps"},
    }


@pytest.mark.parametrize(
    ("flux", "message"),
    [
        ({"kustomizations": [{"name": "a", "source": "b"}]}, "there is no source b; there are flux-system"),
        ({"kustomizations": [{"name": "a", "dependsOn": [{"name": "b"}]}]}, "there is no Kustomization b"),
        (
            {
                "kustomizations": [
                    {"name": "a", "dependsOn": [{"name": "b"}]},
                    {"name": "b", "dependsOn": [{"name": "a"}]},
                ]
            },
            "a needs b needs a; remove one dependsOn",
        ),
        (
            {"kustomizations": [{"name": "flux-system", "path": "./x"}]},
            "path: write it directly below spec.flux",
        ),
        ({"kustomizations": [{"name": "a", "interval": "10"}]}, "a duration such as"),
        ({"sources": [{"name": "flux-system", "url": "https://h/x"}]}, "choose another name"),
        ({"sources": [{"name": "a"}]}, "kind: GitRepository needs url; add it"),
        ({"sources": [{"name": "a", "url": "oci://h/x"}]}, "it begins with https:// or ssh://"),
        ({"sources": [{"name": "a", "url": "https://user:token@h/x"}]}, "must have no user and no token"),
        ({"sources": [{"name": "a", "url": "ssh://git@h/x"}]}, "ssh:// needs secretRef"),
        ({"sources": [{"name": "a", "url": "https://h/x", "prefix": "p"}]}, "prefix: only Bucket has this"),
        ({"sources": [{"name": "a", "url": "https://h/x", "tag": "1", "semver": "2"}]}, "exclude each other"),
        ({"provider": "github"}, "provider: github needs secretRef"),
        ({"serviceAccountName": "x"}, "serviceAccountName goes with provider: azure"),
    ],
)
def test_what_flux_would_refuse_is_refused_in_the_plan(flux: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message.replace("(", r"\(")) as caught:
        Flux.model_validate(FLUX | flux)
    assert "user:token" not in str(caught.value.errors()[0]["msg"])


def test_the_facts_are_those_that_azure_shows_and_the_labels() -> None:
    cluster = desired("one")
    cluster = changed(cluster, labels={"team": "shop", "a-b": "1", "a.b": "2"})
    facts = facts_of(cluster, EXISTING)
    assert facts["cluster_name"] == "one"
    assert facts["cluster_oidc_issuer_url"] == "https://issuer.example.io/one/"
    assert facts["cluster_kubernetes_version"] == "1.36.2"
    assert facts["cluster_kubelet_identity_client_id"] == "kubelet"
    assert facts["cluster_addon_azureKeyvaultSecretsProvider_client_id"] == "vault"
    assert facts["cluster_label_team"] == "shop"
    assert "cluster_label_a_b" not in facts
    assert all(facts.values())


def test_every_fact_is_a_variable_that_flux_accepts() -> None:
    cluster = desired("one")
    cluster = changed(cluster, labels={"example.com/cost-center": "7", "x.y": "z"})
    assert all(name.isidentifier() and name.isascii() for name in facts_of(cluster, EXISTING))
