"""What Azure Policy has found of a cluster, by the assignments of the manifest.

Azure evaluates by itself, about once a day and some minutes after a change of an assignment
(learn.microsoft.com/azure/governance/policy/how-to/get-compliance-data): each state has the time when it was
evaluated, and nothing here is newer than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from shared.frozen import dataclass
from shared.json_tree import Json

NOT_EVALUATED = "NotEvaluated"
"""What is so of an assignment of which Azure shows no state."""
NON_COMPLIANT = "NonCompliant"
_WORST_FIRST = (NON_COMPLIANT, "Error", "Conflict", "Unknown", "Protected", "Exempt", "Compliant")


@dataclass(frozen=True)
class PolicyState:
    """What Azure found of one assignment, by its name.

    ``state`` is the worst of all its definitions, ``non_compliant`` how many of these are NonCompliant, and
    ``evaluated`` when the oldest of the states is of; None for none.
    """

    assignment: str
    state: str
    non_compliant: int = 0
    evaluated: datetime | None = None


@dataclass(frozen=True)
class Compliance:
    """What a check read at a time; an assignment that Azure has not evaluated is in it too."""

    read: datetime
    states: tuple[PolicyState, ...]


def compliance_of(records: Iterable[Json], names: Iterable[str], now: datetime) -> Compliance:
    """Return what records of policy states say of assignments."""
    by_name: dict[str, list[Json]] = {}
    for record in records:
        by_name.setdefault(str(record.get("policyAssignmentName") or "").lower(), []).append(record)
    return Compliance(now, tuple(_state(name, by_name.get(name.lower(), [])) for name in names))


def _state(name: str, records: list[Json]) -> PolicyState:
    if not records:
        return PolicyState(name, NOT_EVALUATED)
    found = [str(record.get("complianceState") or "Unknown") for record in records]
    known = [state for state in _WORST_FIRST if state in found]
    others = sorted(set(found) - set(_WORST_FIRST))
    worst = known[0] if known[:1] == [NON_COMPLIANT] else (*others, *known)[0]
    return PolicyState(name, worst, found.count(NON_COMPLIANT), min(_times(records), default=None))


def _times(records: Iterable[Json]) -> Iterator[datetime]:
    for record in records:
        try:
            at = datetime.fromisoformat(str(record.get("timestamp")))
        except ValueError:
            continue
        if at.tzinfo is not None:
            yield at
