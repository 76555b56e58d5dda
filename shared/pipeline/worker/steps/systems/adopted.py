"""Whether a namespace may be a managed one of a system, and what is written of it in Azure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.fleet.aks.ownership import Owner, tag
from shared.fleet.drift.namespace_differences import namespace_path
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.managed_namespaces import (
    differing_fields,
    is_identical,
    live_fields,
    namespace_body,
    wanted_fields,
    written_fields,
)
from shared.fleet.kubernetes.system_objects import TENANT
from shared.fleet.manifests.managed_namespaces import ManagedNamespaces
from shared.fleet.systems.cluster_systems import ClusterSystem
from shared.jobs.outcomes import Wait
from shared.pipeline.worker.steps.azure_state import OBSERVE_SECONDS
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux_extension.writable import has_failed
from shared.pipeline.worker.steps.systems.labelled import is_applied_by_us, is_bare

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
