"""Clusters that follow another git repository by rollout: its commits go through the stages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.git.world.memory_repository import MemoryRepository
from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.git import GitServerHost
from shared.app.api.acts.approval import approve
from shared.app.followed import unread
from shared.cluster.failures.errors import Dependency
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import SOURCE
from shared.platform.followed import Followed
from tests.support.pipeline_runs import phases, push, record_of, status
from tests.support.proposals import Repo
from tests.support.soaking_stages import SOAKED, numbered, wait
from tests.support.staged_fleets import DEV, NAMESPACE, PROD, act, pin, rollout_of, staged

pytestmark = pytest.mark.lives

URL = "https://github.com/contoso/platform"
FOLLOWS = f"  flux: {{repository: {URL}, follow: rollout, path: ./platform}}\n"
BASE = {"platform/a.yaml": NAMESPACE.replace(b"monitoring", b"a")}
MORE = {"platform/b.yaml": NAMESPACE}
APPROVED = """\
  rollout:
    stages:
      - {name: dev, select: {environments: [development]}}
      - {name: prod, select: {environments: [production]}, approval: true}
"""


def following(
    rollout: str = "", *, extra: str = FOLLOWS, only: tuple[str, ...] = DEV + PROD
) -> tuple[MemoryCloud, MemoryRepository]:
    """Return a cloud with clusters that follow another repository, all Ready, and that repository."""
    cloud = MemoryCloud()
    other = MemoryRepository(cloud.clock)
    other.id = 2
    cloud.others["contoso/platform"] = other
    other.push(BASE)
    push(cloud, staged(rollout, extra, only))
    cloud.run()
    return cloud, other


def settle(cloud: MemoryCloud) -> None:
    """Run for longer than a timer needs to see what another repository has, and a rollout to move it."""
    cloud.run(seconds=3600, until=lambda: False)


def at(cloud: MemoryCloud, name: str) -> str:
    """Return the commit that Flux pulls on a cluster."""
    record = record_of(cloud, name)
    live = cloud.kubernetes.connect(record.desired.id).get(SOURCE)
    assert live is not None
    assert live["spec"]["url"] == URL
    return str(live["spec"]["ref"].get("commit") or "")


def on(cloud: MemoryCloud, commit: str) -> set[str]:
    return {name for name in (*DEV, *PROD) if at(cloud, name) == commit}


def test_clusters_of_another_repository_are_created_at_its_newest_commit() -> None:
    cloud, other = following()
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)
    assert on(cloud, other.head("main")) == {*DEV, *PROD}


def test_a_commit_of_another_repository_goes_through_the_stages() -> None:
    cloud, other = following()
    first = other.head("main")
    commit = other.commit(MORE)
    cloud.run(until=lambda: bool(on(cloud, commit) & {*PROD}))
    assert on(cloud, commit) >= {*DEV}
    assert all(phases(cloud)[name] is Phase.READY for name in DEV)
    cloud.run()
    assert on(cloud, commit) == {*DEV, *PROD}
    assert pin(cloud, PROD[0]).before == first
    assert status(cloud, cloud.repository.head("main"))[0] == "success"


def test_a_commit_that_changes_nothing_that_flux_pulls_moves_no_pin() -> None:
    cloud, other = following()
    first = other.head("main")
    other.commit({"README.md": b"# platform\n"})
    settle(cloud)
    assert on(cloud, first) == {*DEV, *PROD}
    assert cloud.state.fleet().origin.followed[0].commit == other.head("main")


def test_an_approval_is_of_the_commit_that_was_there() -> None:
    cloud, other = following(APPROVED)
    fleet = cloud.repository.head("main")
    second = other.commit(MORE)
    settle(cloud)
    assert on(cloud, second) == {*DEV}
    act(cloud, fleet, "approve", "prod")
    cloud.run()
    assert on(cloud, second) == {*DEV, *PROD}
    third = other.commit({"platform/c.yaml": NAMESPACE.replace(b"monitoring", b"c")})
    settle(cloud)
    assert on(cloud, third) == {*DEV}, "it needs an approval of its own"
    assert not rollout_of(cloud, fleet).people.approved


def test_an_abort_stays_until_the_next_commit_of_the_fleet() -> None:
    cloud, other = following(APPROVED)
    fleet, first = cloud.repository.head("main"), other.head("main")
    second = other.commit(MORE)
    settle(cloud)
    act(cloud, fleet, "abort")
    other.commit({"platform/c.yaml": NAMESPACE.replace(b"monitoring", b"c")})
    settle(cloud)
    assert (on(cloud, second), on(cloud, first)) == ({*DEV}, {*PROD})


def test_what_destroys_needs_an_approval_of_its_own_each_time() -> None:
    cloud, other = following()
    first = other.commit(MORE)
    settle(cloud)
    assert on(cloud, first) == {*DEV, *PROD}
    second = other.commit({"platform/b.yaml": None})
    settle(cloud)
    assert on(cloud, first) == {*DEV, *PROD}
    _approve(cloud)
    settle(cloud)
    assert on(cloud, second) == {*DEV, *PROD}
    other.commit(MORE)
    settle(cloud)
    last = other.commit({"platform/b.yaml": None})
    settle(cloud)
    assert not on(cloud, last), "nobody has approved this one"


def _approve(cloud: MemoryCloud) -> None:
    """Approve what the newest plan would destroy."""
    commit = cloud.repository.head("main")
    plan = cloud.state.plan(commit)
    assert plan is not None
    names = plan.plan.deletes_needing_approval
    assert names == {*DEV, *PROD}
    result = approve(commit, names, "ops", cloud.ports)
    assert result.status == 202, result.body


@pytest.mark.parametrize(
    ("follow", "said"),
    [
        ("rollout", "7 clusters follow main of contoso/platform by rollout; newest commit {newest}."),
        (
            "branch",
            "7 clusters follow main of contoso/platform by themselves: what is new there is on them at once, "
            "in no stage.",
        ),
    ],
)
def test_a_pull_request_says_who_follows_what(follow: str, said: str) -> None:
    cloud, other = following(extra=FOLLOWS.replace("rollout", follow))
    repo = Repo(cloud)
    git = cloud.repository
    git.reset(git.head("main"), "topic")
    head = git.commit({"README.md": b"# changed\n"}, branch="topic")
    number = git.pulls.open("A change", "topic", "main").number
    repo.announce(number, head, "opened")
    cloud.run()
    (body,) = repo.comments(number)
    text = body.replace("\u200b", "")
    assert said.format(newest=other.head("main")[:8]) in text
    assert text.count("clusters follow") == 1


def test_a_forced_push_is_held_until_a_commit_contains_what_clusters_have() -> None:
    cloud, other = following()
    first = other.head("main")
    other.reset(other.commit(MORE, branch="aside"))
    assert other.head("main") != first
    settle(cloud)
    assert on(cloud, first) == {*DEV, *PROD}
    state, text = status(cloud, cloud.repository.head("main"))
    assert state == "failure", text
    other.reset(first)
    settle(cloud)
    assert status(cloud, cloud.repository.head("main"))[0] == "success"


def test_clusters_of_a_source_that_is_held_keep_no_stage_of_the_fleets_own_platform_waiting() -> None:
    cloud, other = following(APPROVED, only=DEV)
    other.reset(other.commit(MORE, branch="aside"))
    files = staged(APPROVED, FOLLOWS, only=DEV) | {"platform/b.yaml": NAMESPACE}
    second = push(cloud, files)
    settle(cloud)
    head = push(cloud, files | {"README.md": b"a fleet\n"})
    settle(cloud)
    act(cloud, head, "approve", f"{second[:8]}:prod")
    settle(cloud)
    assert {pin(cloud, name).commit for name in PROD} == {second}


@pytest.mark.parametrize("name", ["a1", "b1"])
def test_a_cluster_leaves_a_source_while_stages_go_on_with_an_earlier_commit(name: str) -> None:
    """What it had of the source is no commit of the fleet, so nothing is read of that there."""

    def files(number: int, *of: str) -> dict[str, bytes]:
        own = staged(SOAKED, FOLLOWS, only=of)
        return numbered(number) | BASE | {path: own[path] for path in own if path.startswith("clusters/")}

    cloud = MemoryCloud()
    other = cloud.others["contoso/platform"] = MemoryRepository(cloud.clock)
    other.id = 2
    other.push(BASE)
    push(cloud, files(0, name))
    cloud.run()
    push(cloud, files(1, name))
    wait(cloud, 10)
    push(cloud, files(2, name))
    wait(cloud, 10)
    head = push(cloud, files(2))
    settle(cloud)
    assert pin(cloud, name).source == ""
    wait(cloud, 4 * 60)
    assert status(cloud, head)[0] == "success"


def test_what_the_app_cannot_read_is_held_and_says_who_must_act() -> None:
    cloud, other = following()
    first = other.head("main")
    del cloud.others["contoso/platform"]
    settle(cloud)
    plan = cloud.state.plan(cloud.repository.head("main"))
    assert plan is not None
    hold = plan.plan.items[0].hold
    assert hold is not None
    assert hold.cause == (
        "Flux keeps the commit that it has: main of contoso/platform cannot be read: Dependency"
    )
    assert "the installation of the GitHub App" in hold.remedy("")
    cloud.others["contoso/platform"] = other
    settle(cloud)
    assert on(cloud, first) == {*DEV, *PROD}
    assert status(cloud, cloud.repository.head("main"))[0] == "success"


def test_what_lets_the_app_read_is_what_its_git_host_has() -> None:
    cloud = MemoryCloud()
    host = GitServerHost("https://git.example.com/contoso/fleet.git")
    source = Followed("https://git.example.com/contoso/platform main")
    held = unread(source, Dependency("not there"), replace(cloud.ports, git_host=host))
    host.close()
    assert held.remedy.endswith("GIT_PASSWORD, the right to read it")
