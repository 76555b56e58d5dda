"""The strategy of a rollout as values, and as the YAML of fleet.yaml. Numbers are numbers of clusters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil


@dataclass(frozen=True)
class StagedGroup:
    """A group: ``size`` clusters, 0 for all others, of which ``most`` change at a time.

    ``success`` is how many of them, or what percentage, must be Ready for it to pass, "" for all that can.
    """

    size: int
    most: int
    budget: int
    soak: int = 0
    success: str = ""

    def needs(self, clusters: int) -> int:
        """Return how many of so many clusters must be Ready; a percentage of them is rounded up."""
        if self.success.endswith("%"):
            return ceil(Fraction(self.success.removesuffix("%")) / 100 * clusters)
        return min(int(self.success or 0), clusters)


USUAL = ("changes", "deletes", "corrections")
"""What windows and freezes are for that do not say it."""


@dataclass(frozen=True)
class Shut:
    """A time in which nothing that it is ``of`` starts in a stage: once, or every day, outside a window."""

    starts: datetime
    ends: datetime
    freeze: bool
    of: tuple[str, ...] = USUAL

    def covers(self, first: datetime, last: datetime) -> bool:
        """Return whether all of a short time is in it."""
        if self.freeze:
            return self.starts <= first and last < self.ends
        day = timedelta(days=1)
        days = (first - self.starts) // day
        return last < self.ends + days * day


@dataclass(frozen=True)
class Hours:
    """The part of every day in which a stage can be approved; longer than the rest of the day."""

    opens: datetime
    minutes: int

    def cover(self, at: datetime) -> bool:
        """Return whether a time is in them."""
        return (at - self.opens) % timedelta(days=1) < timedelta(minutes=self.minutes)


@dataclass(frozen=True)
class ApprovalRule:
    """Who approves a stage, and when: only an ``admin``, only ``others`` than the author, in some ``hours``.

    An approval counts for so many minutes until it ``expires``, 0 for as long as the rollout. The ``system``
    can approve it, too.
    """

    admin: bool = False
    others: bool = False
    expires: int = 0
    hours: Hours | None = None
    system: bool = False

    @property
    def as_yaml(self) -> str:
        """Its fields in fleet.yaml."""
        parts = ["approvalRole: Admin"] if self.admin else []
        parts += ["approvalByOthers: true"] if self.others else []
        parts += [f"approvalExpires: {self.expires}m"] if self.expires else []
        parts += [f"approvalSystem: {SYSTEM}"] if self.system else []
        if self.hours is not None:
            when = f'start: "{self.hours.opens:%H:%M}", duration: {self.hours.minutes}m'
            parts.append(f"approvalHours: {{timeZone: UTC, recurrence: FREQ=DAILY, {when}}}")
        return "".join(f", {part}" for part in parts)


@dataclass(frozen=True)
class StagedStage:
    """A stage with the clusters of these names; ``approvers``: so many must let it begin, by the ``rule``.

    It waits for so many minutes ``after`` the stages before it, and if it is ``checked`` for a check run, or
    if it is ``asked`` for an endpoint, or if it is ``measured`` for a workspace or ``alerted`` for no alert
    that fires, or until its clusters are
    ``ready`` for their upgrades.
    """

    name: str
    clusters: tuple[str, ...]
    groups: tuple[StagedGroup, ...]
    approvers: int = 0
    shut: Shut | None = None
    after: int = 0
    checked: bool = False
    asked: bool = False
    measured: bool = False
    alerted: bool = False
    ready: bool = False
    rule: ApprovalRule = ApprovalRule()

    def shut_for(self, start: str) -> Shut | None:
        """Return when something may not start on its clusters, None for a stage without such a time."""
        return self.shut if self.shut is not None and start in self.shut.of else None

    @property
    def gate(self) -> str:
        """The gate in fleet.yaml that it has, or is, if it is the final one; "" for none."""
        parts = [f"after: {self.after}m"] if self.after else []
        parts += [f"commitChecks: [{CHECK}]"] if self.checked else []
        parts += [f"httpChecks: [{ENDPOINT_CHECK}]"] if self.asked else []
        parts += [f"azureMonitorChecks: [{MONITOR_CHECK}]"] if self.measured else []
        parts += [f"alertChecks: [{ALERT_CHECK}]"] if self.alerted else []
        parts += ["upgradeReadiness: true"] if self.ready else []
        return f"{{owner: somebody, reason: a night, {', '.join(parts)}}}" if parts else ""


SYSTEM = "CHANGES"
"""The external system that approves stages."""
FINAL = "(final gate)"
"""What the stage is called that is the gate after the last one."""
CHECK = "smoke"
"""The check run that opens gates."""
ENDPOINT = "https://shop.example.com/healthz"
"""The endpoint that opens gates."""
ENDPOINT_CHECK = (
    f"{{name: shop, url: {ENDPOINT!r}, interval: 30s, consecutiveSuccessLimit: 2, failureLimit: 5}}"
)
WORKSPACE, QUERY = "shop", "errors"
"""The workspace of Azure Monitor that opens gates, and what it is asked."""
MONITOR_CHECK = (
    f"{{name: errors, workspace: {WORKSPACE}, query: {QUERY}, pass: '< 0.01', over: 30m, interval: 30s, "
    "consecutiveSuccessLimit: 2, failureLimit: 5}"
)
SHOP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg-shop"
"""The resource group whose alerts keep gates shut."""
ALERT_CHECK = (
    f"{{name: quiet, scope: {SHOP}, severity: Sev1, interval: 30s, consecutiveSuccessLimit: 2, "
    "failureLimit: 5}"
)
OTHERS = StagedStage("others", (), (StagedGroup(1, 1, 1), StagedGroup(0, 1, 1)))
"""The clusters of a fleet that no stage selects; it has so few that a fifth of them is one."""
Staging = tuple[StagedStage, ...] | None
"""The stages of a fleet; a file without any has the default, and None lets everything start at once."""


NOT_WRITTEN = re.compile(r"fix:|[0-9a-f]{8}:")
"""What the names of stages begin with whose clusters no pause holds, or that release an earlier commit."""
SELECTED, MISTYPED = "quick", "quikc"
"""The strategy that a commit may select, and what somebody writes who mistypes its name."""


def stage_named(staging: Staging, name: str) -> StagedStage | None:
    """Return the stage as written of one of a rollout by its name, None for one of clusters that go back."""
    stages = (*(staging or ()), OTHERS)
    return next((stage for stage in stages if stage.name == NOT_WRITTEN.sub("", name, count=1)), None)


def stage_of(staging: Staging, name: str) -> StagedStage:
    """Return the stage that a cluster is in."""
    return next((stage for stage in staging or () if name in stage.clusters), OTHERS)


def as_yaml(staging: Staging, selectable: Staging = (), final: StagedStage | None = None) -> str:
    """Return the field of fleet.yaml, "" for one that has none; a commit may select other stages.

    ``final`` is the gate after the last stage, but for those that a commit selects.
    """
    if not staging:
        return "  rollout: {allAtOnce: true}\n" if staging is None else ""
    stages = f"[{', '.join(map(_stage, staging))}]"
    behind = f"finalGate: {final.gate}" if final else ""
    text = f"  rollout:\n    stages: {stages}\n" + (f"    {behind}\n" if final else "")
    if selectable:
        other = f"{{name: {SELECTED}, selectable: true, stages: [{', '.join(map(_stage, selectable))}]}}"
        usual = f"{{name: usual, changes: [any], stages: {stages}{', ' if behind else ''}{behind}}}"
        text = f"  rollout:\n    strategies:\n      - {usual}\n      - {other}\n"
    limits = [(stage, stage.shut) for stage in staging if stage.shut]
    windows = [_window(stage, shut) for stage, shut in limits if not shut.freeze]
    freezes = [_freeze(stage, shut) for stage, shut in limits if shut.freeze]
    text += "".join(["    changeWindows:\n", *windows] if windows else [])
    return text + "".join(["    freezes:\n", *freezes] if freezes else [])


def _stage(stage: StagedStage) -> str:
    groups = ", ".join(map(_group, stage.groups))
    select = f"select: {{clusters: [{', '.join(stage.clusters)}]}}"
    asks = f", approval: true, approvers: {stage.approvers}{stage.rule.as_yaml}" if stage.approvers else ""
    gate = f", gate: {stage.gate}" if stage.gate else ""
    return f"{{name: {stage.name}, {select}{asks}{gate}, groups: [{groups}]}}"


def _window(stage: StagedStage, shut: Shut) -> str:
    """Return a daily window that opens when the stage is shut no more, until it is shut again."""
    minutes = (timedelta(days=1) - (shut.ends - shut.starts)) // timedelta(minutes=1)
    when = (
        f'timeZone: UTC, recurrence: FREQ=DAILY, start: "{shut.ends:%H:%M}", duration: {minutes}m{_of(shut)}'
    )
    return f"      - {{name: {stage.name}, select: {{clusters: [{', '.join(stage.clusters)}]}}, {when}}}\n"


def _freeze(stage: StagedStage, shut: Shut) -> str:
    when = f'starts: "{shut.starts.isoformat()}", ends: "{shut.ends.isoformat()}"{_of(shut)}'
    select = f"select: {{clusters: [{', '.join(stage.clusters)}]}}"
    return f"      - {{name: {stage.name}, {select}, {when}, owner: somebody, reason: a holiday}}\n"


def _of(shut: Shut) -> str:
    return "" if shut.of == USUAL else f", appliesTo: [{', '.join(shut.of)}]"


def _group(group: StagedGroup) -> str:
    size = f'clusters: "{group.size}", ' if group.size else ""
    limits = f'maxConcurrency: "{group.most}", failureBudget: "{group.budget}", soak: {group.soak}s'
    success = f', minSuccess: "{group.success}"' if group.success else ""
    return f"{{{size}{limits}{success}}}"
