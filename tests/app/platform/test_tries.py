"""A cluster tries the head of a pull request for a time, and goes back by itself."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.crashes import Counter, Crash
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import take_over
from shared.app.api.acts.tries import begin_try, end_try
from shared.app.api.views.why import why_view
from shared.app.intake.accept import accept
from shared.app.recovery.housekeeping import purge_expired
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.language.pin import TRIED, pin_branches
from shared.resource_ids import ObjectRef
from shared.rollouts.rollout import RolloutState
from tests.support import one_cluster
from tests.support.crash_points import run_with_crashes, wire
from tests.support.extension_clusters import FLUX
from tests.support.lost_tables import lose, ready
from tests.support.operator_clusters import operated
from tests.support.pipeline_runs import cloud_with, push, pushed, record_of, status
from tests.support.proposals import Repo
from tests.support.staged_fleets import (
    DEV,
    NAMESPACE,
    PROD,
    on,
    pin,
    pulls,
    ready_fleet,
    rollout_of,
    staged,
    with_file,
)

pytestmark = pytest.mark.lives

HOURS = timedelta(hours=4)
UNKNOWN = b"apiVersion: example.org/v1\nkind: Unknown\nmetadata: {name: a, namespace: default}\n"
GATED = """\
  rollout:
    stages:
      - {name: development, select: {environments: [development]}}
      - {name: production, select: {environments: [production]}, approval: true}
