"""What a namespace refuses by its LimitRanges and quotas: pods that are never created.

Sources: ``plugin/pkg/admission/limitranger/admission.go`` (``min-``, ``maxConstraint``),
``pkg/apis/core/v1/defaults.go`` (``SetDefaults_LimitRangeItem``), kubernetes#51430, #112835;
``pkg/quota/v1/evaluator/core/pods.go`` (Constraints), kubernetes#89209 (an update stops at a full quota).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from shared.json_tree import Json
from shared.platform.changes.comparison import quantity
from shared.platform.changes.objects import PodTemplate, is_open, mapping, mapping_at, objects_in
from shared.platform.rules.finding import ClusterPlatform, Finding, OwnedObject, named
from shared.platform.rules.placement import adds_first


def refused_by_limits(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the workloads whose pods a LimitRange refuses; a note where it may not be the only one.

    The API server gives a request the value of its limit; a limit that is missing is the default of a
    LimitRange, which a larger request does not fit. Of several in a namespace each one refuses, and nobody
    knows whose default counts: the largest surely does not refuse more.
    """
    ranges = _ranges(platform)
    for owned, pod in platform.pods:
        refused = [
            f"{text} ({container.get('name')})"
            for _, container in pod.containers()
            for text in _refused(mapping(container.get("resources")), ranges.get(owned.id.namespace, {}))
        ]
        if refused:
            message = (
                f"a LimitRange of {owned.id.namespace} refuses these containers, so no pod of it is created: "
                f"{named(refused)}; correct one of the two"
            )
            yield owned.finding(pod.path, message, is_note=not platform.is_sure)


_Bounds = Mapping[tuple[str, str], tuple[Decimal, str]]
"""What the LimitRanges of a namespace say, by the kind of bound and the resource."""


def _limits(platform: ClusterPlatform) -> Iterator[tuple[str, Json]]:
    """Yield what LimitRanges say of containers, each with its namespace."""
    for owned in platform.of_kind("", "LimitRange"):
        for _, limit in objects_in(owned.spec.get("limits")):
            if limit.get("type") == "Container":
                yield owned.id.namespace, limit


def _ranges(platform: ClusterPlatform) -> Mapping[str, _Bounds]:
    """Return the bounds of each namespace: once, however many LimitRanges and workloads there are."""
    found: dict[str, dict[tuple[str, str], tuple[Decimal, str]]] = {}
    for namespace, limit in _limits(platform):
        for bound, strictest in (("min", max), ("max", min), ("default", max)):
            for resource, text in mapping(limit.get(bound)).items():
                amount, bounds = quantity(str(text)), found.setdefault(namespace, {})
                if amount is not None:
                    known = bounds.get((bound, resource))
                    said = (amount, str(text))
                    bounds[bound, resource] = strictest(known, said) if known else said
    return found


def _refused(resources: Mapping[str, Any], bounds: _Bounds) -> Iterator[str]:
    limits = mapping(resources.get("limits"))
    for field in ("requests", "limits"):
        for resource, given in mapping(resources.get(field)).items():
            value = quantity(str(given))
            for bound in ("min", "max", "default"):
                other = bounds.get((bound, resource))
                if value is None or other is None or (bound == "default" and resource in limits):
                    continue
                if value < other[0] if bound == "min" else value > other[0]:
                    yield f"{field}.{resource} {given}, {bound} {other[1]}"


def defaults(platform: ClusterPlatform) -> Mapping[str, frozenset[tuple[str, str]]]:
    """Return what LimitRanges give to containers of a namespace that lack it: a request or limit of what.

    A maximum is the default of a limit, and a limit or a minimum that of a request.
    """
    found: dict[str, frozenset[tuple[str, str]]] = {}
    for namespace, limit in _limits(platform):
        for field, bounds in _DEFAULTS.items():
            given = {(field, str(resource)) for bound in bounds for resource in mapping(limit.get(bound))}
            found[namespace] = found.get(namespace, frozenset()) | given
    return found


_DEFAULTS = {"limits": ("default", "max"), "requests": ("defaultRequest", "default", "max", "min")}


def amount_of(container: Mapping[str, Any], field: str, resource: str) -> Any:
    """Return what a container asks for; without a request it is its limit."""
    found = [mapping_at(container, f"resources.{name}").get(resource) for name in (field, "limits")]
    return next((amount for amount in found if amount is not None), None)


def _is_lacking(container: Mapping[str, Any], field: str, resource: str) -> bool:
    """Return whether a container surely has no request, or limit, of something; 0 is one."""
    given = container.get("resources")
    is_unknown = any(map(is_open, (given, *mapping(given).values())))
    return amount_of(container, field, resource) is None and not is_unknown


# Quotas

