"""How a change reaches the clusters of a fleet: stages in order, and groups of clusters inside a stage."""

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from shared.language.model.arm_types import UtcMoment
from shared.language.model.base import Manifest, ObjectName, Selector, rule, twice
from shared.language.model.change_windows import (
    ChangeWindow,
    Duration,
    FreezeSpec,
    Recurrence,
    TimeOfDay,
    TimeZone,
    Who,
)
from shared.language.model.stage_checks import (
    AlertCheck,
    AskedCheck,
    AzureMonitorCheck,
    HttpCheck,
    PrometheusCheck,
)

EVERY_APPROVER = "Approver"
UPGRADE_READINESS = "upgradeReadiness"
"""The name of the check that a gate has with this field."""
CheckName = Annotated[StrictStr, Field(min_length=1, max_length=100)]
SystemName = Annotated[
    StrictStr,
    rule(
        r"[A-Z][A-Z0-9_]{0,62}",
        "the name of a system, such as CHANGES, whose key is in a setting; a key does not belong in git",
    ),
]
ApprovalRole = Literal["Approver", "Admin"]


class ApprovalHours(Manifest):
    """The hours in which a stage can be approved; an approval of another time does not count."""

    time_zone: TimeZone
    """The time zone of ``start``; the hours follow its daylight saving time."""
    recurrence: Recurrence
    """On which days they begin, as a recurrence rule."""
    start: TimeOfDay
    """When they begin on these days, in the time zone."""
    duration: Duration
    """How long they last."""


class GateSpec(Manifest):
    """Who answers for what a stage waits for, why, and until when."""

    owner: Who
    """Who is responsible for the gate, and for an approval of the stage."""
    reason: Who
    """Why the stage waits."""
    after: Duration | None = None
    """How long the stage waits once all stages before it have passed."""
    not_before: UtcMoment | None = None
    """The time before which the stage does not begin."""

    commit_checks: Annotated[tuple[CheckName, ...], Field(max_length=5)] = ()
    """The names of checks that must have succeeded for the commit of the rollout: check runs on GitHub, jobs
    and statuses on GitLab, statuses on Azure DevOps."""
    http_checks: Annotated[tuple[HttpCheck, ...], Field(max_length=3)] = ()
    """The endpoints that must answer with a status."""
    prometheus_checks: Annotated[tuple[PrometheusCheck, ...], Field(max_length=3)] = ()
    """The queries that a Prometheus must answer with values in a range."""
    azure_monitor_checks: Annotated[tuple[AzureMonitorCheck, ...], Field(max_length=3)] = ()
    """The queries of workspaces of Azure Monitor whose one series must pass."""
    alert_checks: Annotated[tuple[AlertCheck, ...], Field(max_length=3)] = ()
    """The places in Azure where no alert may fire."""

    upgrade_readiness: StrictBool = False
    """Whether the stage waits until nothing is known that blocks the upgrades of its clusters: budgets, pods,
    webhooks, APIs. It waits only for a commit that changes versions of Kubernetes or of node images."""

    @property
    def opens_by_itself(self) -> bool:
        """Whether it has something of its own to wait for."""
        return self.after is not None or self.not_before is not None or bool(self._names)

    @property
    def asked_checks(self) -> tuple[AskedCheck, ...]:
        """The checks that ask an address or Azure Monitor."""
        return (
            *self.http_checks,
            *self.prometheus_checks,
            *self.azure_monitor_checks,
            *self.alert_checks,
        )

    @property
    def _names(self) -> list[str]:
        return [
            *dict.fromkeys(self.commit_checks),
            *(asked.name for asked in self.asked_checks),
            *([UPGRADE_READINESS] if self.upgrade_readiness else ()),
        ]

    @model_validator(mode="after")
    def _has_each_name_once(self) -> Self:
        name = twice(self._names)
        if name is not None:
            raise ValueError(f"there are several checks {name}; a wait names one of them")
        if UPGRADE_READINESS in {*self.commit_checks, *(asked.name for asked in self.asked_checks)}:
            raise ValueError(f"{UPGRADE_READINESS} is no name for a check; write {UPGRADE_READINESS}: true")
        return self


Number = Annotated[
    StrictStr,
    rule(
        r"[1-9][0-9]{0,4}|([1-9]|[1-9][0-9]|100)%", 'a number or percentage in quotes, such as "2" or "20%"'
    ),
]
NumberOrZero = Annotated[
    StrictStr,
    rule(
        r"[0-9]{1,5}|([0-9]|[1-9][0-9]|100)%",
        'a number or percentage in quotes, such as "0", "2" or "90%"',
    ),
]
Soak = Annotated[StrictStr, rule(r"[0-9]{1,5}[smhd]", 'a number with one unit, such as "30m", "2h" or "1d"')]


