"""The last step: Flux has applied the commit, and every node runs the version of its pool."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from urllib.parse import urlsplit

from shared.fleet.drift.differences import drift_of, unmanaged_names
from shared.fleet.drift.live_digest import live_digest
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes import flux_objects
from shared.fleet.kubernetes.flux_readiness import (
    Failed,
    Progressing,
    Readiness,
    Ready,
    Suspended,
    advice,
    commit_of,
    readiness,
)
from shared.fleet.kubernetes.inventory import INVENTORY, listed_in
from shared.fleet.kubernetes.rollout import unfinished
from shared.fleet.resource_ids import ObjectRef
from shared.jobs.drift import Verified
from shared.jobs.outcomes import Done, Outcome, Restart, Wait
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.steps import drain
from shared.pipeline.worker.steps.azure_state import OBSERVE_SECONDS, busy, running_of
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.flux.components import rollout_wait
from shared.pipeline.worker.steps.flux.sync import request_of
from shared.ports import FleetConfig, KubernetesApi
from shared.ports.azure import GetCluster

PATIENCE = timedelta(minutes=2)
"""After so long without progress it is looked whether Flux is still there."""
_OF_FLUX = ("Deployment", flux_objects.NAMESPACE)


def verify(context: StepContext) -> Outcome:
    """Wait until Flux has applied the commit of the job, or a newer one, and the nodes are up to date."""
    api = context.kubernetes()
    deployments = api.list("apps/v1", "Deployment", namespace=flux_objects.NAMESPACE)
    rollouts = unfinished([one for one in deployments if flux_objects.is_ours(one)])
    if rollouts:
        return rollout_wait(context, rollouts)
    source = _readiness(context, api, flux_objects.SOURCE)
    if not isinstance(source, Ready):
        return _deleted(context, deployments, api) or _not_ready(context, flux_objects.SOURCE, source)
    stale = _older_commit(context, source.revision)
    if stale:
        return stale
    applied = _readiness(context, api, flux_objects.KUSTOMIZATION)
    if not isinstance(applied, Ready):
        return _deleted(context, deployments, api) or _not_ready(context, flux_objects.KUSTOMIZATION, applied)
    if applied.revision != source.revision and not _follows(context, applied.revision):
        progress = Progressing(
            f"it applied {applied.revision or 'nothing'}, the source is at {source.revision}"
        )
        return _not_ready(context, flux_objects.KUSTOMIZATION, progress)
    existing = context.azure(GetCluster(context.cluster))
    if existing is None:
        return Restart(f"the cluster {context.record.name} no longer exists in Azure")
    running = running_of(existing, context.owner, applied.revision)
    note = f"Flux applied {applied.revision}"
    verified, in_sync = _compared(context, existing)
    return drain.behind(context, existing) or Done(note, running=running, verified=verified, in_sync=in_sync)


def _compared(context: StepContext, existing: Json) -> tuple[Verified, bool]:
    """Return how Azure shows the cluster, and whether nothing differs but what the job leaves as it is.

    One that differs, also in such a field, is compared again by the next sweep. What it has beyond git counts
    as of the generation's first verification: a later job of the same generation, such as a correction,
    accepts nothing that came meanwhile.
    """
    before, record = context.record.verified, context.record
    again = before is not None and record.observed_generation == record.generation
    unmanaged = (
        before.unmanaged if before and again else unmanaged_names(context.desired, context.owner, existing)
    )
    left = context.desired.left
    differs = bool(busy(existing["properties"])) or any(
        each.path not in left for each in drift_of(context.desired, context.owner, existing, unmanaged)
    )
    return Verified("" if differs or left else live_digest(existing), unmanaged), not differs


def _readiness(context: StepContext, api: KubernetesApi, ref: ObjectRef) -> Readiness | None:
    live = api.get(ref)
    return None if live is None else readiness(live, request_of(context))


def _deleted(context: StepContext, deployments: Sequence[Json], api: KubernetesApi) -> Restart | None:
    """Return the restart for a Deployment of Flux that somebody deleted; it is looked for after a while."""
    if context.ports.clock() - context.job.step.last_progress < PATIENCE:
        return None
    inventory = api.get(INVENTORY) or {}
    installed = {ref for ref in listed_in(inventory) if (ref.kind, ref.namespace) == _OF_FLUX}
    lacking = sorted(installed - set(map(flux_objects.ref_of, deployments)), key=str)
    return Restart(f"the {lacking[0]} no longer exists in the cluster") if lacking else None


def _not_ready(context: StepContext, ref: ObjectRef, found: Readiness | None) -> Outcome:
    """Return the wait for a Flux object, with what an operator can do where Flux needs one."""
    name, seconds = f"Flux: {ref.kind} {ref.name}", context.ports.config.poll_seconds
    match found:
        case None:
            return Restart(f"the {ref} no longer exists in the cluster")
        case Suspended():
            resume = f"`flux -n {ref.namespace} resume {_FLUX_NAMES[ref.kind]} {ref.name}` resumes it."
            reason = f"{name}: somebody suspended it"
            return Wait(OBSERVE_SECONDS, reason, action_required=resume, open_ended=True)
        case Failed(reason, message):
            return Wait(seconds, f"{name}: {reason}: {message}", action_required=advice(found))
        case Progressing(message):
            return Wait(seconds, f"{name}: {message}")
        case Ready():
            raise AssertionError("a Ready object is not waited for")


_FLUX_NAMES = {"GitRepository": "source git", "Kustomization": "kustomization"}
"""What the Flux command calls these kinds."""


def _older_commit(context: StepContext, revision: str) -> Wait | None:
    """Return the wait for the commit of the job, None when Flux fetched it, or one that follows it.

    Commits are compared where Flux pulls the tracked branch of the fleet repository itself. Of any other
    source no commit was requested, so what Flux fetched after the request counts. A commit follows the one of
    the job if git says so, or if it is the head that the planner planned last: after a forced push it need
    not be a descendant.
    """
    if not pulls_the_fleet(context.record, context.ports.config) or _follows(context, revision):
        return None
    wanted = context.record.commit[:8]
    reason = f"Flux: the source is at {revision or 'no revision'}, which does not contain commit {wanted}"
    return Wait(context.ports.config.poll_seconds, reason)


def _follows(context: StepContext, revision: str) -> bool:
    """Return whether Flux pulls the fleet, and a revision is the commit of the job or one that follows it.

    Where commits come faster than Flux applies them, it never has applied what it fetched last.
    """
    commit, wanted = commit_of(revision), context.record.commit
    if not commit or not pulls_the_fleet(context.record, context.ports.config):
        return False
    if commit == wanted:
        return True
    fleet = context.ports.state.fleet()
    newest = commit == (fleet.planning or fleet.commit)
    return newest or context.ports.repository.is_descendant(commit, wanted)


def pulls_the_fleet(record: ClusterRecord, config: FleetConfig) -> bool:
    """Return whether Flux pulls the tracked branch of the fleet repository, whatever else the spec has."""
    flux = record.document["spec"]["flux"]
    name = urlsplit(flux["repository"]).path.strip("/").removesuffix(".git").lower()
    ours = {config.repository.lower(), config.previous_repository.lower()}
    same = name in ours and flux_objects.is_on_host(flux["repository"], config.git_host)
    return same and bool(flux["branch"] == config.branch)
