"""What an accepted commit, a replay or a takeover makes of a cluster's record: a new job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.azure.companions.companion_kinds import companions_to_remove
from shared.azure.flux_extension import configurations_to_remove
from shared.azure.node_pools.body import keys_to_remove
from shared.azure.running_versions import lowered_versions
from shared.cluster.divergence.trial import Trial, TrialEnd
from shared.cluster.failures.errors import ClusterMissing
from shared.cluster.findings.conditions import (
    IN_SYNC,
    with_in_sync,
    with_summary,
)
from shared.cluster.job import Contest, ContestKind, Job, job_after, new_job
from shared.cluster.lifetime import recovering
from shared.cluster.recipes import CONDITIONS, STEPS, Recipe
from shared.cluster.record import ClusterRecord, at_another_moment, working_phase
from shared.cluster.record_parts import AzureLife, Phase, Removals
from shared.cluster.sleep import SleepOrder
from shared.frozen import replace
from shared.language.cluster_systems import systems_in
from shared.language.desired import Desired
from shared.language.pin import Pin
from shared.plan.plan import REMOVALS, Action, Item
from shared.plan.retained import keeping, to_remove

_OF_DELETES = frozenset(CONDITIONS[step] for recipe in Recipe if recipe.removes for step in STEPS[recipe])


def follows(item: Item, record: ClusterRecord | None) -> bool:
    """Return whether an item follows a record; not if it is accepted in it already, or too old for it."""
    if record is None:
        return item.begins  # only a plan that saw no record may create one: another one was deleted since
    if item.action is Action.RETRY:
        return record.failed and record.generation == item.generation
    return record.uid == item.uid and record.generation < item.generation


def is_prevented(item: Item, record: ClusterRecord | None) -> bool:
    """Return whether the delete of a cluster began, or ended, since an update took its removal back."""
    if item.action is not Action.UPDATE:
        return False
    return record is None or (follows(item, record) and record.deleting and not record.restorable)


def accept(
    item: Item, record: ClusterRecord | None, desired: Desired | None, *, commit: str, now: datetime
) -> ClusterRecord | None:
    """Return the record with an item accepted; None if it was accepted before, or if the record is newer."""
    if not follows(item, record):
        return None
    if record is not None and item.action is Action.RETRY:
        return accept_retry(record, now=now, left=record.job.left)
    if record is not None and item.action in (*REMOVALS, Action.REBUILD):
        return accept_delete(record, commit=commit, now=now, generation=item.generation)
    if desired is None:
        return None
    if record is None:
        return accept_new(desired, uid=item.uid, commit=commit, now=now, generation=item.generation)
    desired = desired.with_pin(Pin.of(record.document)) if item.keeps_pin else desired
    kept = keeping(desired, systems_in(record.document), item.retained)
    return accept_change(record, kept, commit=commit, now=now, generation=item.generation)


def accept_new(
    desired: Desired, *, uid: str, commit: str, now: datetime, generation: int = 1
) -> ClusterRecord:
    """Return the record of a cluster that is new in git, or that the state does not know any more."""
    record = ClusterRecord(
        name=desired.name,
        uid=uid,
        document=desired.document(),
        digest=desired.digest,
        generation=generation,
        observed_generation=0,
        phase=Phase.PROVISIONING,
        job=new_job(_bringing(desired), now=now),
        commit=commit,
        created=now,
        updated=now,
        azure=AzureLife(had_systems=bool(desired.systems), rebuilt_for=desired.rebuild),
    )
    return with_summary(record, now)


def accept_change(
    record: ClusterRecord, desired: Desired, *, commit: str, now: datetime, generation: int = 0
) -> ClusterRecord:
    """Return the record with a new spec; a step that runs now keeps its lease until it has ended.

    ``generation`` is the next one unless it is given.

    A tombstone is taken back, which requires a restorable record. One that is recovering counts as created
    for the rebuild that the spec asks for; its job compares that with the cluster's life.
    """
    document = desired.document()
    changed = replace(
        record,
        document=document,
        removals=_removals(record, document),
        azure=replace(
            record.azure,
            had_systems=record.azure.had_systems or bool(record.desired.systems or desired.systems),
            delete_accepted=False,
            rebuilt_for=max(record.rebuilt_for, desired.rebuild) if record.recovering else record.rebuilt_for,
        ),
        digest=desired.digest,
        generation=generation or record.generation + 1,
        phase=Phase.UPDATING if record.observed_generation else Phase.PROVISIONING,
        job=_following_job(record, _bringing(desired), now),
        commit=commit,
        divergence=replace(
            record.divergence,
            corrections=(),
            held=None,
            lowered=lowered_versions(record.document["spec"], document["spec"], record.divergence.lowered),
        ),
        updated=now,
        conditions=tuple(condition for condition in record.conditions if condition.type not in _OF_DELETES),
    )
    return with_summary(changed, now)


def accept_delete(record: ClusterRecord, *, commit: str, now: datetime, generation: int = 0) -> ClusterRecord:
    """Return the record with its tombstone: from now on nothing is created for it."""
    tombstone = replace(
        record,
        generation=generation or record.generation + 1,
        phase=Phase.DELETING,
        job=_following_job(record, Recipe.RELEASE if record.desired.is_attached else Recipe.DELETE, now),
        commit=commit,
        updated=now,
    )
    return with_summary(tombstone, now)


def accept_retry(record: ClusterRecord, *, now: datetime, left: tuple[str, ...] = ()) -> ClusterRecord:
    """Return the record with its job started again; the spec and its generation stay.

    A job that follows a sleep brings the spec about.
    """
    recipe = _bringing(record.desired) if record.job.recipe is Recipe.SLEEP else record.job.recipe
    started = replace(
        record,
        phase=working_phase(record),
        job=job_after(record.job, recipe, now=now, lease=record.job.lease, left=left),
        divergence=replace(record.divergence, held=None),
        updated=now,
    )
    return with_summary(started, now)


def accept_replay(record: ClusterRecord, *, now: datetime, left: tuple[str, ...] = ()) -> ClusterRecord:
    """Return the record whose job an operator starts again, and that creates a cluster which was missing."""
    recreating = record.azure.recreating or record.finding == ClusterMissing.__name__
    return accept_retry(
        replace(record, azure=replace(record.azure, recreating=recreating)), now=now, left=left
    )


def accept_takeover(record: ClusterRecord, contest: Contest, *, now: datetime) -> ClusterRecord:
    """Return the record whose job starts again and overrules what an operator decided.

    One that was recovering knows nothing of the pins that the cluster has: the job takes those over, and the
    next plan judges what moves from there.
    """
    if record.recovering:
        stored = Desired(record.document)
        known = stored.with_pins({name: replace(pin, before="") for name, pin in stored.pins.items()})
        record = replace(record, document=known.document(), digest=known.digest)
    taken = replace(
        record,
        ownership=replace(
            record.ownership,
            overruled=contest.installations,
            has_rival=False,
            predecessors=tuple(dict.fromkeys((*record.ownership.predecessors, *contest.installations))),
            recovering=False,
            cluster_uid="" if contest.kind is ContestKind.IDENTITY else record.ownership.cluster_uid,
        ),
        azure=replace(
            record.azure,
            life=contest.life or record.azure.life,
            delete_accepted=record.azure.delete_accepted and not contest.life,
        ),
    )
    return accept_retry(taken, now=now)


def accept_trial(record: ClusterRecord, trial: Trial, *, now: datetime) -> ClusterRecord:
    """Return the record with a try that begins or has ended: a job brings its commit, or takes it back.

    The generation stays. What drift waits for an approval of, stays too.
    """
    drift, same = record.divergence.drift, record.observed_generation == record.generation
    left = tuple(field.path for field in drift.to_approve) if drift and same else ()
    tried = replace(record, divergence=replace(record.divergence, trial=trial))
    tried = with_in_sync(tried, drift, now) if record.condition(IN_SYNC) else tried
    return accept_retry(tried, now=now, left=left)


def accept_recovery(record: ClusterRecord, *, now: datetime) -> ClusterRecord:
    """Return the record of tables that are older than Azure: its job starts again, and only compares.

    A try of it is over: nobody knows whether somebody ended it. A lease that it has is of an earlier time.
    """
    trial = record.trial
    if trial and not trial.ended:
        trial = replace(trial, ended=now, end=TrialEnd.RESTORED)
    divergence, job = replace(record.divergence, trial=trial), replace(record.job, lease=None)
    return accept_retry(replace(recovering(record), divergence=divergence, job=job), now=now)


def accept_sleep(record: ClusterRecord, now: datetime) -> ClusterRecord | None:
    """Return the record with the job that has its cluster sleep; None where it goes on as it is.

    Only one that is as git has it sleeps: a job that runs, or has failed, and a suspension come first.
    """
    decision = record.sleep_at(now)
    if decision is None or decision.awake or not record.ready:
        return None
    job = job_after(record.job, Recipe.SLEEP, now=now)
    return with_summary(replace(record, phase=Phase.UPDATING, job=job, updated=now), now)


def accept_order(record: ClusterRecord, order: SleepOrder, now: datetime) -> ClusterRecord:
    """Return the record with what an operator ordered about its sleep: its job looks at that at once."""
    ordered = replace(record, divergence=replace(record.divergence, order=order), updated=now)
    started = accept_sleep(ordered, now)
    if started is not None:
        return started
    return look_again(ordered, now) or at_another_moment(ordered, now)


def look_again(record: ClusterRecord, now: datetime) -> ClusterRecord | None:
    """Return the record of a cluster that sleeps with its step due now; None where it is, or none waits."""
    job, sleeps = record.job, record.sleep_job_runs or record.phase is Phase.SLEEPING
    if not (job.active and sleeps) or job.lease is not None or job.due(now) <= now:
        return None
    due = replace(record, job=replace(job, next_run=replace(job.next_run, at=now)))
    return at_another_moment(due, now)


def under_installation(record: ClusterRecord, installation: str) -> ClusterRecord:
    """Return the record under the present id of the app; the former one is overruled at first."""
    before = record.ownership.installation
    if before in ("", installation):
        return replace(record, ownership=replace(record.ownership, installation=installation))
    return replace(
        record,
        ownership=replace(
            record.ownership,
            installation=installation,
            overruled=tuple(dict.fromkeys((*record.ownership.overruled, before))),
            predecessors=tuple(dict.fromkeys((*record.ownership.predecessors, before))),
        ),
    )


def _removals(record: ClusterRecord, after: Mapping[str, Any]) -> Removals:
    """Return what is to be removed once a record has another stored form."""
    before, still = record.document, record.removals
    return Removals(
        keys_to_remove(before, after, still.keys),
        to_remove(systems_in(before), systems_in(after), still.systems),
        configurations_to_remove(before, after, still.configurations),
        companions_to_remove(before, after, still.companions),
    )


def _bringing(desired: Desired) -> Recipe:
    return Recipe.ATTACH if desired.is_attached else Recipe.PROVISION


def _following_job(record: ClusterRecord, recipe: Recipe, now: datetime) -> Job:
    return job_after(record.job, recipe, now=now, lease=record.job.lease)
