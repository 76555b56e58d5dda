"""A strategy: the stages of a rollout as fleet.yaml has them, and the numbers of clusters that it means."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from shared.frozen import dataclass, field, replace
from shared.language.model import rollout as manifest
from shared.language.model.base import Selector
from shared.language.model.change_windows import span_of
from shared.language.model.rollout import EVERY_APPROVER, UPGRADE_READINESS, ApprovalHours
from shared.language.model.rollout import GateSpec as WrittenGate
from shared.language.model.stage_checks import (
    AlertCheck,
    AskedCheck,
    AzureMonitorCheck,
    HttpCheck,
    PrometheusCheck,
)
from shared.rollouts.calendar import Window, opened

# A check of a gate: what is read or asked, and which answer is a success.

INTERVAL = timedelta(minutes=1)
_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}


WORST = "Sev0"


class CheckKind(StrEnum):
    """What a check of a gate reads or asks."""

    RUN = "commit"
    READINESS = "upgradeReadiness"
    HTTP = "http"
    PROMETHEUS = "prometheus"
    AZURE_MONITOR = "azureMonitor"
    ALERTS = "alerts"


@dataclass(frozen=True)
class GateCheck:
    """What a gate reads or asks: a check run, readiness for upgrades, or something outside.

    An HTTP endpoint answers with the ``status``. A Prometheus, with a ``query``, answers with values from
    ``least`` to ``most``; without both, with at least one. In a ``workspace`` of Azure Monitor each value of
    the query ``over`` a time ``passes`` a comparison such as "< 0.01". No alert of the ``severity`` or a
    worse one fires in the ``scope``. The check is asked once in an ``interval``. It has passed after so many
    consecutive ``successes``, and after more than so many ``failures`` it is not asked again.
    """

    name: str
    url: str = ""
    query: str = ""
    status: int = 200
    least: float | None = None
    most: float | None = None
    interval: timedelta = INTERVAL
    successes: int = 1
    failures: int = 3
    workspace: str = ""
    passes: str = ""
    over: timedelta = timedelta(0)
    scope: str = ""
    severity: str = ""

    @property
    def kind(self) -> CheckKind:
        """What it asks."""
        if self.scope:
            return CheckKind.ALERTS
        if self.workspace:
            return CheckKind.AZURE_MONITOR
        if self.url:
            return CheckKind.PROMETHEUS if self.query else CheckKind.HTTP
        return CheckKind.READINESS if self.name == UPGRADE_READINESS else CheckKind.RUN

    @property
    def asks(self) -> bool:
        """Whether it asks something outside, and counts the answers."""
        return self.kind not in (CheckKind.RUN, CheckKind.READINESS)

    def meets(self, values: Sequence[float]) -> bool | None:
        """Return whether the values of a query are a success, None if there is none to compare.

        What is no number is in no range, and passes no comparison.
        """
        if self.passes:
            sign = self.passes.rstrip("-.0123456789 ")
            compare, limit = _COMPARISONS[sign], float(self.passes.removeprefix(sign))
            return all(compare(value, limit) for value in values) if values else None
        if self.least is None and self.most is None:
            return bool(values)
        least = -math.inf if self.least is None else self.least
        most = math.inf if self.most is None else self.most
        return all(least <= value <= most for value in values) if values else None

    @property
    def expected(self) -> str:
        """What a success is, in a few words."""
        match self.kind:
            case CheckKind.HTTP:
                return f"status {self.status}"
            case CheckKind.AZURE_MONITOR:
                return f"{self.passes} over {self.over.total_seconds() / 60:g} minutes"
            case CheckKind.ALERTS:
                return f"no alert of {self.severity}{'' if self.severity == WORST else ' or worse'}"
            case CheckKind.PROMETHEUS:
                return self._range
            case CheckKind.RUN | CheckKind.READINESS:
                return "success"

    @property
    def _range(self) -> str:
        least = "" if self.least is None else f"at least {self.least:g}"
        most = "" if self.most is None else f"at most {self.most:g}"
        return " and ".join(filter(None, (least, most))) or "at least one value"


CANARY, REST = "1", "20%"
"""The defaults: the size of the first group, and how much of the second one changes at a time."""
FINAL = "(final gate)"
"""What the gate after the last stage is called; no stage of a file can have this name."""
OTHERS = "others"
"""The last stage: the clusters that no other one selects."""


@dataclass(frozen=True)
class GroupRule:
    """A group as written: numbers such as "2" or "20%", "" for the default."""

    clusters: str = ""
    max_concurrency: str = ""
    soak: timedelta = timedelta(0)
    min_success: str = ""
    failure_budget: str = ""

    @property
    def concurrency(self) -> str:
        """How many clusters change at the same time, where that is not written too."""
        return self.max_concurrency or (CANARY if self.clusters else REST)


DEFAULT_GROUPS = (GroupRule(clusters=CANARY), GroupRule())
"""One cluster, then all others, a fifth of them at a time."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which clusters something is for; an empty one matches every cluster."""

    environments: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    clusters: tuple[str, ...] = ()

    def selects(self, name: str, environment: str, location: str, labels: Mapping[str, str]) -> bool:
        """Return whether it is for a cluster."""
        return (
            (not self.environments or environment in self.environments)
            and (not self.locations or location in self.locations)
            and (not self.clusters or name in self.clusters)
            and all(labels.get(key) == value for key, value in self.labels.items())
        )


