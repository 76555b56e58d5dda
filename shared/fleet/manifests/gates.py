"""Gates of stages: what a stage waits for when the one before has passed, besides an approval."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictStr, model_validator

from shared.fleet.manifests.arm_types import UtcMoment
from shared.fleet.manifests.base import Manifest, rule
from shared.fleet.manifests.change_windows import Duration, Recurrence, TimeOfDay, TimeZone, Who
from shared.fleet.manifests.endpoint_checks import HttpCheck, PrometheusCheck

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