"""


class Tried:
    """A fleet with a pull request that adds a namespace to what every cluster applies."""

    def __init__(
        self,
        files: dict[str, bytes] | None = None,
        cloud: MemoryCloud | None = None,
        *,
        fork: bool = False,
        name: str = "a1",
    ) -> None:
        self.cloud = cloud or ready_fleet()
        self.repo = Repo(self.cloud)
        self.before = pin(self.cloud, name).commit
        self.number = self.repo.propose(files or with_file("monitoring.yaml", NAMESPACE), fork=fork)
        self.head = self.cloud.repository.head("topic")

    def begin(self, name: str = "a1", lasts: timedelta = HOURS, reason: str = "") -> tuple[int, str]:
        result = begin_try(name, self.number, lasts, "ops", self.cloud.ports, reason)
        return result.status, str(result.body.get("error", ""))

    def run(self, seconds: float = 600) -> None:
        self.cloud.run(seconds=seconds, until=lambda: False)

    def end(self, name: str = "a1") -> tuple[int, str]:
        result = end_try(name, self.number, "ops", self.cloud.ports)
        return result.status, str(result.body.get("error", ""))

    def record(self, name: str = "a1") -> ClusterRecord:
        return record_of(self.cloud, name)

    def why(self, name: str = "a1") -> Any:
        why = why_view(name, self.cloud.ports)
        assert why is not None
        return why

    @property
    def comment(self) -> str:
        (body,) = [body for body in self.repo.comments(self.number) if "roadstead:try" in body]
        return body

    @property
    def branch(self) -> str:
        return f"{pin_branches('example')}{TRIED}{self.head}"

    def is_back(self, name: str = "a1") -> bool:
        return pulls(self.cloud, name) == f"roadstead/pin/example/{self.before}" and self.record(name).ready

    def has_namespace(self, name: str = "a1") -> bool:
        api = self.cloud.kubernetes.connect(self.record(name).desired.id)
        return api.get(ObjectRef("v1", "Namespace", "monitoring", "")) is not None


def test_one_cluster_gets_the_head_and_goes_back_when_the_time_is_over() -> None:
    tried = Tried()
    assert tried.begin(reason="before the merge")[0] == 202
    tried.run()
    assert pulls(tried.cloud, "a1") == tried.branch
    assert on(tried.cloud, tried.before) == {*DEV, *PROD} - {"a1"}
    assert tried.record().phase is Phase.READY
    assert not tried.record().ready
    assert "**Flux applied it**" in tried.comment
    assert "before the merge" in tried.comment
    assert f"tries pull request {tried.number} at {tried.head[:8]} until" in tried.why()["doing"]
    state, text = status(tried.cloud, tried.before)
    assert (state, text.startswith("6 of 7 clusters in sync; a1 tries pull request")) == ("pending", True)
    tried.run(HOURS.total_seconds())
    assert tried.is_back()
    assert "because its time was over; it is back" in tried.comment
    assert tried.record().divergence.trial is None
    assert status(tried.cloud, tried.before)[0] == "success"


def test_somebody_ends_a_try() -> None:
    tried = Tried()
    tried.begin()
    tried.run()
    assert tried.end()[0] == 202
    tried.run()
    assert tried.is_back()
    assert "by ops, because somebody ended it; it is back" in tried.comment
    assert tried.end() == (409, f"a1 does not try pull request {tried.number}")


@pytest.mark.parametrize("told", [True, False])
def test_a_pull_request_that_is_closed_ends_its_tries(told: bool) -> None:
    tried = Tried()
    tried.begin()
    tried.run()
    tried.cloud.repository.pulls.change(tried.number, state="closed")
    if told:
        tried.repo.announce(tried.number, tried.head, "closed")
    tried.run(600 if told else 4000)
    assert tried.is_back()
    assert "because the pull request was closed; it is back" in tried.comment


def test_what_flux_cannot_apply_is_said_and_is_no_failure_of_the_commit() -> None:
    tried = Tried(with_file("unknown.yaml", UNKNOWN))
    assert tried.begin()[0] == 202
    tried.run(3600)
    assert pulls(tried.cloud, "a1") == tried.branch
    assert "**fails: Flux: Kustomization flux-system" in tried.comment
    assert status(tried.cloud, tried.before)[0] == "pending"
    tried.run(HOURS.total_seconds())
    assert tried.is_back()
    assert "**fails: Flux: Kustomization flux-system" in tried.comment


def test_a_rollout_goes_on_and_the_cluster_gets_its_commit_when_it_goes_back() -> None:
    tried = Tried()
    tried.begin("a2")
    tried.run()
    commit = push(tried.cloud, with_file("other.yaml", NAMESPACE.replace(b"monitoring", b"other")))
    tried.run(3600)
    assert on(tried.cloud, commit) == {*DEV, *PROD} - {"a2"}
    assert pulls(tried.cloud, "a2") == tried.branch
    assert rollout_of(tried.cloud, commit).state is RolloutState.ACTIVE
    assert status(tried.cloud, commit)[0] == "pending"
    tried.run(HOURS.total_seconds())
    assert on(tried.cloud, commit) == {*DEV, *PROD}
    assert rollout_of(tried.cloud, commit).state is RolloutState.COMPLETED
    assert status(tried.cloud, commit)[0] == "success"


def test_a_change_of_its_manifest_reaches_a_cluster_that_tries_something() -> None:
    tried = Tried()
    tried.begin()
    tried.run()
    push(tried.cloud, staged(extra="  tags: {change: x}\n", only=("a1",)))
    tried.run()
    assert tried.record().document["spec"]["tags"]["change"] == "x"
    assert tried.record().phase is Phase.READY
    assert pulls(tried.cloud, "a1") == tried.branch


def test_what_a_merge_gives_a_cluster_is_not_taken_from_it_first() -> None:
    tried = Tried()
    tried.begin()
    tried.run()
    assert tried.has_namespace()
    git = tried.cloud.repository
    git.pulls.merged_into_base(tried.number, squash=True)
    tried.repo.announce(tried.number, tried.head, "closed")
    assert accept(pushed(tried.cloud, git.head("main")), tried.cloud.ports).status == 202
    tried.cloud.run(seconds=3600, until=lambda: not tried.has_namespace())
    assert tried.has_namespace()
    assert tried.record().ready
    assert pulls(tried.cloud, "a1") == f"roadstead/pin/example/{git.head('main')}"
    assert "because the pull request was merged; it is back" in tried.comment


def test_a_newer_head_is_not_tried_and_the_comment_says_so() -> None:
    tried = Tried()
    tried.begin()
    tried.run()
    newer = tried.cloud.repository.push(
        with_file("monitoring.yaml", NAMESPACE.replace(b"}", b", labels: {a: b}}")), branch="topic"
    )
    tried.repo.announce(tried.number, newer)
    tried.run()
    assert pulls(tried.cloud, "a1") == tried.branch
    assert f"newer head `{newer[:8]}` is not tried" in tried.comment
    assert tried.begin()[0] == 202
    tried.run()
    assert pulls(tried.cloud, "a1") == f"roadstead/pin/example/try/{newer}"
    tried.end()
    tried.run()
    assert tried.is_back()


def test_the_same_try_again_has_another_end_and_starts_no_job() -> None:
    tried = Tried()
    tried.begin()
    tried.run()
    sequence = tried.record().job.sequence
    tried.begin(lasts=HOURS * 3)
    tried.run()
    assert tried.record().job.sequence == sequence
    tried.run(HOURS.total_seconds())
    assert pulls(tried.cloud, "a1") == tried.branch
    tried.run(3 * HOURS.total_seconds())
    assert tried.is_back()


def test_what_would_need_an_approval_is_not_tried() -> None:
    cloud = ready_fleet()
    push(cloud, with_file("monitoring.yaml", NAMESPACE))
    cloud.run()
    tried = Tried(staged(), cloud)
    code, why = tried.begin()
    assert code == 409
    assert "Namespace monitoring is deleted" in why
    assert tried.record().divergence.trial is None


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (with_file("bad.yaml", NAMESPACE.replace(b"monitoring", b"Apps_Bad")), "platform/bad.yaml:3"),
        (staged() | {"README.md": b"# the fleet\n"}, "changes nothing that Flux pulls on a1"),
    ],
)
def test_what_no_cluster_may_have_is_not_tried(files: dict[str, bytes], says: str) -> None:
    tried = Tried(files)
    code, why = tried.begin()
    assert (code, says in why) == (409, True), why


def test_a_fork_is_not_tried() -> None:
    tried = Tried(fork=True)
    assert tried.begin()[0] == 403


def test_a_branch_that_lacks_what_the_cluster_has_is_not_tried() -> None:
    tried = Tried()
    push(tried.cloud, with_file("other.yaml", NAMESPACE.replace(b"monitoring", b"other")))
    tried.cloud.run()
    code, why = tried.begin()
    assert (code, "merge main into its branch" in why) == (409, True)


def test_nothing_is_tried_where_the_stage_needs_an_approval() -> None:
    tried = Tried(staged(GATED) | {"platform/monitoring.yaml": NAMESPACE}, cloud=ready_fleet(GATED))
    code, why = tried.begin("b1")
    assert (code, "is in stage production, which needs an approval" in why) == (409, True)
    assert tried.begin("a1")[0] == 202


def test_a_cluster_that_a_job_changes_tries_nothing() -> None:
    tried = Tried()
    push(tried.cloud, staged(extra="  tags: {change: x}\n", only=("a1",)))
    tried.cloud.run(seconds=60, until=lambda: tried.record().job.active)
    code, why = tried.begin()
    assert (code, "only a Ready cluster tries something" in why) == (409, True)


def test_a_cluster_goes_back_although_the_tables_forgot_the_try() -> None:
    tried = Tried()
    tried.begin()
    tried.run()
    record = tried.record()
    tried.cloud.state.save(replace(record, divergence=replace(record.divergence, trial=None)))
    push(tried.cloud, staged(extra="  tags: {change: x}\n", only=("a1",)))
    tried.run()
    assert tried.is_back()


def test_the_branch_of_a_try_stays_as_long_as_a_cluster_may_pull_it() -> None:
    tried = Tried()
    tried.begin()
    tried.run()
    purge_expired(tried.cloud.ports)
    assert tried.cloud.git_host.tip(tried.branch) == tried.head
    tried.end()
    tried.run()
    purge_expired(tried.cloud.ports)
    assert tried.cloud.git_host.tip(tried.branch) is None


def one(extra: str = "", more: dict[str, bytes] | None = None) -> dict[str, bytes]:
    return one_cluster.files(extra) | (more or {})


@pytest.mark.parametrize("install", ["components", "extension", "operator"])
def test_a_try_goes_there_and_back_whoever_installs_flux(install: str) -> None:
    files = operated() if install == "operator" else one(FLUX if install == "extension" else "")
    cloud = cloud_with(files, throttle=False)
    tried = Tried(files | {"platform/monitoring.yaml": NAMESPACE}, cloud, name="one")
    assert tried.begin("one")[0] == 202
    tried.run()
    assert tried.has_namespace("one")
    assert "**Flux applied it**" in tried.comment
    tried.end("one")
    tried.run()
    assert tried.record("one").ready
    assert not tried.has_namespace("one")


def test_tables_that_know_a_try_that_is_over_end_it() -> None:
    cloud = ready(one())
    tried = Tried(one() | {"platform/monitoring.yaml": NAMESPACE}, cloud, name="one")
    tried.begin("one")
    tried.run()
    during = cloud.state.backup()
    tried.end("one")
    tried.run()
    cloud.restore(during)
    cloud.clock.advance(HOURS.total_seconds())
    tried.run()
    assert tried.record("one").ready
    assert not tried.has_namespace("one")


def test_without_tables_a_person_decides_that_a_cluster_goes_back() -> None:
    cloud = ready(one())
    tried = Tried(one() | {"platform/monitoring.yaml": NAMESPACE}, cloud, name="one")
    tried.begin("one")
    tried.run()
    lose(cloud)
    assert tried.record("one").contested
    assert "would apply the GitRepository" in tried.why("one")["doing"]
    assert take_over("one", "ops", cloud.ports).status == 202
    tried.run()
    assert tried.record("one").ready
    assert not tried.has_namespace("one")


def crashing_run(counter: Counter) -> None:
    """Begin a try and end it, while the host dies once; a person asks again where nothing came of it."""
    cloud = ready(one())
    tried = Tried(one() | {"platform/monitoring.yaml": NAMESPACE}, cloud, name="one")
    wire(cloud, counter, "state", "git_host", "previews", "jobs", "plans")
    for _ in range(2):
        with suppress(Crash):
            assert tried.begin("one")[0] == 202
            break
    tried.run()
    assert tried.has_namespace("one")
    assert "**Flux applied it**" in tried.comment
    tried.run(HOURS.total_seconds())
    assert not tried.has_namespace("one")
    assert tried.record("one").ready
    assert tried.record("one").divergence.trial is None
    assert "because its time was over; it is back" in tried.comment
    assert status(cloud, tried.before)[0] == "success"


def test_a_crash_at_any_call_loses_no_try_and_none_stays() -> None:
    run_with_crashes(crashing_run, "app/tries.py", "acts/tries.py", least=10)
