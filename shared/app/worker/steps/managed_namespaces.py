"""Namespaces of systems: Azure's are written before what is in them, and removed after it.

Whose a namespace is, its tags say. One in the cluster that Azure does not manage yet is taken over as the
system's adoption policy says; one that Roadstead created there is always taken over. Nothing is deleted that
git, or Azure, says to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

from shared.app.access.azure_state import recheck, reverted_fields
from shared.app.access.context import StepContext
from shared.app.worker.steps.flux.applied import served
from shared.app.worker.steps.writable import (
    has_failed,
    hindrance,
    is_at_work,
    operation_failure,
    send,
    wait_for,
)
from shared.azure.companions.managed_namespaces import (
    NamespaceCompanion,
    is_identical,
    kept_against_git,
    without_deletion,
)
from shared.azure.ownership import Owner
from shared.cluster.job import AcceptedWrite, WriteKind
from shared.cluster.outcomes import OBSERVE_SECONDS, Outcome, Wait
from shared.frozen import dataclass, replace
from shared.json_tree import Json, digest_of
from shared.kubernetes.field_ownership import is_applied_by_us, other_managers
from shared.kubernetes.flux_objects import ref_of
from shared.kubernetes.system_objects import KINDS, SYSTEM, TENANT, system_of
from shared.language.cluster_systems import ClusterSystem
from shared.language.model.system import ManagedNamespaces
from shared.ports import KubernetesApi
from shared.ports.azure import DeleteManagedNamespace, ListManagedNamespaces, PutManagedNamespace
from shared.resource_ids import ObjectRef


class LabelledLists:
    """The objects on a cluster that Roadstead has applied for systems: their labels are the inventory.

    A run of a step reads one list for each kind, whatever the number of systems. A label can be copied, so an
    object counts only if Roadstead is among the managers that apply it.
    """

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        listed = {kind: served(api, *kind, labels=SYSTEM) for kind in KINDS}
        self._found = {
            kind: {ref_of(document): document for document in documents}
            for kind, documents in listed.items()
            if documents is not None
        }

    def knows(self, api_version: str, kind: str) -> bool:
        """Return whether the cluster serves a kind."""
        return (api_version, kind) in self._found

    def get(self, ref: ObjectRef) -> Json | None:
        """Return an object, None also of a kind that the cluster does not serve."""
        if not self.knows(ref.api_version, ref.kind):
            return None
        found = self._found[(ref.api_version, ref.kind)].get(ref)
        return found if found is not None else self._api.get(ref)

    def namespace(self, name: str) -> Json | None:
        """Return a namespace."""
        return self.get(ObjectRef("v1", "Namespace", name, ""))

    def applied(self) -> Iterator[tuple[ObjectRef, str, Json]]:
        """Yield the objects that we applied, with their systems, in the order in which they are removed."""
        for found in self._found.values():
            for ref, live in found.items():
                if is_applied_by_us(live):
                    yield ref, system_of(live), live


def is_bare(namespace: Json) -> bool:
    """Return whether nobody set anything of it but its name: so it is created for a bootstrap secret."""
    return not other_managers(namespace, whole=True)


# Whether a namespace may be a managed one of a system, and what is written of it in Azure.

_DEFAULTS = ManagedNamespaces()


@dataclass(frozen=True)
class NamespaceCandidate:
    """A namespace that Azure is to manage: what Azure and the cluster have of it, None for nothing."""

    companion: NamespaceCompanion
    live: Json | None
    namespace: Json | None

    @property
    def name(self) -> str:
        """The name of the namespace."""
        return self.companion.name

    @property
    def system(self) -> ClusterSystem:
        """Whose it is."""
        return self.companion.system

    @property
    def policy(self) -> str:
        """What the system says of a namespace that exists."""
        return (self.system.managed_namespaces or _DEFAULTS).adoption_policy

    @property
    def was_given(self) -> bool:
        """Whether Roadstead created the namespace in the cluster, or a person gave it to the system."""
        if self.namespace is None:
            return False
        labels = self.namespace["metadata"].get("labels") or {}
        is_ours = is_applied_by_us(self.namespace) or is_bare(self.namespace)
        return is_ours or labels.get(TENANT) == self.system.name

    def body(self, context: StepContext) -> Json | None:
        """Return the body of the namespace, None where Azure has it so, or the job leaves it."""
        adoption = "Always" if self.live is None and self.was_given else self.policy
        wanted = replace(self.companion, adoption=adoption, tags=context.owner.tags)
        return wanted.written(self.live, context.desired.left)


def refusal(candidate: NamespaceCandidate, owner: Owner) -> Wait | None:
    """Return the wait of a namespace that somebody else has, and that may not be taken over."""
    live, name = candidate.live, candidate.name
    if live is None:
        if candidate.namespace is None or candidate.policy != "Never" or candidate.was_given:
            return None
        label = f"`kubectl label namespace {name} {TENANT}={candidate.system.name}`"
        why = "which exists and which Roadstead did not create"
        return _wait(candidate, why, f"{label} gives it to the system; adoptionPolicy: Always takes it over")
    if owner.owns(live):
        return None
    if owner.is_others(live):
        why = f"which Azure manages for another cluster or fleet: {owner.describe_tags(live)}"
        return _wait(candidate, why, "Remove it there")
    identical = is_identical(candidate.companion.shown(live), candidate.companion.fields)
    if candidate.policy == "Always" or (candidate.policy == "IfIdentical" and identical):
        return None
    differs = " and that differs from git" if candidate.policy == "IfIdentical" else ""
    why = f"which Azure manages already, which Roadstead did not create{differs}"
    return _wait(candidate, why, "adoptionPolicy: Always takes it over")


def _wait(candidate: NamespaceCandidate, why: str, action: str) -> Wait:
    system = candidate.system
    of = f"the system {system.name} of {', '.join(system.owners)}"
    reason = f"{of} has the namespace {candidate.name}, {why}"
    return Wait(OBSERVE_SECONDS, reason, action_required=f"{action}; or choose another namespace.")


AT_ONCE = 10
"""How many namespaces are written before their ends are waited for."""
_FAILED = {
    "code": "NamespaceOperationFailed",
    "message": "Azure could not write it; its activity log has the reason",
}
"""What is known of an operation that failed: Azure's document has no reason."""
Keeps = Callable[[Json], Mapping[str, Any] | None]


