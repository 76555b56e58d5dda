"""The tables fail at any call of an act: it happens with its event, or not, and the audit knows which."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import azure.functions as func
import pytest

from localcloud.memory.memory_cloud import QUEUES, MemoryCloud
from shared.app.api.views.drift import drift_of_cluster
from shared.cluster.failures.errors import ReconcileError, Stale, Unavailable
from shared.cluster.record import ClusterRecord
from shared.ports import DeadLetter, Message, Ports
from shared.rollouts.rollout_acts import ActKind
from tests.support import fleet_files
from tests.support.function_calls import ADMIN, functions
from tests.support.one_cluster import ONE, cluster, files
from tests.support.one_cluster import ready as ready_one
from tests.support.pipeline_runs import failed, push, ready
from tests.support.staged_fleets import ready_fleet, staged, tags
from tests.support.sweeps import sweep, tag_by_hand

pytestmark = pytest.mark.lives

CONDITIONAL = ("save", "save_fleet", "save_sweep", "save_rollout")


class Fault(NamedTuple):
    """What happens at the n-th call of the tables; ``lost``: the call has its effect, and its answer is lost.

    A client library that repeats a write whose answer was lost hears that somebody else wrote.
    """

    call: int
    lost: bool = False
    error: type[ReconcileError] = Unavailable


class FailingTables:
    """The state, with one fault."""

    def __init__(self, inner: Any, fault: Fault) -> None:
        self._inner, self._fault, self.calls = inner, fault, list[str]()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._inner, name)

        def call(*given: Any, **named: Any) -> Any:
            self.calls.append(name)
            fails = len(self.calls) == self._fault.call + 1
            if fails and not self._fault.lost:
                raise self._fault.error("the tables do not answer")
            result = method(*given, **named)
            if fails:
                raise self._fault.error("the tables did not answer")
            return result

        return call


@dataclass(frozen=True)
class Scene:
    """A fleet in which an act has something to do."""

    cloud: MemoryCloud
    function: str
    route: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    """That of the act's event, "" for an act that has none."""

    @cached_property
    def before(self) -> Mapping[str, Any]:
        """The tables before the act."""
        return self.cloud.state.backup()

    def act(self, fault: Fault) -> tuple[int, Sequence[str], bool]:
        """Act with a fault; return the status, the calls of the tables, and whether messages were sent."""
        state, sent = FailingTables(self.cloud.state, fault), list[Message]()

        class Noting:
            def send(self, *messages: Message) -> None:
                sent.extend(messages)

        replaced: Mapping[str, Any] = {"state": state, **dict.fromkeys(QUEUES, Noting())}
        ports: Ports = replace(self.cloud.ports, **replaced)
        self.cloud.clock.advance(1)
        return ask(ports, self.function, self.route, self.body), state.calls, bool(sent)

    def record(self) -> ClusterRecord | None:
        return self.cloud.state.cluster("one")

    def stored(self) -> tuple[Any, ...]:
        """Return what an act may change, without its times."""
        found, fleet = self.record(), self.cloud.state.fleet()
        job = found and (found.generation, found.job.sequence, found.job.active, found.ownership.overruled)
        approval = (
            found
            and found.divergence.drift
            and found.divergence.drift.approval
            and found.divergence.drift.approval.by
        )
        return (
            job,
            approval,
            fleet.origin.source,
            fleet.origin.other_source,
            tuple(self.cloud.state.dead_letters(9)),
        )

    def told(self) -> list[str]:
        """Return the events of the act."""
        reasons = [event.reason for event in self.cloud.state.events("one", 200)]
        return [reason for reason in reasons if reason == self.reason]


def ask(ports: Ports, function: str, route: Mapping[str, str], body: Mapping[str, Any]) -> int:
    request = func.HttpRequest(
        "POST",
        "/api",
        body=json.dumps({"reason": "because", **body}).encode(),
        headers={**ADMIN, "Content-Type": "application/json"},
        route_params=route,
    )
    status: int = functions(ports)[function].get_user_function()(request).status_code
    return status


ONE_ROUTE = {"name": "one"}


def replay() -> Scene:
    return Scene(failed()[0], "replay", ONE_ROUTE, reason="Replayed")


