"""When Azure may maintain a cluster, and when it sleeps: AKS stops it, or its User node pools, for a time.

The step "maintenance-windows" writes the maintenanceConfigurations that the manifest names, resources of ARM
below the cluster. Source of their rules: learn.microsoft.com/azure/aks/planned-maintenance.

The moments of a cron expression are those of the clock of its time zone. An hour that the clock skips counts
as the one after it, and of an hour that comes twice the first one counts, as for change windows.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, StrictInt, StrictStr, model_validator

from shared.language.model.arm_types import Date, Moment, Section, between
from shared.language.model.base import Labels, Manifest, rule, shown, stated_rule
from shared.language.model.change_windows import Duration, TimeZone, span_of

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


_SHIFT = timedelta(hours=3)
"""More than a clock is ever put forward or back; around that, moments are not in the order of the clock."""


def next_moment(cron: str, time_zone: str, after: datetime) -> datetime:
    """Return the first moment of an expression after a time; raise LookupError for none in 50 years."""
    return _next(cron, time_zone, after.replace(second=0, microsecond=0))


@lru_cache(maxsize=4096)
def _next(cron: str, time_zone: str, after: datetime) -> datetime:
    zone, found = ZoneInfo(time_zone), None
    for wall in CronSim(cron, _wall(after, zone) - _SHIFT):
        if found is not None and wall > _wall(found, zone) + _SHIFT:
            return found
        moment = wall.replace(tzinfo=zone).astimezone(UTC)
        if moment > after:
            found = min(moment, found or moment)
    raise LookupError(cron)


def last_moment(cron: str, time_zone: str, until: datetime) -> datetime:
    """Return the last moment of an expression at or before a time; raise LookupError for none in 50 years."""
    return _last(cron, time_zone, until.replace(second=0, microsecond=0))


@lru_cache(maxsize=4096)
def _last(cron: str, time_zone: str, until: datetime) -> datetime:
    zone, found = ZoneInfo(time_zone), None
    for wall in CronSim(cron, _wall(until, zone) + _SHIFT, reverse=True):
        if found is not None and wall < _wall(found, zone) - _SHIFT:
            return found
        moment = wall.replace(tzinfo=zone).astimezone(UTC)
        if moment <= until:
            found = max(moment, found or moment)
    raise LookupError(cron)


def _wall(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)


_HOW = 'five fields of cron, minute hour day month weekday, such as "0 19 * * 1-5"'
_FIRST = datetime(2024, 1, 1)  # noqa: DTZ001 - the clock of whatever zone
SHORTEST = timedelta(minutes=30)
"""AKS asks to wait 15 to 30 minutes between a stop and a start (start-stop-cluster)."""
LONGEST = timedelta(days=330)
"""AKS keeps the state of a stopped cluster for 12 months (start-stop-cluster)."""
MOST_EARLY = timedelta(hours=4)
_MOST_AN_HOUR = 2
_PAIRS = 10
"""So many stops of a schedule are compared with the starts that follow them."""


@lru_cache(maxsize=256)
def _cron(value: str) -> str:
    try:
        cron = CronSim(value, _FIRST)
        possible = len(value.split()) == 5 and next(cron, None) is not None
    except CronSimError:
        possible = False
    if not possible:
        raise ValueError(f"must be {_HOW}, got {shown(value)}")
    if len(cron.minutes) > _MOST_AN_HOUR:  # each moment is looked at, in plans that others wait for
        raise ValueError(f"must come twice an hour at most, got {shown(value)}")
    return value


Cron = Annotated[StrictStr, AfterValidator(_cron), stated_rule(_HOW)]


class SleepSchedule(Manifest):
    """When a cluster stops, and when it starts again."""

    stop: Cron
    """When the cluster stops, as cron has it."""
    start: Cron
    """When the cluster starts, as cron has it."""
    time_zone: TimeZone
    """The time zone of ``stop`` and ``start``; both follow its daylight saving time."""


class Sleep(Manifest):
    """When a cluster sleeps: AKS stops it, or its User node pools, and starts it again."""

    schedules: Annotated[tuple[SleepSchedule, ...], Field(max_length=10)] = ()
    """When it stops and starts; of several, what was last counts. Without any, only an operator stops it."""
    holidays: Annotated[tuple[Date, ...], Field(max_length=200)] = ()
    """Days on which it sleeps all day, in the time zone of the first schedule."""
    keep_awake: Labels = Field(default_factory=dict)
    """A cluster with all of these labels in metadata.labels follows no schedule: it is awake."""
    changes: Literal["wait", "wake"] = "wait"
    """What a change does that comes while the cluster sleeps: it waits for the start, or wakes it; wait by
    default. A change that would wait for more than three days wakes it."""
    start_early: Duration | None = None
    """How long before ``start`` the cluster is started, to be there when people arrive; 4h at most."""
    scope: Literal["cluster", "pools"] = "cluster"
    """What stops: the whole cluster by default, or its User node pools. System pools and the control plane
    run on then: the API server answers at night, and pods that find no node are pending."""

    @property
    def of_pools(self) -> bool:
        """Whether node pools stop, and the cluster does not."""
        return self.scope == "pools"

    @property
    def early(self) -> timedelta:
        """How long before its time a cluster is started."""
        return span_of(self.start_early) if self.start_early else timedelta()

    @model_validator(mode="after")
    def _sleeps_neither_too_short_nor_too_long(self) -> Self:
        if self.early > MOST_EARLY:
            raise ValueError(f"startEarly is 4h at most, got {self.start_early}")
        for number, schedule in enumerate(self.schedules):
            problem = _problem(schedule, self.early)
            if problem:
                raise ValueError(f"schedules[{number}]: {problem}")
        return self


@lru_cache(maxsize=256)
def _problem(schedule: SleepSchedule, early: timedelta) -> str:
    """Return what is wrong with the times of a schedule, "" for nothing."""
    zone, at = schedule.time_zone, _FIRST.replace(tzinfo=UTC)
    for _ in range(_PAIRS):
        at = next_moment(schedule.stop, zone, at)
        if last_moment(schedule.start, zone, at) == at:
            return f"it stops at {schedule.stop} and starts at {schedule.start}, at one moment"
        start = next_moment(schedule.start, zone, at)
        if start - at > LONGEST:
            return "it sleeps for more than 330 days; AKS keeps the state of a stopped cluster for 12 months"
        if start - early - at < SHORTEST:
            return (
                f"it stops at {schedule.stop} and starts at {schedule.start}, less than 30 minutes later; "
                "AKS asks to wait 15 to 30 minutes between a stop and a start"
            )
        if next_moment(schedule.stop, zone, start) - start < SHORTEST:
            return f"it starts at {schedule.start} and stops at {schedule.stop}, less than 30 minutes later"
    return ""
