"""An app examines itself: its clock, its identity, its way to every service, as its own queue asks.

Only control has HTTP, and each app has an identity of its own. So what an app may do is found by that app. It
saves one record, whatever it finds, also where the door is shut.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from shared.app.door import NotReady, enter, newer_epoch, time_now
from shared.cluster.failures.errors import ReconcileError
from shared.frozen import dataclass
from shared.ports import Ports
from shared.ports.state.examinations import Examination, Finding
from shared.version import VERSION

log = logging.getLogger(__name__)

APPS: Mapping[str, str] = {"control": "plans", "worker": "jobs", "deleter": "deletes"}
"""A queue that each app alone receives from."""
SENDS: Mapping[str, tuple[str, ...]] = {
    "control": ("plans", "previews", "jobs", "changes", "deletes"),
    "worker": ("plans", "previews", "jobs", "changes", "deletes"),
    "deleter": ("plans", "jobs", "changes", "deletes"),
}
"""The queues to which the identity of each app may send, as ``infra/servicebus.bicep`` has it."""
NAME = "FUNCTION_APP_NAME"
_DEPLOY = "run the deployment again: it assigns the roles and writes the settings"


@dataclass(frozen=True)
class Part:
    """A part of an examination: what is asked, how, and what mends it."""

    what: str
    ask: Callable[[], object]
    remedy: str


def function_app(app: str) -> str:
    """Return how documents call the function app."""
    return NAME if app == "control" else f"{NAME}-{app}"


def examine(app: str, ports: Ports) -> None:
    """Save what an app finds of itself; a problem that lasts keeps the time of its first examination."""
    now = time_now(ports)
    former = {known.app: known for known in ports.state.examinations()}.get(app)
    since = {(finding.what, finding.problem): finding.since for finding in former.findings} if former else {}
    problems = ((part, _problem_of(part)) for part in parts_of(app, ports))
    findings = tuple(
        Finding(part.what, problem, part.remedy, since.get((part.what, problem), now))
        for part, problem in problems
        if problem
    )
    for finding in findings:
        log.warning("%s: %s: %s; %s", app, finding.what, finding.problem, finding.remedy)
    ports.state.save_examination(Examination(app, now, VERSION, dict(ports.config.settings), findings))


def parts_of(app: str, ports: Ports) -> Iterator[Part]:
    """Yield what an app asks of itself."""
    name, host = function_app(app), ports.git_host
    restart = f"`az functionapp restart --name {name}`"
    yield Part("clock", lambda: enter(ports), restart)
    if ports.config.app_group is not None:
        yield Part(
            "epoch of the tables",
            lambda: _is_current(ports),
            f"{_DEPLOY}; where tables were lost or restored, docs/how-to/recover-from-a-disaster.md",
        )
    yield Part(
        host.name,
        lambda: host.read_head(ports.config.branch),
        f"renew {host.credential}, or give it access to the repository, and restart {name}",
    )
    for queue in SENDS[app]:
        sender = getattr(ports, queue)
        yield Part(f"queue {queue}", sender.probe, f"{_DEPLOY}; {name} needs Azure Service Bus Data Sender")
    for service, probe in ports.probes.items():
        yield Part(service, probe.probe, f"`az functionapp identity show --name {name}`; {_DEPLOY}")


def _is_current(ports: Ports) -> None:
    newer = newer_epoch(ports.state.fleet(), ports)
    if newer:
        raise NotReady(f"the tables are older than the epoch {newer}, so no job goes on", ports.clock())


def _problem_of(part: Part) -> str:
    """Return what is wrong with a part, "" for nothing; never raises."""
    try:
        part.ask()
    except NotReady as error:
        return str(error)
    except ReconcileError as error:
        return f"{error.kind}: {error}"
    except Exception as error:
        log.exception("%s: the examination has failed", part.what)
        return f"the examination has failed: {type(error).__name__}"
    return ""
