"""Each app examines itself, and every fault of it is found, with a message and a remedy of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.fleet import ask_apps
from shared.app.doctor import doctor_view
from shared.app.door import epoch_tag
from shared.app.examination import APPS, SENDS, examine
from shared.app.health import Health
from shared.cluster.failures.errors import Dependency, Unauthenticated, Unauthorized, Unavailable
from shared.ports import Ports
from shared.ports.azure import PatchTags
from tests.support.deployed_rights import senders
from tests.support.lost_tables import CONFIG
from tests.support.pipeline_runs import ready
from tests.support.replaced_ports import Around

Fault = Callable[[Ports], Ports]


class Answers:
    """A service that answers, or raises an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def probe(self) -> None:
        """Answer."""
        if self._error is not None:
            raise self._error


def refusing(error: Exception) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> Any:
        raise error

    return refuse


def with_probes(ports: Ports, **failing: Exception) -> Ports:
    names = {"credential": "Azure credential", "vault": "Key Vault platform"}
    return replace(ports, probes={name: Answers(failing.get(key)) for key, name in names.items()})


def probe_fails(key: str, error: Exception) -> Fault:
    return lambda ports: with_probes(ports, **{key: error})


def queue_refuses(queue: str) -> Fault:
    def refuse(ports: Ports) -> Ports:
        refused = refusing(Unauthorized(f"the queue {queue} refuses this identity"))
        replaced: dict[str, Any] = {queue: Around(getattr(ports, queue), probe=refused)}
        return replace(ports, **replaced)

    return refuse


def host_fails(error: Exception) -> Fault:
    return lambda ports: replace(ports, git_host=Around(ports.git_host, read_head=refusing(error)))


def clock_is_off(seconds: float) -> Fault:
    def off(ports: Ports) -> Ports:
        clock = ports.clock
        wrong = replace(ports, clock=lambda: clock() + timedelta(seconds=seconds))
        return replace(wrong, compared=type(ports.compared)())

    return off


def without_table_time(ports: Ports) -> Ports:
    failing = refusing(Unavailable("Table Storage does not say its time"))
    return replace(ports, table_time=failing, compared=type(ports.compared)())


def setting(name: str, value: str) -> Fault:
    def change(ports: Ports) -> Ports:
        settings = {**ports.config.settings, name: value}
        return replace(ports, config=replace(ports.config, settings=settings))

    return change


FAULTS: Mapping[str, tuple[Fault, str]] = {
    "its clock is ahead": (clock_is_off(60), "the clock of this instance is 5"),
    "its clock is behind": (clock_is_off(-60), "behind that of Table Storage"),
    "its time is unknown": (without_table_time, "the time is not known: Unavailable"),
    "no token": (probe_fails("credential", Unauthenticated("no identity is assigned")), "no identity"),
    "Entra is away": (probe_fails("credential", Unavailable("Microsoft Entra did not answer")), "Entra"),
    "the vault is away": (probe_fails("vault", Unavailable("the vault platform did not answer")), "vault"),
    "GitHub refuses it": (host_fails(Unauthenticated("Bad credentials")), "Unauthenticated: Bad"),
    "GitHub hides the repository": (host_fails(Dependency("no such branch")), "no such branch"),
    "another lease": (setting("LEASE_SECONDS", "30.0"), "LEASE_SECONDS is "),
    "another branch": (setting("GITHUB_BRANCH", "next"), "GITHUB_BRANCH is "),
    "another bus": (setting("SERVICEBUS__FULLYQUALIFIEDNAMESPACE", "old"), "SERVICEBUS__"),
}
CASES = [
    *((app, name, *fault) for app in APPS for name, fault in FAULTS.items()),
    *(
        (app, f"{queue} refuses it", queue_refuses(queue), f"the queue {queue} refuses")
        for app, queues in SENDS.items()
        for queue in queues
    ),
]
SETTINGS = {"LEASE_SECONDS": "90.0", "GITHUB_BRANCH": "main", "SERVICEBUS__FULLYQUALIFIEDNAMESPACE": "bus"}