_Counted = tuple[str, str]
"""What a quota counts of pods: requests or limits of a resource, or ``_PODS`` themselves."""
_PODS: _Counted = ("pods", "")


def _quotas(platform: ClusterPlatform) -> Iterator[tuple[OwnedObject, str, _Counted]]:
    """Yield what quotas count of all pods of their namespaces, each with its key."""
    for quota in platform.of_kind("", "ResourceQuota"):
        if not (quota.spec.get("scopes") or quota.spec.get("scopeSelector")):
            for key in map(str, mapping(quota.spec.get("hard"))):
                field, _, resource = key.rpartition(".")
                if key in ("pods", "count/pods"):
                    yield quota, key, _PODS
                elif resource in ("cpu", "memory") and field in ("", "requests", "limits"):
                    yield quota, key, (field or "requests", resource)


def refused_by_quota(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the workloads whose pods a quota refuses, because containers lack what it counts.

    A LimitRange may give it to them.
    """
    wanted: dict[str, set[_Counted]] = {}
    for quota, _, counted in _quotas(platform):
        wanted.setdefault(quota.id.namespace, set()).add(counted)
    for namespace, given in defaults(platform).items():
        wanted[namespace] = wanted.get(namespace, set()) - given
    for owned, pod in platform.pods:
        lacking = [
            f"{field}.{resource} ({container.get('name')})"
            for field, resource in sorted(wanted.get(owned.id.namespace, set()) - {_PODS})
            for _, container in pod.containers()
            if _is_lacking(container, field, resource) and not pod.spec.get("resources")
        ]
        if lacking:
            message = (
                f"a ResourceQuota of {owned.id.namespace} counts what containers here do not have: "
                f"{named(lacking)}; no pod of it is created; set it, or add a LimitRange with defaults"
            )
            yield owned.finding(pod.path, message, is_note=not platform.is_sure)


def beyond_quota(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each quota that is smaller than what the workloads of its namespace ask for.

    Counted is what is sure: what containers ask for themselves, of workloads that run always (an autoscaler
    may leave one pod of them), and one pod that an update adds before it removes one.
    """
    targets = [(owned.id.namespace, mapping(owned.spec.get("scaleTargetRef"))) for owned in platform.objects]
    scaled = {(namespace, str(ref.get("kind")), str(ref.get("name"))) for namespace, ref in targets if ref}
    running: dict[str, list[tuple[OwnedObject, PodTemplate, int]]] = {}
    for owned, pod in platform.pods:
        is_scaled = (owned.id.namespace, owned.id.kind, owned.id.name) in scaled
        replicas = 1 if is_scaled else owned.spec.get("replicas", 1)
        if owned.id.group == "apps" and isinstance(replicas, int):
            running.setdefault(owned.id.namespace, []).append((owned, pod, replicas))
    sums: dict[tuple[str, _Counted], tuple[Decimal, Decimal]] = {}  # several quotas may count the same
    for quota, key, counted in _quotas(platform):
        place = quota.id.namespace, counted
        if place not in sums:
            sums[place] = _sums(running.get(quota.id.namespace, ()), counted)
        always, added = sums[place]
        given = str(mapping(quota.spec.get("hard")).get(key))
        hard = quantity(given)
        if hard is not None and always + added > hard:
            asked = _shown(always if always > hard else always + added, counted)
            what = f"the workloads of {quota.id.namespace} ask for {asked}, and this allows {given}"
            effect = "the pods beyond it are never created"
            if always <= hard:
                what = f"{what}: the last is the pod that an update adds before it removes one"
                effect = "no such update ends"
            message = f"{what}, so {effect}; raise it, or ask for less"
            yield quota.finding(("spec", "hard", key), message, is_note=True)


def _sums(
    running: Iterable[tuple[OwnedObject, PodTemplate, int]], counted: _Counted
) -> tuple[Decimal, Decimal]:
    """Return what workloads ask for always, and at most one of them in an update."""
    always, added = Decimal(0), Decimal(0)
    for owned, pod, replicas in running:
        amount = _amount(pod, counted)
        always += amount * replicas
        added = max(added, amount if adds_first(owned.id, owned.manifest) else Decimal(0))
    return always, added


def _amount(pod: PodTemplate, counted: _Counted) -> Decimal:
    """Return what one pod surely asks for; what runs before its containers is not looked at."""
    if counted == _PODS:
        return Decimal(1)
    given = (quantity(str(amount_of(container, *counted))) for _, container in pod.containers("containers"))
    return sum((amount for amount in given if amount is not None), Decimal(0))


def _shown(amount: Decimal, counted: _Counted) -> str:
    if counted[1] == "memory" and amount >= _MEBIBYTE:
        return f"{amount / _MEBIBYTE:.0f}Mi"
    return f"{amount.normalize():f}" + (" pods" if counted == _PODS else "")


_MEBIBYTE = 1 << 20
