"""Plans in Azure Table Storage: a document, and next to it the properties that a report changes alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from shared.adapters.tables.storage import Entity, Storage, etag_of
from shared.jobs import stored_forms
from shared.ports import PlanRecord

PLANS = "roadsteadplans"
_PLAN: TypeAdapter[PlanRecord] = TypeAdapter(PlanRecord)


class PlansTable:
    """The part of the State port that is about plans."""

    _fleet: str
    _storage: Storage

    def plan(self, commit: str) -> PlanRecord | None:
        """Return the plan of a commit, or None."""
        if not commit:
            return None
        entity = self._storage.get(PLANS, self._fleet, commit)
        return self._plan_of(entity) if entity is not None else None

    def _plan_of(self, entity: Entity) -> PlanRecord | None:
        text = self._storage.document(PLANS, entity)
        return _with_report(_plan(text), entity) if text is not None else None

    def save_plan(self, plan_record: PlanRecord) -> None:
        """Write a plan over the saved one of its commit."""
        self._save_plan(plan_record, "")

    def save_review(self, plan_record: PlanRecord) -> None:
        """Write a plan with what its reviews say, over its version; raise Stale."""
        self._save_plan(plan_record, plan_record.etag)

    def _save_plan(self, plan_record: PlanRecord, etag: str) -> None:
        entity = {**self._plan_key(plan_record), "at": plan_record.at, **_report(plan_record)}
        text = _PLAN.dump_json(plan_record, exclude={"etag"}).decode()
        self._storage.upsert_document(PLANS, entity, text, etag=etag)

    def save_report(self, plan_record: PlanRecord) -> PlanRecord:
        """Write what was reported of a plan over its version; raise Stale."""
        entity = {**self._plan_key(plan_record), **_report(plan_record)}
        return replace(plan_record, etag=self._storage.merge(PLANS, entity, plan_record.etag))

    def _plan_key(self, plan_record: PlanRecord) -> dict[str, Any]:
        return {"PartitionKey": self._fleet, "RowKey": plan_record.plan.commit}

    def next_report_at(self) -> datetime | None:
        """Return when the newest open plan may be reported again."""
        query = "PartitionKey eq @key and open eq true"
        plans = self._storage.keys(PLANS, query, "at", "notBefore")
        newest = max(plans, key=lambda entity: entity["at"], default=None)
        return _moment(newest.get("notBefore")) if newest is not None else None

    def plans_since(self, at: datetime) -> Sequence[PlanRecord]:
        """Return the plans since a time, newest first."""
        return self._plans("PartitionKey eq @key and at ge @at", at=at)

    def open_plans(self) -> Sequence[PlanRecord]:
        """Return the plans whose commit status may still change, newest first."""
        return self._plans("PartitionKey eq @key and open eq true")

    def _plans(self, query: str, **parameters: Any) -> Sequence[PlanRecord]:
        entities = self._storage.query(PLANS, query, **parameters)
        found = (self._plan_of(entity) for entity in entities)
        plan_records = [plan_record for plan_record in found if plan_record is not None]
        return sorted(plan_records, key=lambda plan_record: plan_record.at, reverse=True)

    def prune_plans(self, keep: int) -> int:
        """Remove all but the newest plans and the open ones."""
        keys = self._storage.keys(PLANS, "PartitionKey eq @key", "at", "open")
        by_age = sorted(keys, key=lambda entity: entity["at"], reverse=True)
        return self._storage.remove_documents(PLANS, (old for old in by_age[keep:] if not old["open"]))


def _plan(text: str) -> PlanRecord:
    return _PLAN.validate_python(stored_forms.upgrade_plan(json.loads(text)))


def _report(plan_record: PlanRecord) -> dict[str, Any]:
    """Return what was reported of a plan as properties of its entity; none can be null."""
    return {
        "open": plan_record.open,
        "settled": plan_record.settled,
        "reported": plan_record.reported,
        "reports": plan_record.reports,
        "notBefore": _text(plan_record.not_before),
        "writing": _text(plan_record.writing),
    }


def _with_report(plan_record: PlanRecord, entity: Entity) -> PlanRecord:
    """Return a plan with what was reported of it since; the version before saved that with the plan alone."""
    read = replace(plan_record, etag=etag_of(entity))
    if entity.get("notBefore") is None:
        return read
    return replace(
        read,
        open=entity["open"],
        settled=entity["settled"],
        reported=entity["reported"],
        reports=entity["reports"],
        not_before=_moment(entity["notBefore"]),
        writing=_moment(entity.get("writing")),
    )


def _text(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
