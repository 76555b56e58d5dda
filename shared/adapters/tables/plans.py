"""Plans in Azure Table Storage: a document, and next to it the properties that a report changes alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from typing import Any

from shared.adapters.tables.reading import Entity, Reader
from shared.adapters.tables.storage import Storage, etag_of
from shared.cluster.forms import Listed, StoredText, WrongText
from shared.ports import PlanRecord

PLANS = "roadsteadplans"
_PLAN = StoredText[PlanRecord](PlanRecord)


class PlansTable:
    """The part of the State port that is about plans."""

    _fleet: str
    _storage: Storage
    _reader: Reader

    def plan(self, commit: str) -> PlanRecord | None:
        """Return the plan of a commit; None for none, and for one that is damaged; raise Unreadable."""
        entity = self._storage.get(PLANS, self._fleet, commit) if commit else None
        return self._reader.or_else(None, "plan", PLANS, entity, self.plan_of) if entity is not None else None

    def _readable_plans(self, entities: Iterable[Entity]) -> Listed[PlanRecord]:
        listed = self._reader.listed("plan", PLANS, entities, self.plan_of)
        return Listed((plan for plan in listed if plan is not None), listed.unreadable)

    def plan_of(self, entity: Entity) -> PlanRecord | None:
        """Return what a record stores of a plan, None where it has just been replaced; raise WrongText."""
        text = self._storage.document(PLANS, entity)
        return _with_report(_PLAN.read(text), entity) if text is not None else None

    def save_plan(self, plan_record: PlanRecord) -> None:
        """Write a plan over the saved one of its commit."""
        self._save_plan(plan_record, "")

    def save_review(self, plan_record: PlanRecord) -> None:
        """Write a plan with what its reviews say, over its version; raise Stale."""
        self._save_plan(plan_record, plan_record.etag)

    def _save_plan(self, plan_record: PlanRecord, etag: str) -> None:
        entity = {**self._plan_key(plan_record), "at": plan_record.at, **_report(plan_record)}
        text = _PLAN.write(plan_record, "etag")
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
        newest = max((plan for plan in plans if _is_dated(plan)), key=itemgetter("at"), default=None)
        return self._reader.or_else(None, "plan", PLANS, newest, _not_before) if newest is not None else None

    def plans_since(self, at: datetime) -> Listed[PlanRecord]:
        """Return the plans since a time, newest first."""
        return self._plans("PartitionKey eq @key and at ge @at", at=at)

    def open_plans(self) -> Listed[PlanRecord]:
        """Return the plans whose commit status may still change, newest first."""
        return self._plans("PartitionKey eq @key and open eq true")

    def _plans(self, query: str, **parameters: Any) -> Listed[PlanRecord]:
        listed = self._readable_plans(self._storage.query(PLANS, query, **parameters))
        listed.sort(key=lambda plan_record: plan_record.at, reverse=True)
        return listed

    def prune_plans(self, keep: int) -> int:
        """Remove all but the newest plans and the open ones."""
        keys = self._storage.keys(PLANS, "PartitionKey eq @key", "at", "open")
        by_age = sorted(filter(_is_dated, keys), key=itemgetter("at"), reverse=True)
        return self._storage.remove_documents(
            PLANS, (old for old in by_age[keep:] if old.get("open") is False)
        )


def _is_dated(entity: Entity) -> bool:
    return isinstance(entity.get("at"), datetime)


def _not_before(entity: Entity) -> datetime | None:
    return _moment(entity.get("notBefore"))


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
    """Return a plan with what was reported of it since."""
    for name, kind in _REPORT.items():
        if type(entity.get(name)) is not kind:
            raise WrongText(f"{name} is missing, or has a wrong type")
    return replace(
        plan_record,
        etag=etag_of(entity),
        open=entity["open"],
        settled=entity["settled"],
        reported=entity["reported"],
        reports=entity["reports"],
        not_before=_moment(entity["notBefore"]),
        writing=_moment(entity["writing"]),
    )


_REPORT: Mapping[str, type] = {"open": bool, "settled": bool, "reported": str, "reports": int}
"""The properties of what was reported, with their types."""


def _text(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise WrongText("notBefore or writing is no time with a zone")
    return moment
