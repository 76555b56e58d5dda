"""What triggers each function, from a table: a start of an instance imports no code of a function.

``functions.json`` has the table, as Azure's own ``function.json`` has the trigger of a function. ``make
generate`` writes it from the declarations in ``handlers/``, and a test compares the two. The first call of a
function imports the part of the app that declares it; the first of all builds the ports too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import azure.functions as func

from shared.configuration.settings import App, Settings
from shared.frozen import dataclass
from shared.process_memory import lasting

TABLE = Path(__file__).with_name("functions.json")
WHO = "roadstead_access"
"""The attribute of an HTTP function that says who may call it."""
Run = Callable[[Any], Any]
"""A function of the app: it takes what triggers it."""
PartOf = Callable[[str], Sequence[func.Blueprint]]
"""Returns the functions of a part of the app."""


@dataclass(frozen=True)
class Trigger:
    """What triggers a function: a request to ``route``, a message of ``queue``, or the time."""

    app: App
    part: str
    name: str
    git_host: str = ""
    """The ``GIT_HOST`` with which there is the function, "" for any."""
    route: str = ""
    methods: Sequence[str] = ()
    who: str = ""
    """Who may call it."""
    queue: str = ""
    sessions: bool = False
    schedule: str = ""
    """NCRONTAB, the name of a setting in percent signs, or that of a field of the settings in braces."""


def triggers() -> Sequence[Trigger]:
    """Return the table."""
    return [Trigger(**{**row, "app": App(row["app"])}) for row in json.loads(TABLE.read_text())]


def add_functions(app: func.FunctionApp, settings: Settings, build: Callable[[], PartOf]) -> None:
    """Add the functions of the settings; the first call of any of them calls ``build``."""
    built = _AppParts(build)
    for trigger in triggers():
        if trigger.app in settings.apps and trigger.git_host in ("", settings.git_host):
            add = _add_route if trigger.route else _add_queue if trigger.queue else _add_timer
            add(app, trigger, settings, built.function(trigger))


def by_name(blueprints: Iterable[func.Blueprint]) -> Mapping[str, Any]:
    """Return the functions of blueprints by their names, each with its trigger."""
    # An app would list them too, and warn in the log that it has no HTTP function.
    made = [builder.build() for blueprint in blueprints for builder in blueprint._function_builders]
    return {str(function.get_function_name()): function for function in made}


class _AppParts:
    """The parts of the app that this instance has called."""

    def __init__(self, build: Callable[[], PartOf]) -> None:
        self._build, self._lock = build, RLock()
        self._part_of: PartOf | None = None
        self._parts: dict[str, Mapping[str, Any]] = {}

    def function(self, trigger: Trigger) -> Run:
        """Return a function that is imported by its first call."""

        def run(given: Any) -> Any:
            return self._part(trigger.part)[trigger.name].get_user_function()(given)

        return run

    def _part(self, part: str) -> Mapping[str, Any]:
        with self._lock:
            if part not in self._parts:
                with lasting():
                    self._part_of = self._part_of or self._build()
                    self._parts[part] = by_name(self._part_of(part))
            return self._parts[part]


def _add_route(app: func.FunctionApp, trigger: Trigger, _: Settings, run: Run) -> None:
    def function(req: func.HttpRequest) -> func.HttpResponse:
        return run(req)  # type: ignore[no-any-return]

    setattr(function, WHO, trigger.who)
    route = app.route(trigger.route, methods=trigger.methods, auth_level=func.AuthLevel.ANONYMOUS)
    app.function_name(trigger.name)(route(function))


def _add_queue(app: func.FunctionApp, trigger: Trigger, _: Settings, run: Run) -> None:
    def function(message: func.ServiceBusMessage) -> None:
        run(message)

    messages = app.service_bus_queue_trigger(
        "message",
        "ServiceBus",
        trigger.queue,
        data_type=func.DataType.BINARY,
        is_sessions_enabled=trigger.sessions or None,
    )
    app.function_name(trigger.name)(messages(function))


def _add_timer(app: func.FunctionApp, trigger: Trigger, settings: Settings, run: Run) -> None:
    def function(timer: func.TimerRequest) -> None:
        run(timer)

    schedule = trigger.schedule.format_map(dict(settings))
    times = app.timer_trigger("timer", schedule, run_on_startup=False, use_monitor=False)
    app.function_name(trigger.name)(times(function))
