"""A namespace of a system as AKS manages it: its name, its document, and what differs. Pure.

Azure creates the namespace with its labels, the ResourceQuota ``defaultresourcequota`` and the NetworkPolicy
``defaultnetworkpolicy``, and lets nobody change these in the cluster
(learn.microsoft.com/azure/aks/managed-namespaces, "Limitations"). So nothing of them is applied there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from shared.azure.differences import Difference
from shared.json_tree import Json
from shared.kubernetes.system_objects import SYSTEM
from shared.language.cluster_systems import ClusterSystem, read_system, systems_in
from shared.language.desired import Desired
from shared.language.model.base import OWN_PREFIX
from shared.language.model.system import SECURITY_LABEL, TENANT_LABEL, ManagedNamespaces, thousandths
from shared.resource_ids import ClusterId

DELETE_POLICY = f"{OWN_PREFIX}delete-policy"
"""The annotation with git's delete policy: it stays on a namespace that Azure no longer manages."""
OWN_KEYS = f"{OWN_PREFIX}own-keys"
"""The annotation with the keys that git has given the namespace: nobody else's are touched."""
BY_ARM = "kubernetes.azure.com/managedByArm"
"""The label with which AKS marks what Azure Resource Manager manages."""
KEEP = "Keep"
FIELDS = ("labels", "annotations", "defaultResourceQuota", "defaultNetworkPolicy", "deletePolicy")
"""What is compared. The adoption policy acts on a namespace that Azure does not manage yet."""
_OF_AZURE = frozenset({"kubernetes.io/metadata.name", BY_ARM})
_OWN = frozenset({SYSTEM, TENANT_LABEL, DELETE_POLICY, OWN_KEYS})
_KEYED = ("labels", "annotations")
_CPU, _MEMORY = ("cpuRequest", "cpuLimit"), ("memoryRequest", "memoryLimit")
_UNITS = {unit: 1024**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}


def managed_by_azure(systems: tuple[ClusterSystem, ...]) -> dict[str, ClusterSystem]:
    """Return the systems whose namespaces Azure manages, by namespace."""
    managed = (system for system in systems if system.managed_namespaces is not None)
    return {name: system for system in managed for name in system.namespaces}


def wanted_fields(system: ClusterSystem) -> dict[str, Any]:
    """Return the compared fields of each namespace of a system that Azure manages."""
    managed = system.managed_namespaces or ManagedNamespaces()
    keys = ",".join(sorted({*managed.labels, *managed.annotations}))
    by_policy = "AllowSameNamespace" if system.network_policy == "isolated" else "AllowAll"
    return {
        "labels": {
            SYSTEM: system.name,
            TENANT_LABEL: system.name,
            SECURITY_LABEL: system.pod_security,
            **managed.labels,
        },
        "annotations": {
            DELETE_POLICY: managed.delete_policy,
            **({OWN_KEYS: keys} if keys else {}),
            **managed.annotations,
        },
        "defaultResourceQuota": _quota(system),
        "defaultNetworkPolicy": {"ingress": managed.ingress or by_policy, "egress": managed.egress},
        "deletePolicy": managed.delete_policy,
    }


def live_fields(live: Json) -> dict[str, Any]:
    """Return the same fields as Azure has them, without what AKS adds."""
    properties = live.get("properties") or {}
    found: dict[str, Any] = {name: properties.get(name) or {} for name in FIELDS}
    for name in _KEYED:
        found[name] = {key: value for key, value in found[name].items() if key not in _OF_AZURE}
    for name in ("defaultResourceQuota", "defaultNetworkPolicy"):
        found[name] = {key: value for key, value in found[name].items() if value is not None}
    return {**found, "deletePolicy": str(properties.get("deletePolicy") or "")}


