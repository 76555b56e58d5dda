"""How a change reaches the clusters of a fleet: stages in order, and groups of clusters inside a stage."""

from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from shared.language.model.arm_types import UtcMoment
from shared.language.model.base import Manifest, ObjectName, Selector, rule, shown, stated_rule
from shared.language.model.change_windows import (
    UNITS,
    ChangeWindow,
    Duration,
    FreezeSpec,
    Recurrence,
    TimeOfDay,
    TimeZone,
    Who,
    span_of,
)

# Gates of stages: an approval, a time, and checks of GitHub, an HTTP endpoint or a Prometheus.

# Checks of gates that ask an address: an HTTP endpoint, and a Prometheus.
#
# ``interval``, ``failureLimit`` and ``consecutiveSuccessLimit`` have the names and meanings of a metric of
# an AnalysisTemplate of Argo Rollouts, ``thresholdRange`` those of a metric of a Canary of Flagger.

_SOONEST, _LATEST = timedelta(seconds=30), timedelta(hours=1)
_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"

CheckUrl = Annotated[
    StrictStr,
    Field(max_length=300),
    rule(
        rf"https://{_HOST}(/[A-Za-z0-9._~%+-]+)*/?",
        "an https:// address without user, query and fragment, such as https://shop.example.com/healthz",
    ),
]


@lru_cache(maxsize=256)
def _interval(value: str) -> str:
    known = value[:-1].isascii() and value[:-1].isdigit() and len(value) < 7 and value[-1:] in UNITS
    if not known or not _SOONEST <= span_of(value) <= _LATEST:
        raise ValueError(f"must be {_INTERVAL}, got {shown(value)}")
    return value


_INTERVAL = "a number with one unit, from 30s to 1h"
Interval = Annotated[StrictStr, AfterValidator(_interval), stated_rule(_INTERVAL)]
Threshold = Annotated[StrictFloat, Field(allow_inf_nan=False)]


class _GateCheck(Manifest):
    name: ObjectName
    """The name of the check."""
    url: CheckUrl
    """The address, whose host is one of the app setting ``ROLLOUT_CHECK_HOSTS``."""
    interval: Interval = "1m"
    """How long after an answer the check is asked again."""
    consecutive_success_limit: Annotated[StrictInt, Field(ge=1, le=20)] = 1
    """After how many consecutive successes the check has passed."""
    failure_limit: Annotated[StrictInt, Field(ge=0, le=20)] = 3
    """How many failures there may be; after one more the check is not asked again, and the stage waits."""


class HttpCheck(_GateCheck):
    """An endpoint that must answer a GET with a status; no redirect is followed."""

    status: Annotated[StrictInt, Field(ge=200, le=599)] = 200
    """The status of a success; any other one is a failure."""


class ThresholdRange(Manifest):
    """The range of a success; what is no number is in no range."""

    min: Threshold | None = None
    """The least value."""
    max: Threshold | None = None
    """The largest value."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("needs min or max; without thresholdRange any value is a success")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min must not be above max")
        return self


class PrometheusCheck(_GateCheck):
    """A query that a Prometheus must answer with a scalar or a vector.

    ``/api/v1/query`` is added to its address.
    """

    query: Annotated[StrictStr, Field(min_length=1, max_length=1000)]
    """The query, in PromQL."""
    threshold_range: ThresholdRange | None = None
    """The range in which every value of the answer must be; by default there must be at least one value."""


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

    github_checks: Annotated[tuple[CheckName, ...], Field(max_length=5)] = ()
    """The names of check runs on GitHub that must have succeeded for the commit of the rollout."""
    http_checks: Annotated[tuple[HttpCheck, ...], Field(max_length=3)] = ()
    """The endpoints that must answer with a status."""
    prometheus_checks: Annotated[tuple[PrometheusCheck, ...], Field(max_length=3)] = ()
    """The queries that a Prometheus must answer with values in a range."""

    upgrade_readiness: StrictBool = False
    """Whether the stage waits until nothing is known that blocks the upgrades of its clusters: budgets, pods,
    webhooks, APIs. It waits only for a commit that changes versions of Kubernetes or of node images."""

    @property
    def opens_by_itself(self) -> bool:
        """Whether it has something of its own to wait for."""
        return self.after is not None or self.not_before is not None or bool(self._names)

    @property
    def endpoint_checks(self) -> tuple[HttpCheck | PrometheusCheck, ...]:
        """The checks that ask an address."""
        return (*self.http_checks, *self.prometheus_checks)

    @property
    def _names(self) -> list[str]:
        return [
            *dict.fromkeys(self.github_checks),
            *(endpoint_check.name for endpoint_check in self.endpoint_checks),
            *([UPGRADE_READINESS] if self.upgrade_readiness else ()),
        ]

    @model_validator(mode="after")
    def _has_each_name_once(self) -> Self:
        names = self._names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"there are several checks {twice}; a wait names one of them")
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
    default every one that can take part."""
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
                "gate: it waits for nothing; write approval: true, after, notBefore, githubChecks, "
                "httpChecks, prometheusChecks or upgradeReadiness: true"
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
        for names, what in (
            ([change_window.name for change_window in self.change_windows], "change windows"),
            ([freeze.name for freeze in self.freezes], "freezes"),
        ):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"there are several {what} {twice}; a wait names one of them")
        return self

    @model_validator(mode="after")
    def _has_one_strategy_for_each_kind(self) -> Self:
        if self.strategies and self.stages:
            raise ValueError("stages and strategies: write the stages in a strategy with changes: [any]")
        if self.strategies and self.final_gate:
            raise ValueError("finalGate and strategies: write the gate in each strategy that has one")
        names = [strategy.name for strategy in self.strategies]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"there are several strategies {twice}; a rollout names one of them")
        labels = [strategy.pull_request_label for strategy in self.strategies if strategy.pull_request_label]
        twice = next((name for name in labels if labels.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"strategies: the label {twice} selects several; a rollout has one strategy")
        kinds = [kind for strategy in self.strategies for kind in strategy.changes]
        twice = next((kind for kind in kinds if kinds.count(kind) > 1), None)
        if twice is not None:
            raise ValueError(f"strategies: {twice} is named more than once; only the first would count")
        if self.strategies and "any" not in kinds:
            raise ValueError("strategies: one of them must have changes: [any], for all other changes")
        return self


def check_final_gate(gate: GateSpec | None) -> None:
    """Raise ValueError for a gate after the last stage that waits for nothing, or for no cluster."""
    if gate is not None and gate.upgrade_readiness:
        raise ValueError("finalGate: upgradeReadiness is for a stage: no cluster waits for this gate")
    if gate is not None and not gate.opens_by_itself:
        raise ValueError(
            "finalGate: it waits for nothing; write after, notBefore, githubChecks, httpChecks or "
            "prometheusChecks"
        )


def check_stages(stages: tuple[StageSpec, ...]) -> None:
    """Raise ValueError unless each stage has a name of its own."""
    names = [stage.name for stage in stages]
    for name in names:
        if name in RESERVED:
            raise ValueError(f"{name} is the name of a stage of Roadstead's own; choose another one")
        if names.count(name) > 1:
            raise ValueError(f"there are several stages {name}; an approval names one of them")
