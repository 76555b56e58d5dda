"""The facts of a cluster: what manifests on it, and programs around it, need to know of it. Pure.

They are variables for Flux's ``postBuild.substituteFrom``, so their names are those that Flux accepts
(fluxcd.io/flux/components/kustomize/kustomizations, "Post build variable substitution"). None is a secret:
they are the cluster's manifest, and what ARM shows of it to readers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from shared.json_tree import Json
from shared.language.desired import Desired

PREFIX = "cluster_"
_OTHER = re.compile(r"[^A-Za-z0-9]")


def facts_of(desired: Desired, existing: Json) -> dict[str, str]:
    """Return the facts of a cluster that Azure shows like this, by their names, without empty ones.

    ``existing`` is ARM's managed cluster.
    """
    properties = existing.get("properties") or {}
    issuer = (properties.get("oidcIssuerProfile") or {}).get("issuerURL")
    identity = existing.get("identity") or {}
    facts: dict[str, object] = {
        "name": desired.name,
        "environment": desired.environment,
        "class": desired.cluster_class,
        "location": desired.spec.location,
        "subscription_id": desired.spec.subscription_id,
        "tenant_id": identity.get("tenantId") or (properties.get("aadProfile") or {}).get("tenantID"),
        "resource_group": desired.spec.resource_group,
        "node_resource_group": properties.get("nodeResourceGroup"),
        "resource_id": existing.get("id"),
        "kubernetes_version": properties.get("currentKubernetesVersion")
        or properties.get("kubernetesVersion"),
        "fqdn": properties.get("fqdn") or properties.get("privateFQDN"),
        "oidc_issuer_url": issuer,
        "identity_principal_id": identity.get("principalId"),
        **dict(_identities(identity, properties)),
        **_labels(desired.labels),
    }
    return {f"{PREFIX}{name}": str(value) for name, value in sorted(facts.items()) if value}


def _identities(identity: Json, properties: Json) -> Iterator[tuple[str, object]]:
    """Yield the client ids of the identities of the control plane, of the kubelets and of the add-ons."""
    assigned = list((identity.get("userAssignedIdentities") or {}).values())
    if len(assigned) == 1:
        yield "identity_client_id", (assigned[0] or {}).get("clientId")
    kubelet = (properties.get("identityProfile") or {}).get("kubeletidentity") or {}
    yield "kubelet_identity_client_id", kubelet.get("clientId")
    for name, addon in (properties.get("addonProfiles") or {}).items():
        yield f"addon_{_variable(name)}_client_id", ((addon or {}).get("identity") or {}).get("clientId")


def _labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels as facts; of those with one name as a variable, none."""
    names = {key: f"label_{_variable(key)}" for key in labels}
    count = Counter(names.values())
    return {name: labels[key] for key, name in names.items() if count[name] == 1}


def _variable(text: str) -> str:
    return _OTHER.sub("_", text)