ChangeKind = Literal["versions", "nodePools", "platform", "any"]
RESERVED = ("others", "back")
"""The stages of a rollout that no file has: the clusters that no stage selects, and those that go back."""


class GroupSpec(Manifest):
    """A part of a stage; the next group waits until it has passed."""

    clusters: Number | None = None
    """How many clusters of the stage, or what percentage of them, the group has; by default all others."""
    max_concurrency: Number | None = None
    """How many clusters of the group, or what percentage of them, change at the same time; by default
    "1" in a group with ``clusters``, "20%" in any other one."""
    soak: Soak = "0s"
    """How long every cluster of the group must stay Ready before the group passes."""
    min_success: NumberOrZero | None = None
    """How many clusters of the group, or what percentage of them, must be Ready for it to pass; by
    default every one that can take part, and one of a stage in which none can. "0" needs none."""
    failure_budget: Number | None = None
    """The clusters that change, and those that have failed, are never more than this number or
    percentage of the group; once so many have failed, the rollout pauses. By default ``maxConcurrency``."""


class StageSpec(Manifest):
    """A stage of a rollout; the next one waits until all of its groups have passed."""

    name: ObjectName
    """The stage's name."""
    select: Selector = Selector.model_construct()
    """The clusters of the stage; each cluster is in the first stage that selects it."""
    approval: StrictBool = False
    """Whether the stage waits for ``roadstead rollout approve``."""
    approvers: Annotated[StrictInt, Field(ge=1, le=10)] = 1
    """How many different people must approve; a key or an app is none next to a person."""
    approval_by_others: StrictBool = False
    """Whether nobody may approve it who wrote a commit that the rollout brings."""
    approval_expires: Duration | None = None
    """How long an approval counts until the stage starts; by default as long as the rollout."""
    approval_role: ApprovalRole = "Approver"
    """The role that approves it; an Admin always may."""
    approval_hours: ApprovalHours | None = None
    """The hours in which it can be approved; by default at every time."""
    approval_system: SystemName | None = None
    """The external system that may approve it too, by a signed message; the app setting
    ``APPROVAL_KEY_<system>`` has its key."""
    gate: GateSpec | None = None
    """What the stage waits for besides an approval, and who answers for that."""
    groups: tuple[GroupSpec, ...] = ()
    """The groups of the stage, in order; by default one cluster, then all others."""

    @model_validator(mode="after")
    def _asks_before_it_says_whom(self) -> Self:
        given = {"approvers": self.approvers != 1, "approvalByOthers": self.approval_by_others}
        given["approvalExpires"] = self.approval_expires is not None
        given |= {"approvalRole": self.approval_role != "Approver"}
        given |= {"approvalHours": self.approval_hours is not None}
        given |= {"approvalSystem": self.approval_system is not None}
        extra = " and ".join(name for name, written in given.items() if written)
        if extra and not self.approval:
            raise ValueError(f"{extra}: only a stage with approval: true has this")
        if self.approval_system and (self.approval_by_others or self.approval_role != "Approver"):
            raise ValueError(
                "approvalSystem: a system has no role and no address to compare with an author's"
            )
        return self

    @model_validator(mode="after")
    def _has_a_gate_that_waits(self) -> Self:
        if self.gate is not None and not (self.approval or self.gate.opens_by_itself):
            raise ValueError(
                "gate: it waits for nothing; write approval: true, after, notBefore, commitChecks, "
                "httpChecks, prometheusChecks, azureMonitorChecks, alertChecks or upgradeReadiness: true"
            )
        return self


class Strategy(Manifest):
    """Stages for the commits that make changes of some kinds."""

    name: ObjectName
    """The strategy's name."""
    changes: tuple[ChangeKind, ...] = ()
    """The kinds of changes: ``versions`` are those of Kubernetes and of node images, ``nodePools`` all others
    of node pools, ``platform`` is Flux, bootstrap secrets and systems, and ``any`` is what no other
    strategy names."""
    selectable: StrictBool = False
    """Whether a commit may select the strategy with the trailer ``Rollout: NAME``, whatever it changes."""
    pull_request_label: Annotated[StrictStr, Field(min_length=1, max_length=50)] | None = None
    """A label of the merged pull request that selects the strategy as the trailer does."""
    stages: tuple[StageSpec, ...] = ()
    """The stages, in order; by default one for each environment."""
    final_gate: GateSpec | None = None
    """What the rollout waits for after its last stage, before it is completed."""

    @property
    def may_be_selected(self) -> bool:
        """Whether a commit, or its pull request, may select the strategy."""
        return self.selectable or self.pull_request_label is not None

    @model_validator(mode="after")
    def _has_each_stage_once(self) -> Self:
        check_stages(self.stages)
        check_final_gate(self.final_gate)
        return self

    @model_validator(mode="after")
    def _is_for_some_commits(self) -> Self:
        if not (self.changes or self.may_be_selected):
            raise ValueError("it needs changes, selectable: true or pullRequestLabel; no commit has it")
        return self


