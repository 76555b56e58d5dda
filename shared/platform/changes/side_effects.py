"""What a change does besides its fields: an address goes, objects do not fit, something still uses what goes.

None of these needs an approval; each is in the line of its change. Sources: kubernetes.io, "CustomResource-
Definitions" (pruning drops what a schema does not have; validation refuses the next write of the rest) and
"Pod v1" (what a pod refers to has to be there), "Horizontal Pod Autoscaling" (migrating Deployments);
fluxcd.io, "HelmRelease" (upgrade remediation) and "Suspend" of each kind; ``patchAllocatedValues`` in
``pkg/registry/core/service/storage`` (an address that is not given stays); learn.microsoft.com, "Use a
public load balancer in AKS" (an address that AKS created goes with its Service);
``SetDefaults_NetworkPolicy`` in ``pkg/apis/networking/v1/defaults.go`` (types that are not given stay).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.platform.changes.comparison import Comparison
from shared.platform.changes.objects import (
    FLUX,
    HELM,
    SOURCE,
    is_definition,
    is_release,
    items,
    mapping_at,
    objects_in,
    value_at,
)
from shared.platform.inventory import ObjectId, Owner

_MOST = 3
"""How many fields or objects are named."""


class SideEffect(StrEnum):
    """What else a change does."""

    ADDRESS = "address"
    """The address that Azure gave a Service goes."""
    DROPPED = "dropped"
    """A definition does not have a field any more: objects lose it."""
    REFUSED = "refused"
    """A definition asks for more: objects that have been right are refused."""
    USED = "used"
    """What stays refers to what goes."""
    ONE_POD = "one pod"
    """The number of pods goes from the manifest, and is 1 until an autoscaler has looked."""
    UNINSTALLS = "uninstalls"
    """An upgrade of a release that fails uninstalls it from now on."""
    SUSPENDED = "suspended"
    """A controller of Flux does nothing with the object from now on."""
    RESUMED = "resumed"
    """A controller of Flux acts on the object again."""
    PULLS = "pulls"
    """A source, or a release, is fetched from elsewhere: what differs there is no part of the commit."""
    UNLISTED = "unlisted"
    """The file of what goes is unchanged: a kustomization file left it out (kubernetes/k8s.io#7067)."""
    STILL_CLOSED = "still closed"
    """A policy of the network has no rules for what goes out any more, and still forbids it."""
    STILL_OPEN = "still open"
    """A policy of the network gets rules for what goes out, which count for nothing."""
    OPERATOR = "operator"
    """What may have to finalize it ends with the same commit (fluxcd/kustomize-controller#301)."""
    HEADLESS = "headless"
    """A Service keeps having no address, though the manifest does not say so any more."""


@dataclass(frozen=True)
class SideEffectNote:
    """A side effect, with the fields or the objects that it is about, and how many more there are."""

    effect: SideEffect
    names: tuple[str, ...] = ()
    more: int = 0


_PULLED = {
    HELM: ("spec.chartRef", "spec.chart.spec.sourceRef"),
    SOURCE: ("spec.url", "spec.endpoint", "spec.bucketName", "spec.sourceRef"),
}
"""The fields that say from where a controller of Flux fetches, by the group of an object."""


def of_change(name: ObjectId, old: Json, new: Json) -> Iterator[SideEffectNote]:
    """Yield what else the change of an object does that stays."""
    if _is_given_address(name, old) and not (_is_given_address(name, new) and _place(old) == _place(new)):
        yield SideEffectNote(SideEffect.ADDRESS)
    replicas = value_at(old, "spec.replicas"), value_at(new, "spec.replicas")
    if name.group == "apps" and isinstance(replicas[0], int) and replicas[0] > 1 and replicas[1] is None:
        yield SideEffectNote(SideEffect.ONE_POD)
    strategies = (value_at(manifest, "spec.upgrade.remediation.strategy") for manifest in (old, new))
    if is_release(name) and [strategy == "uninstall" for strategy in strategies] == [False, True]:
        yield SideEffectNote(SideEffect.UNINSTALLS)
    if name.group.endswith(FLUX):
        asleep = [bool(value_at(manifest, "spec.suspend")) for manifest in (old, new)]
        if asleep[0] != asleep[1]:
            yield SideEffectNote(SideEffect.SUSPENDED if asleep[1] else SideEffect.RESUMED)
        if any(value_at(old, field) != value_at(new, field) for field in _PULLED.get(name.group, ())):
            yield SideEffectNote(SideEffect.PULLS)
    is_policy = name[:2] == ("networking.k8s.io", "NetworkPolicy")
    if is_policy and not any(value_at(side, "spec.policyTypes") for side in (old, new)):
        rules = [bool(value_at(manifest, "spec.egress")) for manifest in (old, new)]
        if rules[0] != rules[1]:
            yield SideEffectNote(SideEffect.STILL_OPEN if rules[1] else SideEffect.STILL_CLOSED)
    addresses = [value_at(manifest, "spec.clusterIP") for manifest in (old, new)]
    if name[:2] == ("", "Service") and addresses == ["None", None]:
        yield SideEffectNote(SideEffect.HEADLESS)
    if is_definition(name):
        versions = _schemas(old), _schemas(new)
        found: dict[SideEffect, dict[str, None]] = {}
        for version in versions[0].keys() & versions[1].keys():
            for effect, path in _narrowed(versions[0][version], versions[1][version], ""):
                found.setdefault(effect, {})[path] = None
        for effect, paths in sorted(found.items()):
            yield _besides(effect, sorted(paths))


def of_removal(
    owner: ObjectId, name: ObjectId, manifest: Json, comparison: Comparison
) -> Iterator[SideEffectNote]:
    """Yield what else the end of an object of a Kustomization does, and why it ends where its file stays."""
    if _is_given_address(name, manifest):
        yield SideEffectNote(SideEffect.ADDRESS)
    known = comparison.before.owners.get(owner)
    file = known.objects[name].file if known is not None and name in known.objects else ""
    blobs = [inventory.blobs.get(file) for inventory in (comparison.before, comparison.after)]
    if owner in comparison.after.owners and blobs[0] is not None and blobs[0] == blobs[1]:
        yield SideEffectNote(SideEffect.UNLISTED, (file,))
    if users := comparison.users_after.get(name):
        yield _besides(SideEffect.USED, sorted(users))


def of_shared_end(
    name: ObjectId, manifest: Json, owner: Owner | None, ends: Mapping[ObjectId, ObjectId]
) -> Iterator[SideEffectNote]:
    """Yield that what may have to finalize an object ends too; ``ends`` are what is deleted, by its owner.

    That is what it waits for by ``dependsOn``. For a custom resource it is a release next to it, or what its
    Kustomization waits for.
    """
    found = _waits_for(name, manifest) & ends.keys()
    if owner is not None and _is_custom(name):
        waits = _waits_for(owner.id, {"spec": owner.spec})
        found |= waits & ends.keys()
        found |= {end for end, place in ends.items() if is_release(end) and place in (owner.id, *waits)}
    if found:
        yield _besides(SideEffect.OPERATOR, sorted(map(str, found)))


def _waits_for(name: ObjectId, manifest: Json) -> set[ObjectId]:
    return {
        name._replace(namespace=str(ref.get("namespace") or name.namespace), name=str(ref.get("name")))
        for _, ref in objects_in(value_at(manifest, "spec.dependsOn"))
        if name.group.endswith(FLUX)
    }


def _is_custom(name: ObjectId) -> bool:
    """Return whether a kind is none of Kubernetes or Flux: its objects may have finalizers of an operator."""
    return "." in name.group and not name.group.endswith(("k8s.io", FLUX))


def _besides(effect: SideEffect, names: Sequence[str]) -> SideEffectNote:
    return SideEffectNote(effect, tuple(names[:_MOST]), max(len(names) - _MOST, 0))


# Addresses

_INTERNAL = "service.beta.kubernetes.io/azure-load-balancer-internal"
_OWN_ADDRESS = (
    "azure-pip-name",
    "azure-pip-prefix-id",
    "azure-load-balancer-ipv4",
    "azure-load-balancer-ipv6",
)
"""Annotations by which a Service has an address of the user's, which stays."""


def _is_given_address(name: ObjectId, manifest: Json) -> bool:
    """Return whether a Service has an address that Azure chose for it."""
    if name[:2] != ("", "Service") or value_at(manifest, "spec.type") != "LoadBalancer":
        return False
    marks = mapping_at(manifest, "metadata.annotations")
    own = any(str(key).endswith(_OWN_ADDRESS) for key in marks)
    return not (own or value_at(manifest, "spec.loadBalancerIP"))


def _place(manifest: Json) -> str:
    return str(mapping_at(manifest, "metadata.annotations").get(_INTERNAL) or "false")


# Definitions


def _schemas(definition: Json) -> Mapping[str, Any]:
    return {
        str(value_at(version, "name")): value_at(version, "schema.openAPIV3Schema")
        for version in items(value_at(definition, "spec.versions"))
    }


def _narrowed(old: Any, new: Any, path: str) -> Iterator[tuple[SideEffect, str]]:
    """Yield the fields that a schema does not have any more, or is stricter about."""
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return
    if path and old.get("type") != new.get("type") and new.get("type"):
        yield SideEffect.REFUSED, path
        return
    before, after = (mapping_at(schema, "properties") for schema in (old, new))
    keeps = new.get("x-kubernetes-preserve-unknown-fields") or new.get("additionalProperties")
    for name in before:
        where = f"{path}.{name}".removeprefix(".")
        if name in after:
            yield from _narrowed(before[name], after[name], where)
        elif not keeps:
            yield SideEffect.DROPPED, where
    for name in items(new.get("required")):
        has_default = isinstance(after.get(name), Mapping) and "default" in after[name]
        if name not in items(old.get("required")) and not has_default:
            yield SideEffect.REFUSED, f"{path}.{name}".removeprefix(".")
    values = items(new.get("enum"))
    if values and any(value not in values for value in items(old.get("enum")) or [None]):
        yield SideEffect.REFUSED, path
    yield from _narrowed(old.get("items"), new.get("items"), f"{path}[]")