@dataclass(frozen=True)
class Gate:
    """What a stage waits for, and who answers for that, and why.

    The stage waits for a time ``after`` the stages before it have passed, and does not begin before one. So
    many different ``approvers`` approve it, none of them an author if it is ``by_others``, and an approval
    counts until it ``expires``. They have the ``role``, "" for every approver, and approve in the ``hours``;
    a ``system`` may approve too. All of its ``checks`` must have passed.
    """

    owner: str = ""
    reason: str = ""
    after: timedelta = timedelta(0)
    not_before: datetime | None = None
    approvers: int = 0
    by_others: bool = False
    expires: timedelta | None = None
    role: str = ""
    hours: Window | None = None
    system: str = ""
    checks: tuple[GateCheck, ...] = ()

    @property
    def hours_text(self) -> str:
        """The hours in which people approve, "" for every time."""
        hours = self.hours
        return f"{hours.recurrence} from {hours.start} {hours.time_zone}" if hours else ""

    def opens(self, reached: datetime) -> datetime:
        """Return when the stage may begin that was ``reached`` at a time."""
        return max(reached + self.after, self.not_before or reached)

    def takes(self, given: datetime) -> bool:
        """Return whether an approval counts that was given at a time."""
        return self.hours is None or opened(self.hours, given) is not None


NO_GATE = Gate()


@dataclass(frozen=True)
class StageRule(Selection):
    """A stage as written."""

    name: str
    groups: tuple[GroupRule, ...] = DEFAULT_GROUPS
    gate: Gate = NO_GATE


@dataclass(frozen=True)
class RefusedStrategy:
    """A strategy that a commit names and may not select, or several, when that was found; what it may select.

    Nothing starts until somebody has resumed the rollout; a newer commit selects for itself.
    """

    named: tuple[str, ...]
    allowed: tuple[str, ...]
    at: datetime


@dataclass(frozen=True)
class StrategyChoice:
    """Which strategy a rollout has, and why."""

    name: str = ""
    """The strategy whose stages it has, "" in a fleet with the same for all changes."""
    selected: bool = False
    """Whether its commit selects it."""
    kind: str = ""
    """The kind of its slowest change."""


@dataclass(frozen=True)
class StageTarget:
    """The ``commit`` of the platform that a stage is to have, and the newest one that it has ``passed``.

    That is "" for none. ``held``: clusters of it get the commit after other changes, or none of it gets it,
    because guards keep their pins.
    """

    stage: str
    commit: str
    passed: str = ""
    held: bool = False


@dataclass(frozen=True)
class Line:
    """What each stage is to have of the platform, in their order; ``newest`` has what the head has of it.

    ``refused``: that is wrong somewhere, so that no cluster may have it.
    """

    newest: str = ""
    targets: tuple[StageTarget, ...] = ()
    refused: bool = False

    @property
    def commits(self) -> list[str]:
        """The commits that the stages are to have."""
        return [target.commit for target in self.targets]

    @property
    def lags(self) -> bool:
        """Whether stages are to have an earlier commit than the newest."""
        return any(commit != self.newest for commit in self.commits)


