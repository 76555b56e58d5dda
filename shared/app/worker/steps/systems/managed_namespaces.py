"""Namespaces of systems that Azure manages: written before what is in them, removed after it.

Whose a namespace is, its tags say. One in the cluster that Azure does not manage yet is taken over as the
system's adoption policy says; one that Roadstead created there is always taken over. Nothing is deleted that
git, or Azure, says to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

from shared.app.access.azure_state import OBSERVE_SECONDS, recheck, reverted_fields
from shared.app.access.context import StepContext
from shared.app.worker.steps.flux_extension.configure import has_failed, hindrance, is_at_work
from shared.app.worker.steps.guards.writable import next_attempt, still_exists, wait_for
from shared.app.worker.steps.systems.labelled import Labelled, is_applied_by_us, is_bare
from shared.azure.managed_namespaces import (
    differing_fields,
    is_identical,
    kept_against_git,
    live_fields,
    managed_by_azure,
    namespace_body,
    namespace_path,
    namespaces_of,
    wanted_fields,
    without_deletion,
    written_fields,
)
from shared.azure.ownership import Owner, tag
from shared.cluster.failures.errors import Interrupted, InvalidManifest, from_operation
from shared.cluster.job import AcceptedWrite, WriteKind
from shared.cluster.outcomes import Fail, Outcome, Retry, Wait
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.kubernetes.system_objects import TENANT
from shared.language.cluster_systems import ClusterSystem
from shared.language.desired import digest_of
from shared.language.model.system import ManagedNamespaces
from shared.ports.azure import DeleteManagedNamespace, ListManagedNamespaces, PutManagedNamespace

# Whether a namespace may be a managed one of a system, and what is written of it in Azure.

_DEFAULTS = ManagedNamespaces()


@dataclass(frozen=True)
class Candidate:
    """A namespace that Azure is to manage: what Azure and the cluster have of it, None for nothing."""

    name: str
    system: ClusterSystem
    live: Json | None
    namespace: Json | None

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


def refusal(candidate: Candidate, owner: Owner) -> Wait | None:
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
    identical = is_identical(live_fields(live), wanted_fields(candidate.system))
    if candidate.policy == "Always" or (candidate.policy == "IfIdentical" and identical):
        return None
    differs = " and that differs from git" if candidate.policy == "IfIdentical" else ""
    why = f"which Azure manages already, which Roadstead did not create{differs}"
    return _wait(candidate, why, "adoptionPolicy: Always takes it over")


def body_of(candidate: Candidate, context: StepContext) -> dict[str, Any] | None:
    """Return the body of a namespace, None where Azure has it so; what the job leaves stays as it is."""
    live, desired = candidate.live, context.desired
    wanted = wanted_fields(candidate.system)
    adoption = "Always" if live is None and candidate.was_given else candidate.policy
    place = {"location": desired.spec.location, "adoption": adoption}
    if live is None:
        if namespace_path(candidate.name) in desired.left:
            return None
        return namespace_body(wanted, tags=context.owner.tags, **place)
    has = live_fields(live)
    written = [
        field
        for field in differing_fields(has, wanted)
        if namespace_path(candidate.name, field) not in desired.left
    ]
    tagged = all(tag(live, key) == value for key, value in context.owner.tags.items())
    if not written and tagged and not has_failed(live):
        return None
    fields = written_fields(has, wanted, written)
    others = {
        key: value for key, value in (live.get("tags") or {}).items() if key.lower() not in context.owner.tags
    }
    return namespace_body(fields, tags={**others, **context.owner.tags}, **place)


def _wait(candidate: Candidate, why: str, action: str) -> Wait:
    system = candidate.system
    of = f"the system {system.name} of {', '.join(system.owners)}"
    reason = f"{of} has the namespace {candidate.name}, {why}"
    return Wait(OBSERVE_SECONDS, reason, action_required=f"{action}; or choose another namespace.")


AT_ONCE = 10
"""How many namespaces are written before their ends are waited for."""
Keeps = Callable[[Json], Mapping[str, Any] | None]


@dataclass(frozen=True)
class Managed:
    """The managed namespaces of a cluster in one run of its step."""

    context: StepContext
    systems: tuple[ClusterSystem, ...]
    found: Labelled

    @cached_property
    def wanted(self) -> dict[str, ClusterSystem]:
        """The systems whose namespaces Azure manages, by namespace."""
        return managed_by_azure(self.systems)

    @cached_property
    def former(self) -> frozenset[str]:
        """The namespaces that an accepted commit took from Azure."""
        return namespaces_of(self.context.record.former_grants)

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
        ours = {name for name, one in self.live.items() if self.context.owner.owns(one)}
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
        accepted = {name for names in self.context.record.removed_systems.values() for name in names}
        return self._ours((self.former & accepted) - self._present)

    def _ours(self, names: Collection[str]) -> tuple[str, ...]:
        owns = self.context.owner.owns
        return tuple(sorted(name for name in names if name in self.live and owns(self.live[name])))

    def _candidates(self) -> Iterator[Candidate]:
        for name, system in sorted(self.wanted.items()):
            yield Candidate(name, system, self.live.get(name), self.found.namespace(name))

    def _refused(self) -> Iterator[Wait]:
        found = (refusal(each, self.context.owner) for each in self._candidates())
        return (each for each in found if each)

    def _bodies(self) -> dict[str, Mapping[str, Any]]:
        """Return the bodies to write: of what differs, failed, or would delete what is to stay."""
        bodies = {each.name: body_of(each, self.context) for each in self._candidates()}
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
            return _failure(self.context, again)
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
        """Delete the first of these in Azure; its delete policy says what becomes of the namespace.

        ``keeps`` has the fields that must be written before, None for none.
        """
        for name in names:
            if keeps(self.live[name]) is not None:
                return reverted_fields(f"the managed namespace {name}", ["deletePolicy"])
            delete = next_attempt(self.context, AcceptedWrite(WriteKind.DELETE, name))
            if delete is None:
                return still_exists(f"the managed namespace {name}")
            hindered = hindrance(self.context)
            if hindered:
                return hindered
            written = self.context.azure(DeleteManagedNamespace(self.context.cluster, name))
            kept = (self.live[name].get("properties") or {}).get("deletePolicy") != "Delete"
            fate = "; the namespace stays in the cluster" if kept else ", with everything in it"
            reason = f"Azure is deleting the managed namespace {name}{fate}"
            return wait_for(self.context, reason, delete, written)
        return None


def _failure(context: StepContext, name: str) -> Outcome:
    """Return the failure of the last write; Azure's document has no reason, so it is repeated some times."""
    last = context.job.step.last_write
    message = f"the managed namespace {name}: Azure could not write it; its activity log has the reason"
    request_id = last.request_id if last else ""
    error = from_operation("Failed", "NamespaceOperationFailed", message, request_id=request_id)
    if isinstance(error, InvalidManifest):
        error = Interrupted(message, code="NamespaceOperationFailed", request_id=request_id)
    return Retry(error) if isinstance(error, Interrupted) else Fail(error)
