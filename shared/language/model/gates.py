"""Gates of stages: an approval, a time, and checks of GitHub, an HTTP endpoint or a Prometheus."""

from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictFloat, StrictInt, StrictStr, model_validator

from shared.language.model.arm_types import UtcMoment
from shared.language.model.base import Manifest, ObjectName, rule, shown, stated_rule
from shared.language.model.change_windows import (
    UNITS,
    Duration,
    Recurrence,
    TimeOfDay,
    TimeZone,
    Who,
    span_of,
)

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


class _Asked(Manifest):
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


class HttpCheck(_Asked):
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


class PrometheusCheck(_Asked):
    """A query that a Prometheus must answer with a scalar or a vector.

    ``/api/v1/query`` is added to its address.
    """

    query: Annotated[StrictStr, Field(min_length=1, max_length=1000)]
    """The query, in PromQL."""
    threshold_range: ThresholdRange | None = None
    """The range in which every value of the answer must be; by default there must be at least one value."""


EVERY_APPROVER = "Approver"
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


class Gate(Manifest):
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
        return [*dict.fromkeys(self.github_checks), *(each.name for each in self.endpoint_checks)]

    @model_validator(mode="after")
    def _has_each_name_once(self) -> Self:
        names = self._names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"there are several checks {twice}; a wait names one of them")
        return self
