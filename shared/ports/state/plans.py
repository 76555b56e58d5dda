"""What is stored of plans, and the cache of the repository: what was read once is not read again.

A plan is a document, and next to it are the properties that a report changes alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any

from shared.cluster.forms import RecordList, StoredText, WrongText
from shared.cluster.queues.message_parts import Approval
from shared.cluster.review_check import ReviewCheck
from shared.frozen import dataclass, field, replace
from shared.masking import cut
from shared.plan.list_price import ListPrice
from shared.plan.plan import Plan
from shared.ports.state.clusters import FLEETS
from shared.ports.state.reading import RecordKind, TableRepository, TextKind
from shared.ports.state.texts import document, remove_documents, write_document
from shared.ports.tables import Condition, Entity, Key

PLANS = "roadsteadplans"
BLOBS = "roadsteadblobs"
REVIEW_LIMIT = 2000
"""Characters of what the reviews said, in a list of plans."""


@dataclass(frozen=True)
class PlanBrief:
    """What a list says of a plan, without its items: it is stored next to the plan.

    ``summary`` is that of the plan. ``to_approve`` counts its deletes that need an approval, ``to_release``
    the releases among them. ``approval`` names no clusters: ``approved`` counts them, ``approved_releases``
    the releases among them. ``reported`` is the last commit status.
    """

    commit: str
    at: datetime
    summary: str
    problems: int
    to_approve: int
    to_release: int
    approval: Approval | None = None
    approved: int = 0
    approved_releases: int = 0
    review: str = ""
    reported: str = ""


@dataclass(frozen=True)
class PlanRecord:
    """A plan, its last reported commit status, and the approval of its deletes that need one.

    ``open``: its commit status may still change. ``settled``: only a commit or a replay can change it.
    ``not_before`` is when the status may be sent to the git host again, ``reports`` how many were sent.
    ``review`` is what the reviews on GitHub said when they were read last, None if they were not. ``held`` is
    since when each cluster's item is on hold, also by the plans before. ``list_price`` is by how much it
    changes the list price, None for nothing. ``etag`` is the version that was read, "" for a record not
    saved yet.
    """

    plan: Plan
    at: datetime
    open: bool = True
    settled: bool = False
    reported: str = ""
    not_before: datetime | None = None
    approval: Approval | None = None
    reports: int = 0
    review: ReviewCheck | None = None
    held: Mapping[str, datetime] = field(default_factory=dict)
    list_price: ListPrice | None = None
    etag: str = field(default="", compare=False)

    @property
    def brief(self) -> PlanBrief:
        """What a list says of it."""
        plan, approval = self.plan, self.approval
        approved = approval.clusters if approval else ()
        return PlanBrief(
            plan.commit,
            self.at,
            plan.summary,
            len(plan.problems),
            len(plan.deletes_needing_approval),
            len(plan.releases & plan.deletes_needing_approval),
            approval.model_copy(update={"clusters": ()}) if approval else None,
            len(approved),
            len(plan.releases.intersection(approved)),
            cut(str(self.review or ""), REVIEW_LIMIT),
            self.reported,
        )


@dataclass(frozen=True)
class PullPlanRecord:
    """What a merge of a pull request would do, as its head was planned last on the commit ``base``.

    ``plan`` is None for one from a ``fork``, which is only validated, and for a refusal. ``title`` is the
    result in a line, ``note`` and ``refusal`` what the comment says of the plan as a whole, and ``url`` the
    pull request. ``list_price`` is by how much it changes the list price, None where it does not.
    """

    number: int
    head: str
    base: str
    at: datetime
    title: str
    url: str = ""
    note: str = ""
    refusal: str = ""
    fork: bool = False
    problems: tuple[str, ...] = ()
    plan: Plan | None = None
    list_price: ListPrice | None = None


class Plans(TableRepository):
    """The plans, with their reported status, and what was read of the repository."""

    def plan(self, commit: str) -> PlanRecord | None:
        """Return the plan of a commit; None for none, and for one that is damaged.

        Raise Unreadable for one of a newer form.
        """
        entity = self._entity(PLAN, commit) if commit else None
        return self._reader.or_else(None, PLAN, entity) if entity is not None else None

    def save_plan(self, plan_record: PlanRecord) -> None:
        """Write a plan over the saved one of its commit; only the planner does."""
        self._save_plan(plan_record, None)

    def save_review(self, plan_record: PlanRecord) -> None:
        """Write a plan with what its reviews say, over the version that was read; raise Stale."""
        self._save_plan(plan_record, plan_record.etag)

    def _save_plan(self, plan_record: PlanRecord, etag: str | None) -> None:
        brief = _BRIEF.write(plan_record.brief, "reported")
        properties = {"at": plan_record.at, "brief": brief, **_report(plan_record)}
        text = _PLAN.write(plan_record, "etag")
        write_document(self._tables[PLANS], self._place(plan_record), properties, text, etag)

    def save_report(self, plan_record: PlanRecord) -> None:
        """Write what was reported of a plan over the version that was read, and leave the plan; raise Stale.

        That is ``open``, ``settled``, ``reported``, ``not_before`` and ``reports``.
        """
        self._tables[PLANS].merge(*self._place(plan_record), _report(plan_record), plan_record.etag)

    def _place(self, plan_record: PlanRecord) -> Key:
        return self._fleet, plan_record.plan.commit

    def next_report_at(self) -> datetime | None:
        """Return the ``not_before`` of the newest open plan; the size of plans does not matter."""
        plans = filter(_is_dated, self._keys(_NOT_BEFORE, _OPEN, also=("at", "notBefore")))
        newest = max(plans, key=itemgetter("at"), default=None)
        return self._reader.or_else(None, _NOT_BEFORE, newest) if newest is not None else None

    def plans_since(self, at: datetime) -> RecordList[PlanRecord]:
        """Return the plans since a time, newest first."""
        return self._plans(("at", "ge", at))

    def briefs_since(self, at: datetime) -> RecordList[PlanBrief]:
        """Return what a list says of the plans since a time, newest first; their sizes do not matter."""
        found = self._keys(BRIEF, ("at", "ge", at), also=("brief", "reported"))
        briefs = self._reader.listed(BRIEF, found)
        return RecordList(sorted(briefs, key=lambda brief: brief.at, reverse=True), briefs.unreadable)

    def open_plans(self) -> RecordList[PlanRecord]:
        """Return the plans whose commit status may still change, newest first."""
        return self._plans(_OPEN)

    def _plans(self, condition: Condition) -> RecordList[PlanRecord]:
        listed = self._listed(PLAN, condition)
        plans = [plan for plan in listed if plan is not None]
        return RecordList(sorted(plans, key=lambda plan: plan.at, reverse=True), listed.unreadable)

    def pull(self, number: int) -> PullPlanRecord | None:
        """Return the last plan of a pull request; None for none, and for one that cannot be read."""
        entity = self._entity(PULL, str(number))
        return self._reader.or_else(None, PULL, entity) if entity is not None else None

    def save_pull(self, record: PullPlanRecord) -> None:
        """Write the plan of a pull request over the last one; raise TooLarge."""
        self._put(PULL, str(record.number), record, at=record.at)

    def prune_plans(self, keep: int) -> int:
        """Remove all but the newest plans and the open ones; return how many were removed."""
        dated = filter(_is_dated, self._keys(PLAN, also=("at", "open")))
        by_age = sorted(dated, key=itemgetter("at"), reverse=True)
        old = [entity.place for entity in by_age[keep:] if entity.get("open") is False]
        return remove_documents(self._tables[PLANS], old)

    def blobs(self, ids: Collection[str]) -> Mapping[str, bytes]:
        """Return those of these blobs that are saved, by their ids; each takes one read."""
        table = self._tables[BLOBS]
        entities = self._together(lambda sha: table.get(self._fleet, sha), list(ids))
        found = {entity["RowKey"]: entity.get("content") for entity in entities if entity is not None}
        return {sha: content for sha, content in found.items() if isinstance(content, bytes)}

    def save_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Save blobs of at most 60,000 bytes by their ids."""
        self._tables[BLOBS].put(self._fleet, {sha: {"content": content} for sha, content in blobs.items()})

    def prune_blobs(self, wanted: Collection[str]) -> int:
        """Remove every saved blob except these, by their ids; return how many were removed."""
        table = self._tables[BLOBS]
        saved = table.query(self._fleet, select=("PartitionKey", "RowKey"))
        return table.remove(blob.place for blob in saved if blob["RowKey"] not in wanted)

    def fingerprints(self) -> Mapping[str, str]:
        """Return what ``save_fingerprints`` wrote last, by cluster; none where they cannot be read."""
        entity = self._entity(FINGERPRINTS, self._fleet)
        return (self._reader.or_else({}, FINGERPRINTS, entity) if entity is not None else None) or {}

    def save_fingerprints(self, fingerprints: Mapping[str, str]) -> None:
        """Write the fingerprints of the whole fleet over the saved ones; their loss costs only time."""
        place, text = (FINGERPRINTS.partition, self._fleet), FINGERPRINTS.text(dict(fingerprints))
        write_document(self._tables[FLEETS], place, {}, text, None)