@dataclass(frozen=True)
class NamespaceRun:
    """The managed namespaces of a cluster in one run of its step."""

    context: StepContext
    systems: tuple[ClusterSystem, ...]
    found: LabelledLists

    @cached_property
    def wanted(self) -> dict[str, NamespaceCompanion]:
        """The namespaces of systems that Azure manages, by name."""
        return {companion.name: companion for companion in NamespaceCompanion.of(self.context.desired)}

    @cached_property
    def former(self) -> frozenset[str]:
        """The namespaces that an accepted commit took from Azure."""
        former = NamespaceCompanion.ids_among(self.context.record.removals.companions)
        return frozenset(resource.rpartition("/")[2] for resource in former)

    @cached_property
    def live(self) -> Mapping[str, Json]:
        """What Azure manages; no call for a cluster without such namespaces."""
        if not self.wanted and not self.former:
            return {}
        return self.context.azure(ListManagedNamespaces(self.context.cluster))

    def before(self) -> Outcome | None:
        """Write what differs, and have Azure leave what is the cluster's own now."""
        touched = (*self.wanted, *self._released, *self._removed)
        busy = [name for name in touched if name in self.live and is_at_work(self.live[name])]
        if busy:
            return Wait(self.context.poll_seconds, f"Azure is writing the namespace {busy[0]}")
        refused = next(self._refused(), None)
        if refused:
            return refused
        last = self.context.job.step.last_write
        if last is None or last.kind is not WriteKind.DELETE:
            written = self._written(last)
            if written:
                return written
        return self._deleted(self._released, without_deletion)

    def after(self) -> Outcome | None:
        """Delete in Azure what accepted commits took from systems, once nothing of that is left inside."""
        return self._deleted(self._removed, kept_against_git)

    def note(self) -> str:
        """Describe what stays although git does not have it here, "" for nothing."""
        ours = {name for name, document in self.live.items() if self.context.owner.owns(document)}
        unasked = sorted(ours - self.wanted.keys() - {*self._released, *self._removed})
        if not unasked:
            return ""
        why = "no accepted commit removed them"
        return f"the managed namespaces {', '.join(unasked)}, which git does not have here, stay: {why}"

    @cached_property
    def _present(self) -> frozenset[str]:
        return frozenset(name for system in self.systems for name in system.namespaces)

    @cached_property
    def _released(self) -> tuple[str, ...]:
        """The namespaces that systems still have, and that Azure shall not manage any more."""
        return self._ours((self.former & self._present) - self.wanted.keys())

    @cached_property
    def _removed(self) -> tuple[str, ...]:
        """The namespaces that accepted commits took from systems."""
        accepted = {name for names in self.context.record.removals.systems.values() for name in names}
        return self._ours((self.former & accepted) - self._present)

    def _ours(self, names: Collection[str]) -> tuple[str, ...]:
        owns = self.context.owner.owns
        return tuple(sorted(name for name in names if name in self.live and owns(self.live[name])))

    def _candidates(self) -> Iterator[NamespaceCandidate]:
        for name, companion in self.wanted.items():
            yield NamespaceCandidate(companion, self.live.get(name), self.found.namespace(name))

    def _refused(self) -> Iterator[Wait]:
        found = (refusal(candidate, self.context.owner) for candidate in self._candidates())
        return (wait for wait in found if wait)

    def _bodies(self) -> dict[str, Mapping[str, Any]]:
        """Return the bodies to write: of what differs, failed, or would delete what is to stay."""
        bodies = {candidate.name: candidate.body(self.context) for candidate in self._candidates()}
        for names, fields_of in ((self._released, without_deletion), (self._removed, kept_against_git)):
            for name in names:
                fields = fields_of(self.live[name])
                if fields is not None:
                    bodies[name] = {
                        **{key: self.live[name].get(key) for key in ("location", "tags")},
                        "properties": {**fields, "adoptionPolicy": "Never"},
                    }
        return {name: body for name, body in sorted(bodies.items()) if body is not None}

    def _written(self, last: AcceptedWrite | None) -> Outcome | None:
        """Write the next namespaces; each is written once in a job, in the order of their names."""
        bodies = self._bodies()
        passed = last.target if last is not None and last.kind is WriteKind.PUT else ""
        again = next((name for name in bodies if name <= passed), None)
        if again is not None and has_failed(self.live.get(again) or {}):
            return operation_failure(self.context, f"the managed namespace {again}", _FAILED)
        if again is not None and not self.context.job.step.rechecking:
            return recheck(self.context, f"the managed namespace {again} as it was written")
        if again is not None:
            return reverted_fields(f"the managed namespace {again}", [])
        batch = [name for name in bodies if name > passed][:AT_ONCE]
        hindered = hindrance(self.context) if batch else None
        if not batch or hindered:
            return hindered
        for name in batch:
            written = self.context.azure(PutManagedNamespace(self.context.cluster, name, bodies[name]))
        put = AcceptedWrite(WriteKind.PUT, batch[-1], digest_of({name: bodies[name] for name in batch}))
        what = f"namespace {batch[0]}" if len(batch) == 1 else f"namespaces {', '.join(batch)}"
        return wait_for(self.context, f"Azure is writing the {what}", put, written)

    def _deleted(self, names: Collection[str], keeps: Keeps) -> Outcome | None:
        """Delete the first of these in Azure; its delete policy says what becomes of the namespace."""
        for name in names:
            if keeps(self.live[name]) is not None:
                return reverted_fields(f"the managed namespace {name}", ["deletePolicy"])
            kept = (self.live[name].get("properties") or {}).get("deletePolicy") != "Delete"
            fate = "; the namespace stays in the cluster" if kept else ", with everything in it"
            delete, what = AcceptedWrite(WriteKind.DELETE, name), f"the managed namespace {name}"
            write = DeleteManagedNamespace(self.context.cluster, name)
            return send(self.context, what, delete, write, f"Azure is deleting {what}{fate}")
        return None
