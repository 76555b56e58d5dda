"""When Azure may maintain a cluster: ARM's maintenanceConfigurations, resources below the cluster.

The step "maintenance-windows" writes those that the manifest names. Source of the rules:
learn.microsoft.com/azure/aks/planned-maintenance.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from shared.language.model.arm_types import Date, Moment, Section, between
from shared.language.model.base import rule

Day = Literal["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]


class TimeInWeek(Section):
    """Hours of a day of the week in which Azure may maintain the cluster."""

    day: Day
    """The day of the week."""
    hour_slots: Annotated[tuple[Annotated[StrictInt, between(0, 23)], ...], Field(min_length=1)]
    """Hours of that day, in UTC; 1 is from 1:00 to 2:00."""


class TimeSpan(Section):
    """A time in which Azure must not maintain the cluster."""

    start: Moment
    """When it begins."""
    end: Moment
    """When it ends."""


class DateSpan(Section):
    """Days on which Azure must not maintain the cluster."""

    start: Date
    """The first day."""
    end: Date
    """The last day."""

    @model_validator(mode="after")
    def _forwards(self) -> Self:
        if self.start > self.end:
            raise ValueError(f"start {self.start} is after end {self.end}")
        return self


class Daily(Section):
    """A daily schedule."""

    interval_days: Annotated[StrictInt, between(1, 7)]
    """The number of days between two windows."""


class Weekly(Section):
    """A weekly schedule."""

    interval_weeks: Annotated[StrictInt, between(1, 4)]
    """The number of weeks between two windows."""
    day_of_week: Day
    """The day."""


class AbsoluteMonthly(Section):
    """A monthly schedule, on a day of the month."""

    interval_months: Annotated[StrictInt, between(1, 6)]
    """The number of months between two windows."""
    day_of_month: Annotated[StrictInt, between(1, 31)]
    """The day of the month."""


class RelativeMonthly(Section):
    """A monthly schedule, on the first, second ... weekday."""

    interval_months: Annotated[StrictInt, between(1, 6)]
    """The number of months between two windows."""
    week_index: Literal["First", "Second", "Third", "Fourth", "Last"]
    """Which of the month's weekdays of that name."""
    day_of_week: Day
    """The weekday."""


class Schedule(Section):
    """One kind of recurrence."""

    daily: Daily | None = None
    weekly: Weekly | None = None
    absolute_monthly: AbsoluteMonthly | None = None
    relative_monthly: RelativeMonthly | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = (self.daily, self.weekly, self.absolute_monthly, self.relative_monthly)
        if sum(kind is not None for kind in kinds) != 1:
            raise ValueError("takes one of daily, weekly, absoluteMonthly and relativeMonthly")
        return self


class MaintenanceWindow(Section):
    """A recurring window."""

    schedule: Schedule
    duration_hours: Annotated[StrictInt, between(4, 24)]
    """How long the window lasts, in hours."""
    start_time: Annotated[
        StrictStr, rule(r"([01][0-9]|2[0-3]):[0-5][0-9]", 'a time in quotes, such as "01:00"')
    ]
    """When the window begins, in the time zone of utcOffset."""
    start_date: Date | None = None
    """The first day on which the window applies; today by default."""
    utc_offset: (
        Annotated[StrictStr, rule(r"[+-](0[0-9]|1[0-4]):[0-5][0-9]", 'an offset in quotes, such as "+01:00"')]
        | None
    ) = None
    """The offset of startTime from UTC; +00:00 by default."""
    not_allowed_dates: tuple[DateSpan, ...] | None = None
    """Days on which Azure must not maintain the cluster."""


class MaintenanceConfiguration(Section):
    """One maintenance configuration; its name states its purpose."""

    name: Literal["default", "aksManagedAutoUpgradeSchedule", "aksManagedNodeOSUpgradeSchedule"]
    """The purpose: AKS's weekly releases (default), upgrades of Kubernetes, or upgrades of the nodes'
    operating system."""
    maintenance_window: MaintenanceWindow | None = None
    time_in_week: tuple[TimeInWeek, ...] | None = None
    """Hours of the week for the name default."""
    not_allowed_time: tuple[TimeSpan, ...] | None = None
    """Times in which Azure must not maintain the cluster, for the name default."""

    @model_validator(mode="after")
    def _window_of_the_right_kind(self) -> Self:
        weekly = self.time_in_week or self.not_allowed_time
        if self.name != "default" and weekly:
            raise ValueError(
                f"timeInWeek and notAllowedTime are for the name default; {self.name} takes maintenanceWindow"
            )
        if not weekly and self.maintenance_window is None:
            raise ValueError("needs a maintenanceWindow")
        if self.name == "default" and self.maintenance_window and not self.maintenance_window.schedule.weekly:
            raise ValueError(
                "the name default takes a weekly schedule; write schedule.weekly, or choose "
                "aksManagedAutoUpgradeSchedule or aksManagedNodeOSUpgradeSchedule"
            )
        return self
