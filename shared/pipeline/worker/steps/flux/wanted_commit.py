"""Whether Flux has fetched, or applied, the commit of the job, or one that follows it."""

from __future__ import annotations

from urllib.parse import urlsplit

from shared.fleet.kubernetes.flux import flux_objects
from shared.fleet.kubernetes.flux.flux_readiness import commit_of
from shared.jobs.outcomes import Wait
from shared.jobs.record import ClusterRecord
from shared.pipeline.worker.steps.context import StepContext
from shared.ports import FleetConfig


def older_commit(context: StepContext, revision: str) -> Wait | None:
    """Return the wait for the commit of the job, None when Flux fetched it, or one that follows it.

    Commits are compared where Flux pulls the tracked branch of the fleet repository itself. Of any other
    source no commit was requested, so what Flux fetched after the request counts. A commit follows the one of
    the job if git says so, or if it is the head that the planner planned last: after a forced push it need
    not be a descendant.
    """
    if not pulls_the_fleet(context.record, context.ports.config) or follows(context, revision):
        return None
    wanted = context.record.commit[:8]
    reason = f"Flux: the source is at {revision or 'no revision'}, which does not contain commit {wanted}"
    return Wait(context.ports.config.poll_seconds, reason)


def follows(context: StepContext, revision: str) -> bool:
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
    if any(flux.get(name) for name in ("tag", "semver", "commit")):
        return False
    name = urlsplit(flux["repository"]).path.strip("/").removesuffix(".git").lower()
    ours = {config.repository.lower(), config.previous_repository.lower()}
    same = name in ours and flux_objects.is_git_on(flux["repository"], config.git_host)
    return same and bool(flux["branch"] == config.branch)
