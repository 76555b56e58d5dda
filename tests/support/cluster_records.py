"""Records for tests of the engine's pure parts."""

from __future__ import annotations

import base64
import random
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.azure.changes.field_effects import Effect
from shared.cluster.history import Event
from shared.cluster.job import Job, NextRun, StepState, start_step
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.review_check import IgnoredReview, ReviewCheck, Verdict
from shared.cluster.transitions.acceptance import accept_new
from shared.plan.differences import FieldChange
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Action, Item, Plan
from shared.ports import PlanRecord
from tests.support.desired_clusters import desired

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def fresh(name: str = "one") -> ClusterRecord:
    """Return a record that was just accepted, and never saved."""
    return accept_new(desired(name), uid="0badcafe", commit="c" * 40, now=NOW)


def record(step: Step = Step.RESOURCE_GROUP, **changed: Any) -> ClusterRecord:
    """Return a record at the beginning of its first job; ``changed`` are fields of any part of the job."""
    created = accept_new(desired("one"), uid="0badcafe", commit="c" * 40, now=NOW)
    of_step, of_run, of_job = (_of(changed, kind) for kind in (StepState, NextRun, Job))
    assert changed == of_step | of_run | of_job
    state, run = replace(start_step(step, NOW), **of_step), replace(created.job.next_run, **of_run)
    return replace(created, job=replace(created.job, step=state, next_run=run, **of_job), etag="v1")


def _of(changed: dict[str, Any], kind: type) -> dict[str, Any]:
    return {field.name: changed[field.name] for field in fields(kind) if field.name in changed}


def event(sequence: int, **changes: Any) -> Event:
    """Return the event of a cluster's step."""
    name = Event(
        "one", "0badcafe", 1, sequence, later(sequence), False, "Waiting", f"message {sequence}", "cluster"
    )
    return replace(name, **changes)


def plan_record(commit: str = "c" * 40, items: int = 1) -> PlanRecord:
    """Return a plan with some changed items that are on hold."""
    change = FieldChange("spec.nodePools[system].count", "1", "2", Effect.IN_PLACE)
    hold = Hold(HoldKind.DELETE_BUDGET, {"removed": "2", "budget": "1"})
    name = tuple(Item(f"cluster-{n}", Action.UPDATE, n, "0badcafe", (change,), hold) for n in range(items))
    review = ReviewCheck(
        Verdict.NO_REVIEW,
        NOW,
        {"pull": "7", "teams": "ops", "head": "aaaaaaaa"},
        {"jo": IgnoredReview.NO_MEMBER},
    )
    return PlanRecord(Plan(commit, name, ("a problem",)), NOW, review=review)


def large_plan(items: int, seed: int = 0) -> PlanRecord:
    """Return a plan whose text can hardly be compressed."""
    chance = random.Random(seed)
    problems = tuple(base64.b64encode(chance.randbytes(750)).decode() for _ in range(items))
    return PlanRecord(Plan("c" * 40, (), problems), NOW)
