"""Apply the systems of a cluster, and remove what accepted commits took from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shared.app.access.context import StepContext
from shared.app.worker.steps.flux.applied import ApplyResult, apply_over
from shared.app.worker.steps.flux.live_pin import commit_in, held_back, live_pin
from shared.app.worker.steps.managed_namespaces import LabelledLists, NamespaceRun, is_bare
from shared.azure.companions.managed_namespaces import is_by_arm, stays_by_policy
from shared.cluster.failures.errors import InvalidManifest
from shared.cluster.outcomes import OBSERVE_SECONDS, Done, Fail, Outcome, Wait
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.kubernetes.field_ownership import MANAGER, appliers, other_managers
from shared.kubernetes.flux_objects import KUSTOMIZATION, ref_of
from shared.kubernetes.health import what_keeps
from shared.kubernetes.sync_objects import SOURCE_API
from shared.kubernetes.system_objects import TENANT, system_objects
from shared.language.cluster_systems import ClusterSystem, read_system
from shared.language.pin import Pin
from shared.ports import KubernetesApi
from shared.resource_ids import ObjectRef
from shared.sentences import some_of

GONE_SECONDS = 5.0
SHOWN = 5
_NAMESPACE = "Namespace"
_AWAITED = (KUSTOMIZATION.kind, _NAMESPACE)
"""What takes a while to be deleted, with everything in it."""


@dataclass(frozen=True)
class _Leftovers:
    """What is removed now, and what stays and why."""

    removed: Sequence[Json]
    stays: Sequence[str]


def ensure_systems(context: StepContext) -> Outcome:
    """Apply the objects of the systems where they differ, then remove those that were accepted as removed.

    Objects of other systems are not written. A cluster that never had a system costs no call. Namespaces that
    Azure manages are written before the objects in them, and removed after these.
    """
    known = context.desired.systems
    if not known and not context.record.removals.systems:
        return Done()
    api = context.kubernetes()
    found = LabelledLists(api)
    live = _live_pins(known, found)
    taken = _taken_over(context, live)
    desired = context.desired.with_pins(taken)
    systems = tuple(read_system(system) for system in desired.systems)
    wanted = {system.name: system_objects(system) for system in systems}
    managed = NamespaceRun(context, systems, found)
    unfit = _undefined(systems, wanted, found, context) or _foreign(systems, found)
    refused = unfit or _held_back(systems, live, desired.pins, context) or managed.before()
    if refused:
        return refused
    applied = ApplyResult()
    for manifest in (document for objects in wanted.values() for document in objects):
        whole = manifest["kind"] != _NAMESPACE
        applied += apply_over(found.get(ref_of(manifest)), manifest, api, entirely=whole)
    left = _leftovers(systems, wanted, context.record.removals.systems, found)
    wait = _remove(left.removed, api) or managed.after()
    if wait:
        return wait
    removed = [str(ref_of(document)) for document in left.removed]
    deleted = f"removed {some_of(removed, SHOWN)}" if removed else ""
    notes = (applied.note("object", " of systems"), deleted, *left.stays[:SHOWN], managed.note())
    return Done("; ".join(filter(None, notes)), pins=taken)


def _undefined(
    systems: Sequence[ClusterSystem],
    wanted: Mapping[str, Sequence[Json]],
    found: LabelledLists,
    context: StepContext,
) -> Fail | None:
    for system in systems:
        for manifest in wanted[system.name]:
            if not found.knows(manifest["apiVersion"], manifest["kind"]):
                path = context.desired.spec.flux.components
                lacks = f"{path} does not define {manifest['kind']} in {manifest['apiVersion']}"
                remedy = "write the file again with flux install --export and its notification-controller"
                return Fail(InvalidManifest(f"{_of(system)} needs what {lacks}; {remedy}"))
    return None


def _foreign(systems: Sequence[ClusterSystem], found: LabelledLists) -> Wait | None:
    """Return the wait for a namespace that somebody else created: who is given it, has rights in it."""
    for system in systems:
        for name in system.namespaces if system.managed_namespaces is None else ():
            live = found.namespace(name)
            if live is None or MANAGER in appliers(live) or is_bare(live):
                continue
            if (live["metadata"].get("labels") or {}).get(TENANT) == system.name:
                continue
            reason = (
                f"{_of(system)} has the namespace {name}, which exists and which Roadstead did not create"
            )
            label = f"`kubectl label namespace {name} {TENANT}={system.name}`"
            action = f"{label} gives it to the system; or choose another namespace."
            return Wait(OBSERVE_SECONDS, reason, action_required=action)
    return None


def _live_pins(systems: Iterable[Json], found: LabelledLists) -> Mapping[str, str]:
    """Return the commit or digest that Flux pulls for each system with a pin, "" for none."""
    pinned = dict[str, str]()
    for system in map(read_system, systems):
        if system.pin is not None:
            source = system.main_source
            live = found.get(ObjectRef(SOURCE_API, source.kind, system.name, system.home)) or {}
            spec = live.get("spec") or {}
            pinned[system.name] = commit_in(spec.get("ref")) if spec.get("url") == source.url else ""
    return pinned


def _taken_over(context: StepContext, live: Mapping[str, str]) -> Mapping[str, Pin]:
    """Return the pins that the record takes over from Flux, by the names of their systems."""
    planned = context.desired.pins
    found = {name: live_pin(context, planned[name], commit) for name, commit in live.items()}
    return {name: pin for name, pin in found.items() if pin != planned[name]}


def _held_back(
    systems: Sequence[ClusterSystem], live: Mapping[str, str], pins: Mapping[str, Pin], context: StepContext
) -> Wait | None:
    """Return the wait for a system whose pin would go back: Flux would delete what only the live one has."""
    waits = (
        held_back(context, live[system.name], _of(system), pins[system.name])
        for system in systems
        if system.name in live
    )
    return next(filter(None, waits), None)


def _leftovers(
    systems: Sequence[ClusterSystem],
    wanted: Mapping[str, Sequence[Json]],
    accepted: Mapping[str, tuple[str, ...]],
    found: LabelledLists,
) -> _Leftovers:
    """Return what is no longer wanted, and was accepted as removed or is a part of a system that stays.

    A namespace has one system: what another one has in it, as after it changed hands, is no part of that.
    """
    present = {system.name for system in systems}
    taken = {name for system in systems for name in system.namespaces}
    refs = {ref_of(manifest) for objects in wanted.values() for manifest in objects}
    removed, stays, unasked = [], [], dict[str, int]()
    for ref, name, live in found.applied():
        if ref.kind == _NAMESPACE and (is_by_arm(live) or stays_by_policy(live)):
            continue
        going = "deletionTimestamp" in live["metadata"] and ref.kind not in _AWAITED
        if ref in refs or going:
            continue
        namespace = ref.namespace or ref.name
        is_part = ref.kind != _NAMESPACE and name in present and namespace in taken
        is_gone = name in accepted and name not in present
        if not (is_part or is_gone or namespace in accepted.get(name, ())):
            unasked[name] = unasked.get(name, 0) + 1
            continue
        others = other_managers(live, whole=ref.kind == _NAMESPACE)
        if others:
            stays.append(f"the {ref} stays, because {' and '.join(others)} wrote it too")
        else:
            removed.append(live)
    for name, count in sorted(unasked.items()):
        why = "no accepted commit removed them; delete them by hand if nobody needs them"
        stays.append(f"{count} objects of the system {name}, which git does not have here, stay: {why}")
    return _Leftovers(removed, stays)


def _remove(leftovers: Sequence[Json], api: KubernetesApi) -> Wait | None:
    """Delete the objects; return the wait while Flux still deletes what it applied, or a namespace goes.

    Flux does that with the rights of the service account, so all but Alerts and Providers go after it.
    """
    for last, kinds in ((KUSTOMIZATION.kind, _FIRST), (_NAMESPACE, None)):
        for live in leftovers:
            if (kinds is None or live["kind"] in kinds) and "deletionTimestamp" not in live["metadata"]:
                api.delete(live)
        awaited = [ref_of(leftover) for leftover in leftovers if leftover["kind"] == last]
        going = [live for live in map(api.get, awaited) if live is not None]
        if going:
            reason = f"the {ref_of(going[0])} is being deleted, with everything in it"
            return Wait(GONE_SECONDS, ": ".join(filter(None, (reason, what_keeps(going[0])))))
    return None


_FIRST = frozenset({"Alert", "Provider", KUSTOMIZATION.kind})


def _of(system: ClusterSystem) -> str:
    return f"the system {system.name} of {', '.join(system.owners)}"