def takeover() -> Scene:
    cloud = ready_one()
    tagged = {**cluster(cloud)["tags"], "roadstead-contested-by": "0a0b0c0d@staging"}
    cloud.azure.patch_cluster(ONE, {"tags": tagged})
    sweep(cloud)
    return Scene(cloud, "takeover", ONE_ROUTE, reason="TakenOver")


def approved_correction() -> Scene:
    cloud = ready_one('  minNodeImageVersion: "202101.01"\n  drift: {action: correct}\n')
    image = "AKSUbuntu-2204gen2containerd-202002.01.0"
    cloud.azure.interventions.set_node_image(ONE, "system", image)
    sweep(cloud)
    view = drift_of_cluster("one", cloud.ports)
    assert view is not None
    shown = {"correction": view["clusters"][0]["needsApproval"]}
    return Scene(cloud, "approve_correction", ONE_ROUTE, shown, reason="Approved")


def accepted_difference() -> Scene:
    cloud = ready_one()
    tag_by_hand(cloud, ONE, owner="ann")
    sweep(cloud)
    return Scene(cloud, "accept", ONE_ROUTE, {"fields": {"tags.owner": '"ann"'}}, reason="DriftAccepted")


def accepted_repository() -> Scene:
    cloud = ready_one()
    cloud.repository.id = 2
    push(cloud, files("  tags: {team: shop}\n"))
    cloud.run(seconds=300, until=lambda: False)
    return Scene(cloud, "takeover_repository")


def dismissed() -> Scene:
    cloud = MemoryCloud()
    for name in ("a", "b"):
        cloud.state.save_dead_letter(DeadLetter("jobs", name, cloud.clock(), "", "", "", 0))
    letters = [{"queue": "jobs", "id": name} for name in ("a", "b")]
    return Scene(cloud, "dismiss", body={"deadLetters": letters})


def refreshed() -> Scene:
    return Scene(ready("one"), "refresh", body={"clusters": ["one"]})


def approved_delete() -> Scene:
    cloud = ready("one", "two", "three")
    commit = push(cloud, fleet_files.fleet("three"))
    cloud.run()
    return Scene(cloud, "approve", {"commit": commit}, {"clusters": ["one", "two"]})


def paused_rollout() -> Scene:
    stages = """\
  rollout:
    stages:
      - {name: first, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - {name: second, approval: true, groups: [{maxConcurrency: "100%"}]}
"""
    cloud = ready_fleet(stages)
    commit = push(cloud, staged(stages, tags("one")))
    cloud.run()
    return Scene(cloud, f"rollout_{ActKind.PAUSE}", {"commit": commit})


SCENES = (
    replay,
    takeover,
    approved_correction,
    accepted_difference,
    accepted_repository,
    dismissed,
    refreshed,
    approved_delete,
    paused_rollout,
)


def faults(calls: Sequence[str]) -> Iterator[Fault]:
    for number, name in enumerate(calls):
        yield Fault(number)
        yield Fault(number, lost=True)
        if name in CONDITIONAL:
            yield Fault(number, lost=True, error=Stale)


@pytest.mark.parametrize("made", SCENES)
def test_an_act_happens_with_its_event_or_not_at_all_and_the_audit_knows_which(
    made: Callable[[], Scene],
) -> None:
    scene = made()
    backup, unchanged = scene.before, scene.stored()
    status, calls, sends = scene.act(Fault(-1))
    done = scene.stored()
    assert status < 300
    assert done != unchanged or sends
    assert len(scene.told()) == bool(scene.reason)
    for fault in faults(calls):
        scene.cloud.state.restore(backup)
        shown = f"{fault} at {calls[fault.call]}"
        status, _, sent = scene.act(fault)
        happened = scene.stored() != unchanged or sent
        results = [act.result.partition(":")[0] for act in scene.cloud.state.acts(5)]
        assert len(scene.told()) == (happened and bool(scene.reason)), shown
        if happened:
            assert status < 300, shown
            assert set(results) <= {"accepted", ""}, shown
        else:
            assert status == 503, shown
            assert set(results) <= {"failed", ""}, shown
        assert scene.act(Fault(-1))[0] < 300 or happened, shown
        assert scene.stored() == done, shown
        assert len(scene.told()) == bool(scene.reason), shown
