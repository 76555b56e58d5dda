"""What an accepted commit, a replay or a takeover makes of a cluster's record: a new job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from shared.azure.flux_extension import configurations_to_remove
from shared.azure.identity_access import former, granted
from shared.azure.managed_namespaces import managed_in
from shared.azure.node_pools.body import keys_to_remove
from shared.azure.policies import assigned
from shared.cluster.failures.errors import ClusterMissing
from shared.cluster.findings.conditions import with_summary
from shared.cluster.job import Contest, ContestKind, Job, job_after, new_job
from shared.cluster.recipes import CONDITIONS, STEPS, Recipe
from shared.cluster.record import ClusterRecord, Phase, working_phase
from shared.frozen import replace
from shared.language.cluster_systems import systems_in
from shared.language.desired import Desired
from shared.plan.system_removals import to_remove

_OF_DELETES = frozenset(CONDITIONS[step] for recipe in Recipe if recipe.removes for step in STEPS[recipe])


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
        had_systems=bool(desired.systems),
        rebuilt_for=desired.rebuild,
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
        removed_keys=keys_to_remove(record.document, document, record.removed_keys),
        former_grants=former(_around(record.document), _around(document), record.former_grants),
        had_systems=record.had_systems or bool(record.desired.systems or desired.systems),
        removed_systems=to_remove(systems_in(record.document), systems_in(document), record.removed_systems),
        removed_configurations=configurations_to_remove(
            record.document, document, record.removed_configurations
        ),
        digest=desired.digest,
        generation=generation or record.generation + 1,
        phase=Phase.UPDATING if record.observed_generation else Phase.PROVISIONING,
        job=_following_job(record, _bringing(desired), now),
        commit=commit,
        delete_accepted=False,
        rebuilt_for=max(record.rebuilt_for, desired.rebuild) if record.recovering else record.rebuilt_for,
        corrections=(),
        held=None,
        updated=now,
        conditions=tuple(each for each in record.conditions if each.type not in _OF_DELETES),
    )
    return with_summary(changed, now)


def accept_delete(record: ClusterRecord, *, commit: str, now: datetime, generation: int = 0) -> ClusterRecord:
    """Return the record with its tombstone: from now on nothing is created for it."""
    tombstone = replace(
        record,
        generation=generation or record.generation + 1,
        phase=Phase.DELETING,
        job=_following_job(record, Recipe.RELEASE if record.desired.is_existing else Recipe.DELETE, now),
        commit=commit,
        updated=now,
    )
    return with_summary(tombstone, now)


def accept_retry(record: ClusterRecord, *, now: datetime, left: tuple[str, ...] = ()) -> ClusterRecord:
    """Return the record with its job started again; the spec and its generation stay.

    ``left`` are the differences from git that the job leaves as they are.
    """
    job = job_after(record.job, record.job.recipe, now=now, left=left)
    return with_summary(replace(record, phase=working_phase(record), job=job, held=None, updated=now), now)


def accept_replay(record: ClusterRecord, *, now: datetime, left: tuple[str, ...] = ()) -> ClusterRecord:
    """Return the record whose job an operator starts again, and that creates a cluster which was missing."""
    recreating = record.recreating or record.finding == ClusterMissing.__name__
    return accept_retry(replace(record, recreating=recreating), now=now, left=left)


def accept_takeover(record: ClusterRecord, contest: Contest, *, now: datetime) -> ClusterRecord:
    """Return the record whose job starts again and overrules what an operator decided."""
    taken = replace(
        record,
        overruled=contest.installations,
        has_rival=False,
        predecessors=tuple(dict.fromkeys((*record.predecessors, *contest.installations))),
        life=contest.life or record.life,
        recovering=False,
        cluster_uid="" if contest.kind is ContestKind.IDENTITY else record.cluster_uid,
        delete_accepted=record.delete_accepted and not _of_another_life(contest),
        phase=working_phase(record),
        job=_following_job(record, record.job.recipe, now),
        updated=now,
    )
    return with_summary(taken, now)


def accept_recovery(record: ClusterRecord, *, now: datetime) -> ClusterRecord:
    """Return the record of tables that are older than Azure: its job starts again, and only compares."""
    return with_summary(
        replace(
            record,
            recovering=True,
            phase=working_phase(record),
            job=job_after(record.job, record.job.recipe, now=now),
            held=None,
            updated=now,
        ),
        now,
    )


def under_installation(record: ClusterRecord, installation: str) -> ClusterRecord:
    """Return the record under the present id of the app; the former one is overruled at first."""
    before = record.installation
    if before in ("", installation):
        return replace(record, installation=installation)
    return replace(
        record,
        installation=installation,
        overruled=tuple(dict.fromkeys((*record.overruled, before))),
        predecessors=tuple(dict.fromkeys((*record.predecessors, before))),
    )


def _around(document: Mapping[str, Any]) -> Sequence[str]:
    """Return the resource ids of what a stored form has in Azure around its cluster."""
    return (*granted(document), *assigned(document), *managed_in(document))


def _of_another_life(contest: Contest) -> bool:
    """Return whether a takeover is of a cluster that the delete which Azure accepted may not be about."""
    return bool(contest.life)


def _bringing(desired: Desired) -> Recipe:
    return Recipe.ATTACH if desired.is_existing else Recipe.PROVISION


def _following_job(record: ClusterRecord, recipe: Recipe, now: datetime) -> Job:
    return job_after(record.job, recipe, now=now, lease=record.job.lease)