class RolloutSpec(Manifest):
    """In which order, and how many at a time, the clusters that a commit changes are changed."""

    all_at_once: StrictBool = False
    """Whether every cluster that a commit changes starts at once, without stages, windows and freezes."""
    stages: tuple[StageSpec, ...] = ()
    """The stages, in order; by default one for each environment, in the order of ``environments``. Clusters
    that no stage selects are in a last one, ``others``."""
    final_gate: GateSpec | None = None
    """What the rollout waits for after its last stage, before it is completed: such as checks of the whole
    fleet. No cluster waits for it."""
    strategies: tuple[Strategy, ...] = ()
    """Instead of ``stages``: the stages by kinds of changes. A commit has the strategy that it selects, and
    otherwise the first one that names a kind of change that it makes."""
    change_windows: tuple[ChangeWindow, ...] = ()
    """When changes may start, and what else each window is for; a cluster without a window has no limit."""
    freezes: tuple[FreezeSpec, ...] = ()
    """When no change starts, and nothing else that each freeze is for."""

    @model_validator(mode="after")
    def _has_no_order_without_stages(self) -> Self:
        given = {"stages": bool(self.stages), "strategies": bool(self.strategies)}
        given |= {"changeWindows": bool(self.change_windows), "freezes": bool(self.freezes)}
        given |= {"finalGate": self.final_gate is not None}
        extra = " and ".join(name for name, written in given.items() if written)
        if extra and self.all_at_once:
            text = "a fleet with allAtOnce: true has none; one stage of one group with"
            raise ValueError(f'{extra}: {text} maxConcurrency: "100%" is as fast')
        return self

    @model_validator(mode="after")
    def _has_each_name_once(self) -> Self:
        check_stages(self.stages)
        check_final_gate(self.final_gate)
        for times, what in ((self.change_windows, "change windows"), (self.freezes, "freezes")):
            name = twice(time.name for time in times)
            if name is not None:
                raise ValueError(f"there are several {what} {name}; a wait names one of them")
        return self

    @model_validator(mode="after")
    def _has_one_strategy_for_each_kind(self) -> Self:
        if self.strategies and self.stages:
            raise ValueError("stages and strategies: write the stages in a strategy with changes: [any]")
        if self.strategies and self.final_gate:
            raise ValueError("finalGate and strategies: write the gate in each strategy that has one")
        name = twice(strategy.name for strategy in self.strategies)
        if name is not None:
            raise ValueError(f"there are several strategies {name}; a rollout names one of them")
        label = twice(filter(None, (strategy.pull_request_label for strategy in self.strategies)))
        if label is not None:
            raise ValueError(f"strategies: the label {label} selects several; a rollout has one strategy")
        kinds = [kind for strategy in self.strategies for kind in strategy.changes]
        kind = twice(kinds)
        if kind is not None:
            raise ValueError(f"strategies: {kind} is named more than once; only the first would count")
        if self.strategies and "any" not in kinds:
            raise ValueError("strategies: one of them must have changes: [any], for all other changes")
        return self


def check_final_gate(gate: GateSpec | None) -> None:
    """Raise ValueError for a gate after the last stage that waits for nothing, or for no cluster."""
    if gate is not None and gate.upgrade_readiness:
        raise ValueError("finalGate: upgradeReadiness is for a stage: no cluster waits for this gate")
    if gate is not None and not gate.opens_by_itself:
        raise ValueError(
            "finalGate: it waits for nothing; write after, notBefore, commitChecks, httpChecks or "
            "prometheusChecks"
        )


def check_stages(stages: tuple[StageSpec, ...]) -> None:
    """Raise ValueError unless each stage has a name of its own."""
    names = [stage.name for stage in stages]
    for name in names:
        if name in RESERVED:
            raise ValueError(f"{name} is the name of a stage of Roadstead's own; choose another one")
    again = twice(names)
    if again is not None:
        raise ValueError(f"there are several stages {again}; an approval names one of them")
