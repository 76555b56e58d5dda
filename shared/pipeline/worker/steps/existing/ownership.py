"""Enter a cluster outside Azure, and mark it as ours: nobody else may manage it, and it stays the same one.

The ConfigMap that says so is created, or replaced at the version that was read, so of two jobs that meet at a
cluster only one succeeds. Nothing else is written to the cluster before.
"""

from __future__ import annotations

from shared.fleet.aks.ownership import CONTEST_TAG, LIFE_TAG, tag
from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.cluster_facts import facts_of
from shared.fleet.kubernetes.ownership.owner_map import (
    GENERATION,
    OWNER_MAP,
    as_tagged,
    generation_in,
    owner_map,
)
from shared.frozen import replace
from shared.jobs.failures.errors import NotOwned
from shared.jobs.outcomes import Done, Fail, Outcome, Restart, Wait
from shared.pipeline.worker.elsewhere import identity_of
from shared.pipeline.worker.steps.contests import UNKNOWN_LIFE, contest_of, older_than_azure, outdated
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.existing.first_entry import first_entry
from shared.pipeline.worker.steps.rebuilt import is_rebuilt, unknown_generation
from shared.ports import KubernetesApi


def ensure_owner(context: StepContext) -> Outcome:
    """Enter the cluster with an administrator's rights, and write whose it is where that differs."""
    api = context.kubernetes()
    api.check()
    live = api.get(OWNER_MAP)
    done = Done(cluster_uid=identity_of(api), facts=facts_of(context.desired, {}))
    if live is None:
        hindrance = first_entry(context, api)
        if hindrance:
            return hindrance
        api.create(owner_map(_tags(context, {})))
        return replace(done, note="marked the cluster as this fleet's")
    existing = as_tagged(live)
    hindrance = _hindrance(context, api, live, existing)
    if hindrance:
        return hindrance
    done = replace(done, life=tag(existing, LIFE_TAG) or "")
    if is_rebuilt(context, existing):
        note = "the cluster is marked as this fleet's; nothing is written"
        return unknown_generation(context, existing) or replace(done, note=note, rebuilding=True)
    if _is_written(context, existing, live):
        return done
    api.replace({**live, "data": _tags(context, existing)})
    return replace(done, note="marked the cluster again as this fleet's")


def still_ours(context: StepContext) -> Json | Outcome:
    """Return what a cluster says of whose it is, read before a write; or why a step does not write to it."""
    api = context.kubernetes()
    live = api.get(OWNER_MAP)
    if live is None:
        return Restart(f"nothing on the cluster {context.record.name} says any more that it is this fleet's")
    existing = as_tagged(live)
    return _hindrance(context, api, live, existing) or existing


def _tags(context: StepContext, existing: Json) -> dict[str, str]:
    owner = context.owner
    return {**owner.cluster_tags(existing), **owner.job_tag, GENERATION: str(context.record.generation)}


def _is_written(context: StepContext, existing: Json, live: Json) -> bool:
    """Return whether the cluster is marked as a job of this generation would mark it."""
    wanted = context.owner.cluster_tags(existing)
    same = all(tag(existing, key) == value for key, value in wanted.items())
    return same and tag(existing, CONTEST_TAG) is None and generation_in(live) == context.record.generation


def _hindrance(context: StepContext, api: KubernetesApi, live: Json, existing: Json) -> Outcome | None:
    """Return why the cluster is not ours to write to, None where it is."""
    owner, record = context.owner, context.record
    if not owner.owns(existing):
        problem = f"the cluster {record.name} is not touched: {OWNER_MAP} says that it is not this one"
        return Fail(NotOwned(f"{problem}: {owner.describe_tags(existing)}"))
    contest = contest_of(context, existing)
    if contest:
        _leave_mark(context, api, live, existing, contest)
        return contest
    written = generation_in(live)
    if written > record.generation and not record.rebuilding:
        later = (
            f"a job of generation {written} wrote to the cluster, and the record is of {record.generation}"
        )
        return older_than_azure(context, f"{later}: {UNKNOWN_LIFE}")
    return outdated(context, existing)


def _leave_mark(context: StepContext, api: KubernetesApi, live: Json, existing: Json, contest: Wait) -> None:
    """Mark the cluster of another installation as contested by ours, once, at the version that was read."""
    mine, owner = context.owner.installation, context.owner
    named = contest.contest is not None and any(contest.contest.installations)
    if mine is None or not named or owner.is_contested(existing) or owner.is_by_us(existing):
        return
    if not context.record.rebuilding:
        api.replace({**live, "data": {**(live.get("data") or {}), CONTEST_TAG: str(mine)}})
