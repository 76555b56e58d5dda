"""A namespace of a system as AKS manages it: its name, its document, and what differs. Pure.

Azure creates the namespace with its labels, the ResourceQuota ``defaultresourcequota`` and the NetworkPolicy
``defaultnetworkpolicy``, and lets nobody change these in the cluster
(learn.microsoft.com/azure/aks/managed-namespaces, "Limitations"). So nothing of them is applied there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Self

from shared.azure.companions.companion import Companion, Fields
from shared.azure.differences import Difference
from shared.azure.ownership import tag
from shared.frozen import dataclass, field, replace
from shared.json_tree import Json
from shared.kubernetes.system_objects import SYSTEM
from shared.language.cluster_systems import ClusterSystem, read_system, systems_in
from shared.language.desired import Desired
from shared.language.model.base import OWN_PREFIX
from shared.language.model.system import SECURITY_LABEL, TENANT_LABEL, ManagedNamespaces, thousandths

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


def _has_failed(live: Json) -> bool:
    return (live.get("properties") or {}).get("provisioningState") in ("Failed", "Canceled")


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
    return {key: _quantity(key, str(document)) for key, document in value.items()}


def _quantity(name: str, text: str) -> Decimal | str:
    """Return a quantity as a number, the text of one that is none."""
    if name in _CPU:
        return thousandths(text) or text
    scale = _UNITS.get(text[-2:]) if name in _MEMORY else None
    number = text[:-2]
    is_number = scale is not None and number.replace(".", "", 1).isdigit()
    return Decimal(number) * Decimal(scale or 1) if is_number else text


@dataclass(frozen=True)
class NamespaceCompanion(Companion):
    """A managed namespace of a system; ``location``, ``adoption`` and ``tags`` go with each write of it."""

    noun, entries, segment = "managed namespace", "managedNamespaces", "/managednamespaces/"
    has_name_of_entry = True
    system: ClusterSystem
    location: str
    adoption: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, desired: Desired) -> Sequence[Self]:
        """Return the managed namespaces of a cluster's systems, by their names."""
        systems = [read_system(system) for system in desired.systems]
        managed = [system for system in systems if system.managed_namespaces is not None]
        by_name = {name: system for system in managed for name in system.namespaces}
        return [cls._of(desired, name, system) for name, system in sorted(by_name.items())]

    @classmethod
    def _of(cls, desired: Desired, name: str, system: ClusterSystem) -> Self:
        resource, summary = cls.id_of(desired.id, {"name": name}), {"system": system.name}
        fields = wanted_fields(system)
        return cls(desired.id, name, resource, fields, summary, system, desired.spec.location)

    def shown(self, live: Json) -> Fields:
        """Return what Azure has, without what AKS adds."""
        return live_fields(live)

    def differing(self, live: Json) -> list[str]:
        """Return the fields that differ."""
        return differing_fields(self.shown(live), self.fields)

    def differences(self, live: Json | None, *, left_alone: bool = False) -> Iterator[Difference]:
        """Yield what differs; an empty field is no value."""
        for found in super().differences(live, left_alone=left_alone):
            yield replace(found, git=found.git or None, live=found.live or None)

    def written(self, live: Json | None, left: Collection[str]) -> Json | None:
        """Return the body to write, with our tags and those of others; None where Azure has it so."""
        if live is None:
            return super().written(None, left)
        names = [name for name in self.differing(live) if f"{self.path}.{name}" not in left]
        tagged = all(tag(live, key) == value for key, value in self.tags.items())
        if not names and tagged and not _has_failed(live):
            return None
        tags = live.get("tags") or {}
        others = {key: value for key, value in tags.items() if key.lower() not in self.tags}
        fields = written_fields(self.shown(live), self.fields, names)
        return replace(self, tags={**others, **self.tags})._body(fields)

    def _body(self, fields: Fields) -> Json:
        given = {name: fields[name] for name in FIELDS if fields[name] or name != "defaultResourceQuota"}
        properties = {**given, "adoptionPolicy": self.adoption}
        return {"location": self.location, "tags": dict(self.tags), "properties": properties}

    @classmethod
    def _stored(cls, document: Mapping[str, Any]) -> Sequence[Json]:
        systems = (system for system in systems_in(document) if system.get("managedNamespaces") is not None)
        return [{"name": name} for system in systems for name in system["namespaces"]]
