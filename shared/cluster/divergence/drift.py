"""What is stored of drift: the fields in which Azure differs from git, and what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from shared.azure.differences import Difference
from shared.azure.drift.activity import FieldAuthor
from shared.azure.drift.policy import MAX_CORRECTIONS, DriftDecision
from shared.frozen import dataclass, replace
from shared.json_tree import digest_of
from shared.kubernetes_versions import is_version, never_back
from shared.language.model.cluster.drift import DriftAction
from shared.masking import cut
from shared.sentences import moment, some_of

FIELDS = 25
"""So many fields of a cluster are stored; the others are counted."""
VALUE_LIMIT = 400
"""Characters of a stored value."""
NAMED = 3
ROLLBACKS = "roadstead/rollback/"
"""The beginning of the branches of rollbacks; the fleet, the cluster and the pool with a time follow."""
SUSPENSIONS = "roadstead/suspend/"
"""The beginning of the branches of suspensions; the fleet and a digest of what was asked follow."""
PROMOTIONS = "roadstead/promote/"
CHANNELS = {"version": "roadstead/versions/", "images": "roadstead/images/", "components": "roadstead/flux/"}
"""The beginning of the branches of promotions, and of what channels have; the fleet and the environment
follow."""
BRANCHES = "roadstead/drift/"
"""The beginning of the branches of pull requests that propose drift; the fleet and the cluster follow."""


@dataclass(frozen=True)
class DriftedField:
    """A field below ``spec``: its path, both values as JSON ("" for none), and since when a sweep sees that.

    A long value is cut, and then is no JSON. ``left_alone``: no job changes it. ``note`` says why it is not
    corrected although the policy asks for that, or which exemption has ended; "" for nothing. ``source`` is
    the "file:line" that sets the value of git, as of the commit that was planned last when it was found; ""
    where git has no value, and where it could not be read yet. ``live_since`` is since when a sweep sees this
    value of Azure. ``by`` is who may have changed it and ``changed``
    when, by Azure's activity log; "" and None where that does not say. ``effect`` is what writing git's value
    does where the action is ``approve``, "" otherwise.
    """

    path: str
    git: str
    live: str
    since: datetime
    left_alone: bool = False
    action: DriftAction = DriftAction.REPORT
    note: str = ""
    source: str = ""
    by: str = ""
    changed: datetime | None = None
    live_since: datetime | None = None
    effect: str = ""

    @property
    def never_back(self) -> str:
        """The sentence for a version that runs although git has an older one, "" for any other field."""
        if not (self.left_alone and is_version(self.path)):
            return ""
        return never_back(json.loads(self.live), json.loads(self.git))

    def __str__(self) -> str:
        return f"{self.path} ({self.never_back})" if self.never_back else self.path

    @property
    def change(self) -> str:
        """Who may have changed the field, and when; "" if unknown."""
        return change_text(self.by, self.changed)


def change_text(by: str, at: datetime | None) -> str:
    """Return ``may have been changed 2026-01-31 02:14 UTC by ann@example.com``, "" without a time."""
    return f"may have been changed {moment(at)} by {by}" if at else ""


@dataclass(frozen=True)
class Correction:
    """How often a field was corrected, and when last; ``git`` is the value that was written."""

    path: str
    git: str
    times: int
    at: datetime


@dataclass(frozen=True)
class CorrectionApproval:
    """Who approved the corrections of a cluster that need it, when, and why."""

    by: str
    at: datetime
    reason: str = ""


@dataclass(frozen=True)
class Drift:
    """The fields in which a cluster differs: at least one. ``more`` counts those that are not stored.

    ``correction`` identifies the corrections that need an approval, with the values of git and of Azure and
    with the generation; "" for none, and for more than are stored. ``approval`` is that of exactly these.
    """

    fields: tuple[DriftedField, ...]
    more: int = 0
    correction: str = ""
    approval: CorrectionApproval | None = None

    @property
    def count(self) -> int:
        """The number of fields that differ."""
        return len(self.fields) + self.more

    @property
    def to_approve(self) -> tuple[DriftedField, ...]:
        """The fields whose correction waits for an approval."""
        return () if self.approval else self.by_approval

    @property
    def by_approval(self) -> tuple[DriftedField, ...]:
        """The fields whose correction needs an approval, also if somebody has given it."""
        return tuple(
            field for field in self.fields if self.correction and field.action is DriftAction.APPROVE
        )

    @property
    def waits(self) -> str:
        """What waits for an approval, and what it would do, as a sentence; "" for nothing."""
        if not self.correction and any(field.action is DriftAction.APPROVE for field in self.fields):
            return f"more than {FIELDS} corrections need an approval, too many for one: a replay does them"
        named = [f"{field.path} ({field.effect})" for field in self.to_approve]
        return f"the correction of {some_of(named, NAMED)} waits for an approval" if named else ""

    def __str__(self) -> str:
        """Return the first paths, such as ``sku.tier, tags.cost and 2 more``; versions have their reason."""
        return some_of([str(field) for field in self.fields], NAMED, total=self.count)


def drift_from(
    decided: Sequence[DriftDecision],
    before: Drift | None,
    now: datetime,
    *,
    life: str = "",
    generation: int = 0,
) -> Drift | None:
    """Return what is stored of differences, None for none; a field that differed before keeps its time.

    Ignored ones are not stored. An approval stays while it is one of exactly the corrections that need it,
    in the same ``life`` and ``generation`` of the cluster.
    """
    shown = [decision for decision in decided if decision.action is not DriftAction.IGNORE]
    shown.sort(key=lambda decision: decision.action is not DriftAction.APPROVE)
    known = {field.path: field for field in before.fields} if before else {}
    fields = [_field(decision, known.get(decision.path), now) for decision in shown[:FIELDS]]
    if not fields:
        return None
    correction = _correction(shown, life, generation)
    approval = before.approval if before and correction and correction == before.correction else None
    return Drift(tuple(fields), len(shown) - len(fields), correction, approval)


def _correction(shown: Sequence[DriftDecision], life: str, generation: int) -> str:
    """Return what identifies the corrections that need an approval, "" for none and for too many."""
    waiting = [decision for decision in shown if decision.action is DriftAction.APPROVE]
    if not 0 < len(waiting) <= FIELDS:
        return ""
    sides = ((decision, decision.difference.git, decision.difference.live) for decision in waiting)
    values = sorted([side.path, side.effect, _json(git), _json(live)] for side, git, live in sides)
    return digest_of([life, generation, values])


def _field(decided: DriftDecision, before: DriftedField | None, now: datetime) -> DriftedField:
    git, live = value_text(decided.difference.git), value_text(decided.difference.live)
    same = before if before and before.live == live else None
    return DriftedField(
        decided.path,
        git,
        live,
        before.since if before else now,
        left_alone=decided.difference.left_alone,
        action=decided.action,
        note=decided.note,
        source=before.source if before and before.git == git else "",
        by=same.by if same else "",
        changed=same.changed if same else None,
        live_since=same.live_since if same else now,
        effect=decided.effect,
    )


ASKED_AGAIN = timedelta(hours=6)
"""For so long at least the log is asked who changed a field, and so long before it was seen."""


def attributed(
    drift: Drift | None, since: datetime, who: Callable[[DriftedField], FieldAuthor | None]
) -> Drift | None:
    """Return a drift with who changed the fields of which that is not known.

    The log is some minutes late, and may not answer. ``who`` is asked of the fields alone whose value no
    sweep saw before ``since``.
    """
    if drift is None:
        return None

    def asked(field: DriftedField) -> DriftedField:
        recent = field.live_since is not None and field.live_since >= since
        change = who(field) if recent and not field.by else None
        return replace(field, by=change.by, changed=change.at) if change else field

    return replace(drift, fields=tuple(map(asked, drift.fields)))


def remaining_after(
    drift: Drift | None,
    left: Collection[str],
    added: Sequence[Difference],
    now: datetime,
    *,
    same_generation: bool,
) -> Drift | None:
    """Return what of a drift remains after a job that leaves some fields as they are, None for nothing.

    What no job changes remains as well, and comes to it: in a new generation, what Azure shows of it now
    (``added``). A policy decides about that with the next comparison.
    """
    known = {field.path: field for field in (drift.fields if drift else ())}
    paths = {difference.path for difference in added}
    fields = [
        field
        for field in known.values()
        if field.path in left or (field.left_alone and (same_generation or field.path in paths))
    ]
    fields = [field if field.path not in paths else _still(field, added, now) for field in fields]
    new = (difference for difference in added if difference.path not in known)
    fields += (_field(DriftDecision(difference, DriftAction.REPORT), None, now) for difference in new)
    if not fields:
        return None
    whole = drift is not None and {*drift.by_approval} <= {*fields}
    correction = drift.correction if drift and whole and same_generation else ""
    return Drift(tuple(fields[:FIELDS]), max(0, len(fields) - FIELDS), correction=correction)


def _still(field: DriftedField, added: Sequence[Difference], now: datetime) -> DriftedField:
    """Return a field that still differs, with the values that it has now."""
    shown = next(difference for difference in added if difference.path == field.path)
    if (value_text(shown.git), value_text(shown.live)) == (field.git, field.live):
        return field
    return _field(DriftDecision(shown, field.action, field.note), field, now)


EXHAUSTED_DAYS = 7
"""After so many days without a correction, an earlier one no longer counts."""


def exhausted(corrections: Sequence[Correction], now: datetime) -> frozenset[str]:
    """Return the fields that were corrected too often to be corrected again."""
    return frozenset(
        correction.path
        for correction in corrections
        if correction.times >= MAX_CORRECTIONS and _recent(correction, now)
    )


def corrected(
    corrections: Sequence[Correction], decided: Sequence[DriftDecision], now: datetime
) -> tuple[Correction, ...]:
    """Return the corrections with those that begin now."""
    known = {correction.path: correction for correction in corrections if _recent(correction, now)}
    for decision in decided:
        before, git = known.get(decision.path), value_text(decision.difference.git)
        times = before.times if before and before.git == git else 0
        known[decision.path] = Correction(decision.path, git, times + 1, now)
    return tuple(known.values())


def _recent(correction: Correction, now: datetime) -> bool:
    return now - correction.at < timedelta(days=EXHAUSTED_DAYS)


def is_news(drift: Drift | None, before: Drift | None) -> bool:
    """Return whether other fields or values differ than before, or other corrections need an approval."""
    return _identity(drift) != _identity(before)


def _identity(drift: Drift | None) -> tuple[frozenset[tuple[str, str, str]], str]:
    if drift is None:
        return frozenset(), ""
    return frozenset((field.path, field.git, field.live) for field in drift.fields), drift.correction


def digest_of_proposal(drift: Drift | None) -> str:
    """Return a digest of the fields that a pull request is to take into the manifest, "" for none."""
    proposed = [field for field in (drift.fields if drift else ()) if field.action is DriftAction.PROPOSE]
    return digest_of([[field.path, field.git, field.live] for field in proposed]) if proposed else ""


def value_text(value: Any) -> str:
    """Return a value as it is stored: JSON, "" for none, cut if it is long."""
    text = _json(value)
    return text if len(text) <= VALUE_LIMIT else f"{cut(text, VALUE_LIMIT)}..."


def _json(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)
