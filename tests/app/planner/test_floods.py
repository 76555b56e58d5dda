"""A flood of pushes: its cost at GitHub does not grow with their number, and an honest push is planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from shared.app.intake.accept import accept
from shared.app.intake.webhook import Push
from shared.app.planner import planner
from shared.app.planner.branch import LAG
from shared.cluster.failures.errors import Unavailable
from shared.ports import BranchHead, Ports
from tests.support import fleet_files
from tests.support.pipeline_runs import pushed, ready
from tests.support.replaced_ports import Around, around

pytestmark = pytest.mark.lives

MINUTE = 60.0


class Flood:
    """Pushes that come within a minute, at equal distances; ``calls`` counts what they cost at GitHub."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cloud = ready("one", "two")
        self.cloud.clock.advance(100)
        self.calls: Counter[str] = Counter()
        self.runs = 0
        self.planned_after: dict[str, float] = {}
        self._waiting: dict[str, float] = {}
        self.cloud.with_ports(self._counted)
        handle = planner.handle

        def counted(*given: object) -> None:
            self.runs += 1
            handle(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(planner, "handle", counted)

    def _counted(self, ports: Ports) -> Ports:
        def count(name: str) -> Callable[..., object]:
            def call(*given: object) -> object:
                self.calls[name] += 1
                made: object = getattr(self.cloud.repository, name)(*given)
                return made

            return call

        names = ("read_head", "is_descendant", "tree", "blob", "archive", "set_status")
        return replace(ports, git_host=Around(ports.git_host, **{name: count(name) for name in names}))

    def push(self) -> None:
        """Push another README and deliver it."""
        files = fleet_files.fleet("one", "two") | {"README.md": self.cloud.clock().isoformat().encode()}
        accept(pushed(self.cloud, self.cloud.repository.push(files)), self.cloud.ports)

    def forge(self, number: int) -> None:
        """Deliver a push, signed, of a commit that nobody pushed."""
        now = self.cloud.clock()
        forged = Push("d1", f"forged-{number}-{now}", f"{number:040x}", now.replace(microsecond=0))
        accept(forged, self.cloud.ports)

    def honest(self) -> str:
        """Push a change of a cluster, and remember when."""
        files = fleet_files.fleet("one", "two")
        files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=3)
        commit = self.cloud.repository.push(files)
        accept(pushed(self.cloud, commit), self.cloud.ports)
        self._waiting[commit] = self.cloud.clock().timestamp()
        return commit

    def run(self, pushes: int, push: Callable[[int], None], *, honest_at: int | None = None) -> None:
        for number in range(pushes):
            push(number)
            if number == honest_at:
                self.honest()
            self._until(self.cloud.clock() + timedelta(seconds=MINUTE / pushes))
        self._until(self.cloud.clock() + 2 * LAG)

    def _until(self, end: object) -> None:
        """Deliver what is due at every tenth of a second."""
        while True:
            while self.cloud.step():
                pass
            now = self.cloud.clock()
            for commit in [commit for commit in self._waiting if self.cloud.state.fleet().commit == commit]:
                self.planned_after[commit] = now.timestamp() - self._waiting.pop(commit)
            if now >= end:  # type: ignore[operator]
                return
            self.cloud.clock.advance(0.1)


@pytest.fixture(params=["pushed", "forged"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def flood(monkeypatch: pytest.MonkeyPatch, kind: str, pushes: int, honest_at: int | None = None) -> Flood:
    made = Flood(monkeypatch)
    made.run(pushes, made.forge if kind == "forged" else lambda _: made.push(), honest_at=honest_at)
    return made


def test_ten_times_as_many_pushes_in_a_minute_cost_no_more_calls(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    few, many = flood(monkeypatch, kind, 60), flood(monkeypatch, kind, 600)
    assert many.calls.total() <= few.calls.total() + 5, (few.calls, many.calls)
    assert many.calls["read_head"] <= 6 + (MINUTE + 2 * LAG.total_seconds()) / 3
    assert many.runs < 3 * 600
    assert many.cloud.state.fleet().commit == many.cloud.repository.head("main")


@pytest.mark.parametrize("honest_at", [37, 150, 222])
def test_an_honest_push_beside_a_flood_is_planned_within_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, honest_at: int
) -> None:
    made = flood(monkeypatch, "forged", 300, honest_at=honest_at)
    assert [seconds <= 10 for seconds in made.planned_after.values()] == [True]


def test_a_few_pushes_in_a_row_are_each_planned_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Flood(monkeypatch)
    for _ in range(4):
        made.cloud.clock.advance(1.1)
        made.push()
        while made.cloud.step():
            pass
        assert made.cloud.state.fleet().commit == made.cloud.repository.head("main")


def test_a_push_that_github_does_not_show_yet_is_planned_soon_although_a_read_was_made_after_it() -> None:
    cloud = ready("one")
    cloud.clock.advance(100)
    before, commit = cloud.repository.head("main"), cloud.repository.push(fleet_files.fleet("one", "two"))
    shown = {"after": cloud.clock() + timedelta(seconds=20)}
    read_head = cloud.repository.read_head

    def stale(branch: str) -> BranchHead:
        read = read_head(branch)
        return read if cloud.clock() >= shown["after"] else replace(read, commit=before)

    around(cloud, "git_host", read_head=stale)
    accept(pushed(cloud, commit), cloud.ports)
    cloud.clock.advance(2)
    forged = Push("d1", "forged", "f" * 40, cloud.clock().replace(microsecond=0))
    accept(forged, cloud.ports)
    cloud.run(LAG.total_seconds() + 5, until=lambda: cloud.state.fleet().commit == commit)
    assert cloud.state.fleet().commit == commit


def test_pushes_while_github_does_not_answer_cost_no_call_each(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Flood(monkeypatch)
    tried: list[str] = []

    def away(branch: str) -> BranchHead:
        tried.append(branch)
        raise Unavailable("GitHub answered 500")

    around(made.cloud, "git_host", read_head=away)
    made.run(300, lambda _: made.push())
    assert len(tried) < 60
    assert made.runs < 3 * 300
    assert "GitHub answered 500" in str(made.cloud.state.fleet().problem)