_OPEN: Condition = ("open", "eq", True)
_PLAN = StoredText[PlanRecord](PlanRecord)
_BRIEF = StoredText[PlanBrief](PlanBrief)


def _plan(entity: Entity) -> PlanRecord | None:
    """Return what a record stores of a plan, None where it has just been replaced; raise WrongText."""
    text = document(entity)
    return _with_report(_PLAN.read(text), entity) if text is not None else None


def _is_dated(entity: Entity) -> bool:
    return isinstance(entity.get("at"), datetime)


def _not_before(entity: Entity) -> datetime | None:
    return _moment(entity.get("notBefore"))


def _brief(entity: Entity) -> PlanBrief:
    return replace(_BRIEF.read(entity.get("brief", "")), reported=entity.get("reported") or "")


PLAN = RecordKind("plan", PLANS, "{}", _plan)
BRIEF = RecordKind("plan", PLANS, "{}", _brief)
PULL = TextKind[PullPlanRecord | None]("pull request", PLANS, PullPlanRecord, "pulls|{}")
_NOT_BEFORE = RecordKind("plan", PLANS, "{}", _not_before)
FINGERPRINTS = TextKind[Mapping[str, str] | None](
    "fingerprints", FLEETS, dict[str, str], "marks", text=document
)


def _report(plan_record: PlanRecord) -> dict[str, Any]:
    """Return what was reported of a plan as properties of its entity; none can be null."""
    return {
        "open": plan_record.open,
        "settled": plan_record.settled,
        "reported": plan_record.reported,
        "reports": plan_record.reports,
        "notBefore": plan_record.not_before.isoformat() if plan_record.not_before else "",
    }


def _with_report(plan_record: PlanRecord, entity: Entity) -> PlanRecord:
    """Return a plan with what was reported of it since."""
    for name, kind in _REPORT.items():
        if type(entity.get(name)) is not kind:
            raise WrongText(f"{name} is missing, or has a wrong type")
    return replace(
        plan_record,
        etag=entity.etag,
        open=entity["open"],
        settled=entity["settled"],
        reported=entity["reported"],
        reports=entity["reports"],
        not_before=_moment(entity["notBefore"]),
    )


_REPORT: Mapping[str, type] = {"open": bool, "settled": bool, "reported": str, "reports": int}
"""The properties of what was reported, with their types."""


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise WrongText("notBefore is no time with a zone")
    return moment