NO_LINE = Line()


def stages_of(written: manifest.RolloutSpec, name: str, environments: Sequence[str]) -> tuple[StageRule, ...]:
    """Return the stages of a strategy, in order: those of fleet.yaml, or one for each of its environments.

    A gate after the last one is a stage without groups, which no cluster is in.
    ``name`` is that of the strategy, "" in a fleet that has the same stages for all changes.
    """
    of_strategy = next((strategy for strategy in written.strategies if strategy.name == name), written)
    stages = tuple(_stage(stage) for stage in of_strategy.stages)
    stages = stages or tuple(StageRule(name, environments=(name,)) for name in environments)
    gate = of_strategy.final_gate
    return (*stages, StageRule(FINAL, groups=(), gate=_of_gate(gate))) if gate else stages


def selection_of(written: Selector) -> Selection:
    """Return which clusters a selector of a file matches."""
    return Selection(**_selected(written))


def _selected(written: Selector) -> dict[str, Any]:
    return {
        "environments": written.environments,
        "locations": written.locations,
        "labels": dict(written.labels),
        "clusters": written.clusters,
    }


def _stage(written: manifest.StageSpec) -> StageRule:
    groups = tuple(_group(group) for group in written.groups)
    return StageRule(written.name, groups or DEFAULT_GROUPS, _gate(written), **_selected(written.select))


def _gate(written: manifest.StageSpec) -> Gate:
    hours, asks = written.approval_hours, written.approval
    return replace(
        _of_gate(written.gate) if written.gate else NO_GATE,
        approvers=written.approvers if asks else 0,
        by_others=asks and written.approval_by_others,
        expires=span_of(written.approval_expires) if asks and written.approval_expires else None,
        role=written.approval_role if asks and written.approval_role != EVERY_APPROVER else "",
        hours=_hours(hours) if hours else None,
        system=written.approval_system or "",
    )


def _of_gate(gate: WrittenGate) -> Gate:
    return Gate(
        gate.owner,
        gate.reason,
        span_of(gate.after) if gate.after else timedelta(0),
        datetime.fromisoformat(gate.not_before) if gate.not_before else None,
        checks=(
            *map(GateCheck, dict.fromkeys(gate.commit_checks)),
            *map(_asked, gate.asked_checks),
            *([GateCheck(UPGRADE_READINESS)] if gate.upgrade_readiness else ()),
        ),
    )


def _asked(written: AskedCheck) -> GateCheck:
    asked = GateCheck(
        written.name,
        interval=span_of(written.interval),
        successes=written.consecutive_success_limit,
        failures=written.failure_limit,
    )
    match written:
        case HttpCheck():
            return replace(asked, url=written.url, status=written.status)
        case PrometheusCheck():
            wanted = written.threshold_range
            asked = replace(asked, url=written.url, query=written.query)
            return replace(asked, least=wanted.min, most=wanted.max) if wanted else asked
        case AzureMonitorCheck():
            asked = replace(asked, workspace=written.workspace, query=written.query)
            return replace(asked, passes=written.passes, over=span_of(written.over))
        case AlertCheck():
            return replace(asked, scope=written.scope, severity=written.severity)
        case _:
            raise TypeError(f"no gate asks a {type(written).__name__}")


def _hours(written: ApprovalHours) -> Window:
    duration = span_of(written.duration)
    return Window("", written.time_zone, written.recurrence, written.start, duration)


def _group(written: manifest.GroupSpec) -> GroupRule:
    return GroupRule(
        written.clusters or "",
        written.max_concurrency or "",
        span_of(written.soak),
        written.min_success or "",
        written.failure_budget or "",
    )


def at_most(written: str, size: int) -> int:
    """Return a limit as a number of clusters: a percentage is rounded down, but at least one cluster."""
    if written.endswith("%"):
        return max(1, size * int(written[:-1]) // 100)
    return max(1, int(written))


def at_least(written: str, size: int) -> int:
    """Return a requirement as a number of clusters: a percentage is rounded up, and never more than all."""
    if written.endswith("%"):
        return -(-size * int(written[:-1]) // 100)
    return min(size, int(written))