def differing_fields(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields that differ; a quantity may be written in another unit.

    Of labels and annotations only those count that git has, or has given the namespace before.
    """
    has = {**live, **{name: _given(live, wanted, name) for name in _KEYED}}
    return [name for name in FIELDS if _same_form(name, has[name]) != _same_form(name, wanted[name])]


def written_fields(
    live: Mapping[str, Any], wanted: Mapping[str, Any], differing: Collection[str]
) -> dict[str, Any]:
    """Return the fields to write: those that differ as git has them, with the keys of others."""
    fields = {**live, **{name: wanted[name] for name in differing}}
    for name in _KEYED:
        if name in differing:
            ours = _given(live, wanted, name)
            others = {key: value for key, value in live[name].items() if key not in ours}
            fields[name] = {**others, **wanted[name]}
    return fields


def _given(live: Mapping[str, Any], wanted: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the labels or annotations of a namespace that are git's, or were."""
    before = str(live["annotations"].get(OWN_KEYS, "")).split(",")
    ours = {*wanted[name], *before, *_OWN}
    return {key: value for key, value in live[name].items() if key in ours}


def is_identical(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether nothing differs that git says, but the keys that only Roadstead sets."""

    def of_the_team(fields: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: {k: v for k, v in fields[name].items() if k not in _OWN} for name in _KEYED}
        return {**fields, **kept}

    return not differing_fields(of_the_team(live), of_the_team(wanted))


def namespace_body(
    fields: Mapping[str, Any], *, location: str, tags: Mapping[str, str], adoption: str
) -> dict[str, Any]:
    """Return the body of a PUT of a managed namespace."""
    given = {name: fields[name] for name in FIELDS if fields[name] or name != "defaultResourceQuota"}
    return {
        "location": location,
        "tags": dict(tags),
        "properties": {**given, "adoptionPolicy": adoption},
    }


def without_deletion(live: Json) -> dict[str, Any] | None:
    """Return the fields that make Azure keep the namespace, None where it would.

    Git's policy is not in them any more: the namespace is one like any other once Azure does not manage it.
    """
    fields = live_fields(live)
    if fields["deletePolicy"] == KEEP and DELETE_POLICY not in fields["annotations"]:
        return None
    ours = (DELETE_POLICY, OWN_KEYS)
    annotations = {key: value for key, value in fields["annotations"].items() if key not in ours}
    return {**fields, "annotations": annotations, "deletePolicy": KEEP}


def kept_against_git(live: Json) -> dict[str, Any] | None:
    """Return the fields of a namespace that git keeps and somebody lets Azure delete, None for another."""
    fields = live_fields(live)
    if fields["annotations"].get(DELETE_POLICY) == "Delete" or fields["deletePolicy"] == KEEP:
        return None
    return {**fields, "deletePolicy": KEEP}


def is_by_arm(namespace: Json) -> bool:
    """Return whether Azure manages a namespace of a cluster."""
    return (namespace["metadata"].get("labels") or {}).get(BY_ARM) == "true"


def stays_by_policy(namespace: Json) -> bool:
    """Return whether git said to keep a namespace that Azure managed."""
    return (namespace["metadata"].get("annotations") or {}).get(DELETE_POLICY) == KEEP


def _quota(system: ClusterSystem) -> dict[str, str]:
    quota = system.quota
    given = {
        "cpuRequest": quota.cpu and thousandths(quota.cpu),
        "cpuLimit": quota.limits_cpu and thousandths(quota.limits_cpu),
        "memoryRequest": quota.memory,
        "memoryLimit": quota.limits_memory,
    }
    return {name: value for name, value in given.items() if value}


def _same_form(name: str, value: Any) -> Any:
    if name != "defaultResourceQuota":
        return value
    return {key: _quantity(key, str(one)) for key, one in value.items()}


def _quantity(name: str, text: str) -> Decimal | str:
    """Return a quantity as a number, the text of one that is none."""
    if name in _CPU:
        return thousandths(text) or text
    scale = _UNITS.get(text[-2:]) if name in _MEMORY else None
    number = text[:-2]
    is_number = scale is not None and number.replace(".", "", 1).isdigit()
    return Decimal(number) * Decimal(scale or 1) if is_number else text


# The managed namespaces of a cluster in Azure, by their resource ids.

_NAMESPACES = "/managednamespaces/"


def managed_in(document: Mapping[str, Any]) -> Sequence[str]:
    """Return the resource ids, in lower case, of all managed namespaces of a stored form."""
    spec = document["spec"]
    cluster = ClusterId(spec["subscriptionId"], spec["resourceGroup"], document["name"])
    return tuple(
        f"{cluster.resource}{_NAMESPACES}{name}".lower()
        for one in systems_in(document)
        if one.get("managedNamespaces") is not None
        for name in one["namespaces"]
    )


def is_managed_namespace(resource: str) -> bool:
    """Return whether a resource id is that of a managed namespace."""
    return _NAMESPACES in resource


def namespaces_of(resources: Sequence[str]) -> frozenset[str]:
    """Return the names of the managed namespaces among resource ids."""
    return frozenset(each.rpartition("/")[2] for each in resources if is_managed_namespace(each))


# The managed namespaces of a cluster's systems, compared with those in Azure. Pure.

NAMESPACES = "managedNamespaces["
"""How the path of a difference of a managed namespace begins."""


def namespace_path(namespace: str, field: str = "") -> str:
    """Return the path of a managed namespace, or of a field of it."""
    return ".".join(filter(None, (f"{NAMESPACES}{namespace}]", field)))


def namespace_differences(desired: Desired, live: Mapping[str, Json]) -> tuple[Difference, ...]:
    """Return the fields in which managed namespaces differ, whatever a job leaves; ``live`` is by name."""
    found: list[Difference] = []
    systems = tuple(read_system(one) for one in desired.systems)
    for name, system in sorted(managed_by_azure(systems).items()):
        if name not in live:
            found.append(Difference(namespace_path(name), {"system": system.name}, None))
            continue
        wanted, has = wanted_fields(system), live_fields(live[name])
        found += [
            Difference(namespace_path(name, field), wanted[field] or None, has[field] or None)
            for field in differing_fields(has, wanted)
        ]
    return tuple(found)
