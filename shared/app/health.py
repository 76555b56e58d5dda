"""The health of the app: services answer, timers run, sweeps and checks end, records can be read.

A reading asks all services at once, waits for a few seconds at most, and serves all callers of some seconds,
so that probing costs little. A service that does not answer is not asked a second time before the first call
has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

from shared.app.api import schema
from shared.app.api.parts import unreadable_records
from shared.app.api.projection import projected
from shared.app.door import NotReady, enter, time_now
from shared.app.http_result import HttpResult
from shared.app.runs import ENDS, expected_names
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.forms import UnreadableRecord
from shared.frozen import dataclass
from shared.ports import BranchHead, Capability, Ports
from shared.ports.git_host import CREDENTIAL_SOON
from shared.ports.state import TimerRun
from shared.schedules import next_time
from shared.sentences import days_until

# Whether each timer runs at its times, and whether what it asks for comes to its end.

GRACE = timedelta(minutes=5)
"""How long after its time a run may end: an app starts from zero, and a timer may work for minutes."""
WORK = timedelta(hours=1)
"""How long after its time that work may end: it begins within minutes, and waits for Azure's limits."""


@dataclass(frozen=True)
class ServiceState:
    """A service that the app needs, and what is wrong with it, "" for nothing."""

    name: str
    problem: str

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.problem


@dataclass(frozen=True)
class TimerState(ServiceState):
    """A timer: when it ran last, and when it is due."""

    schedule: str
    last_run: datetime | None
    due: datetime | None


@dataclass(frozen=True)
class CredentialState(ServiceState):
    """A credential that ends; nothing is wrong with it while there is time."""

    expires: datetime


def expected_runs(ports: Ports) -> Mapping[str, TimerRun]:
    """Return what is stored of each timer of the app, in one read.

    One of which nothing is stored, as in a new deployment, is expected from now on, and that is stored: it is
    late when its first time after that has passed.
    """
    runs = dict(ports.state.timer_runs())
    new = [name for name in expected_names(ports.config.timers) if name not in runs]
    if new:
        now = time_now(ports)
        ports.state.expect_timers(new, now)
        runs |= {name: TimerRun(now, ran=False) for name in new}
    return runs


def timer_state(
    name: str, schedule: str, run: TimerRun, now: datetime, end: TimerRun | None = None
) -> TimerState:
    """Return how a timer does; ``run`` is what is stored of it, ``end`` of what it asks for."""
    last = run.at if run.ran else None
    due = next_time(schedule, run.at)
    missed = f"its run of {due:%Y-%m-%d %H:%M:%S} UTC did not come to its end" if due + GRACE < now else ""
    return TimerState(name, missed or _endless(name, schedule, end, now), schedule, last, due)


def _endless(name: str, schedule: str, end: TimerRun | None, now: datetime) -> str:
    """Return that what a timer asks for does not come to its end, "" where it does."""
    if end is None:
        return ""
    due = next_time(schedule, end.at)
    if due + WORK >= now:
        return ""
    last = f"the last end was at {end.at:%Y-%m-%d %H:%M:%S} UTC" if end.ran else "none has ended yet"
    return f"the {name} of {due:%Y-%m-%d %H:%M:%S} UTC did not come to its end; {last}"


log = logging.getLogger(__name__)

ANSWER_SECONDS = 3.0
"""How long the services have to answer, all together."""
REUSED_SECONDS = 15.0
"""For how long a reading serves callers: at most four calls a minute to each service from an instance."""
READ_SHARE = 20
"""After how many times its own duration the records are read again: in a large fleet, that is a minute."""
TABLES, CLOCK = "Table Storage", "Clock"
_RECORDS = "records"


@dataclass(frozen=True)
class HealthReading:
    """What was found at a time; ``credentials`` are those whose end a service has stated.

    ``lacks`` says what the git host does not offer, and what is lost. ``unreadable`` records are of single
    clusters, and the like: None before this instance has read them. ``paused`` is the pause that lasts, ""
    for none. None of these makes an instance less ready.
    """

    at: datetime
    services: Sequence[ServiceState]
    timers: Sequence[TimerState]
    credentials: Sequence[CredentialState] = ()
    unreadable: Sequence[UnreadableRecord] | None = None
    lacks: Sequence[str] = ()
    paused: str = ""

    @property
    def problems(self) -> Mapping[str, str]:
        """What is wrong, by the name of the service or timer."""
        services = {service.name: service.problem for service in self.services if service.problem}
        return services | {timer.name: timer.problem for timer in self.timers if timer.problem}

    @property
    def ready(self) -> bool:
        """Whether every service answers and no timer is late."""
        return not self.problems