def examined(faults: Mapping[str, Fault] = {}, silent: str = "") -> MemoryCloud:
    """Return a fleet whose apps have examined themselves, some with a fault."""
    cloud = ready("one")
    config = replace(cloud.ports.config, settings=SETTINGS)
    ports = with_probes(replace(cloud.ports, config=config))
    for app in APPS:
        if app != silent:
            examine(app, faults[app](ports) if app in faults else ports)
    return cloud


def found(cloud: MemoryCloud) -> list[tuple[str, str, str]]:
    view = doctor_view(Health(cloud.ports).read(), cloud.ports)
    assert all(finding["remedy"] and finding["since"] for finding in view["findings"])
    return [(finding["app"], finding["what"], finding["problem"]) for finding in view["findings"]]


def test_nothing_is_wrong_with_apps_that_are_well() -> None:
    assert found(examined()) == []


@pytest.mark.parametrize(("app", "name", "fault", "said"), CASES, ids=[f"{c[0]}: {c[1]}" for c in CASES])
def test_a_fault_of_an_app_is_found_with_a_message_of_its_own(
    app: str, name: str, fault: Fault, said: str
) -> None:
    everything = found(examined({app: fault}))
    own = [problem for _, _, problem in everything if said in problem]
    assert own, (name, everything)
    assert all(app in (whose, *problem.split()) or f"{app}," in problem for whose, _, problem in everything)


def test_messages_of_different_faults_differ() -> None:
    told = {(what, text) for _, _, fault, _ in CASES for _, what, text in found(examined({"worker": fault}))}
    assert len(told) >= len(FAULTS)


@pytest.mark.parametrize("app", APPS)
def test_an_app_that_does_not_answer_is_found(app: str) -> None:
    assert found(examined(silent=app)) == [
        (app, "app", f"the app {app} has never answered a question on its queue")
    ]


def test_a_problem_that_lasts_keeps_its_time_and_one_that_has_ended_is_gone() -> None:
    cloud = examined({"worker": queue_refuses("deletes")})
    (first,) = cloud.state.examinations()[-1].findings
    cloud.clock.advance(600)
    examine("worker", queue_refuses("deletes")(with_probes(cloud.ports)))
    (row,) = [row for row in cloud.state.examinations() if row.app == "worker"]
    assert [finding.since for finding in row.findings] == [first.since]
    examine("worker", with_probes(cloud.ports))
    (row,) = [row for row in cloud.state.examinations() if row.app == "worker"]
    assert row.findings == ()


def test_each_app_answers_on_a_queue_of_its_own_also_with_a_wrong_clock_and_in_a_pause() -> None:
    cloud = ready("one")
    assert ask_apps("ann", cloud.ports).status == 202
    cloud.with_ports(clock_is_off(60))
    for _ in APPS:
        cloud.step()
    rows = {row.app: row for row in cloud.state.examinations()}
    assert rows.keys() == APPS.keys()
    assert all(row.findings[0].what == "clock" for row in rows.values())


def test_versions_that_differ_are_found() -> None:
    cloud = examined()
    (row,) = [row for row in cloud.state.examinations() if row.app == "deleter"]
    cloud.state.save_examination(replace(row, version="0.0.9"))
    assert [(app, what) for app, what, _ in found(cloud)] == [("deleter", "version")]


def test_an_app_asks_the_queues_to_which_its_identity_may_send() -> None:
    deployed = {
        app: {queue for queue in ("plans", "previews", "jobs", "changes", "deletes") if app in senders(queue)}
        for app in APPS
    }
    assert {app: set(queues) for app, queues in SENDS.items()} == deployed


def test_tables_that_are_too_old_are_found() -> None:
    cloud = MemoryCloud(config=CONFIG)
    assert CONFIG.app_group is not None
    body = {"operation": "Merge", "properties": {"tags": {epoch_tag(CONFIG): "3"}}}
    cloud.ports.azure.call(PatchTags(CONFIG.app_group, body))
    examine("deleter", cloud.ports)
    (row,) = cloud.state.examinations()
    assert row.findings[0].what == "epoch of the tables"