class Health:
    """Reads the health of one instance of the app; safe to share between threads."""

    def __init__(self, ports: Ports, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._ports, self._answer_seconds = ports, answer_seconds
        self._lock = Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._calls: dict[str, Future[Any]] = {}
        self._last: tuple[float, HealthReading] | None = None
        self._unreadable: Sequence[UnreadableRecord] | None = None
        self._paused = ""
        self._read_at = 0.0

    def read(self, *, records: bool = True) -> HealthReading:
        """Return the last reading, or a new one if that is too old; never raises.

        Without ``records`` it looks for none that cannot be read, which takes long in a large fleet.
        """
        with self._lock:
            elapsed = self._ports.elapsed()
            if self._last is None or elapsed - self._last[0] >= REUSED_SECONDS:
                self._last = elapsed, self._new_reading(records)
            return self._last[1]

    def _new_reading(self, with_records: bool) -> HealthReading:
        ports, host = self._ports, self._ports.git_host
        probes: dict[str, Callable[[], Any]] = {
            CLOCK: lambda: enter(ports),
            TABLES: lambda: expected_runs(ports),
            host.name: lambda: host.read_head(ports.config.branch),
            **{name: probe.probe for name, probe in ports.services.probes.items()},
        }
        records: dict[str, Callable[[], Any]] = (
            {_RECORDS: self._read_records} if with_records and ports.elapsed() >= self._read_at else {}
        )
        answers, problems = self._ask({**probes, **records})
        now, runs = time_now(ports), answers.get(TABLES)
        services = [ServiceState(name, problems.get(name, "")) for name in probes]
        timers = [
            timer_state(name, schedule, runs[name], now, runs.get(ENDS.get(name, "")))
            if runs is not None
            else TimerState(name, f"not known, because {TABLES} does not answer", schedule, None, None)
            for name, schedule in ports.config.timers.items()
        ]
        credentials = credentials_of(host.credential, answers.get(host.name), now)
        lacks = [capability.value for capability in Capability if capability not in host.capabilities]
        known = self._unreadable, lacks, self._paused
        return HealthReading(now, services, timers, credentials, *known)

    def _read_records(self) -> None:
        """Read the records; what takes longer, as the first time in a large fleet, is for a later reading."""
        began = self._ports.elapsed()
        self._unreadable = self._ports.state.unreadable()
        self._paused = str(self._ports.state.fleet().paused(self._ports.clock()) or "")
        ended = self._ports.elapsed()
        self._read_at = ended + READ_SHARE * (ended - began)

    def _ask(self, probes: Mapping[str, Callable[[], Any]]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the answers and the problems of the services, each by name."""
        executor = self._executor = self._executor or ThreadPoolExecutor(len(probes) + 1, "health")
        asked = [name for name in probes if name not in self._calls or self._calls[name].done()]
        self._calls |= {name: executor.submit(probes[name]) for name in asked}
        ended, _ = wait(self._calls.values(), timeout=self._answer_seconds)
        answers, problems = {}, {}
        for name, call in self._calls.items():
            if name not in asked or call not in ended:
                problems[name] = f"no answer within {self._answer_seconds:g} s"
                continue
            try:
                answers[name] = call.result()
            except NotReady as error:
                problems[name] = str(error)
            except ReconcileError as error:
                problems[name] = f"{error.kind}: {error}"
            except Exception as error:
                log.exception("%s: the check has failed", name)
                problems[name] = f"the check has failed: {type(error).__name__}"
        return answers, problems


def credentials_of(name: str, head: BranchHead | None, now: datetime) -> Sequence[CredentialState]:
    """Return the token for the git host, where that says when it ends. It stops nothing before that."""
    expires = head.credential_expires if head else None
    if expires is None:
        return ()
    ends = f"ends {days_until(expires.astimezone(UTC).date(), now.date())}" if expires > now else "has ended"
    problem = f"{ends}: create another one and set it as {name}, then deploy"
    soon = expires - now <= CREDENTIAL_SOON
    return (CredentialState(name, problem if soon else "", expires),)


def health_view(reading: HealthReading) -> HttpResult:
    """Return all that was found, with the status 503 for an app that is not ready."""
    unreadable = None if reading.unreadable is None else unreadable_records(reading.unreadable)
    body = projected(schema.HealthView, reading, live=True, checkedAt=reading.at, unreadable=unreadable)
    return HttpResult(200 if reading.ready else 503, body)


def ready_view(reading: HealthReading) -> HttpResult:
    """Return for anybody whether the app is ready, and nothing that only its operators should know."""
    body: schema.Readiness = {"live": True, "ready": reading.ready}
    return HttpResult(200 if reading.ready else 503, body)
