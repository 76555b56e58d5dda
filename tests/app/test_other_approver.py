"""With APPROVAL_BY_OTHERS, who removed a cluster in git does not approve its delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.approval import MOST, approve, why_not
from shared.app.intake.accept import accept
from shared.cluster.failures.errors import Unavailable
from shared.ports import ApprovalRules
from shared.ports.git_host import BranchCommit
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push, pushed
from tests.support.replaced_ports import around

OTHERS = ApprovalRules(by_others=True)

pytestmark = pytest.mark.lives

ADA, GRACE = frozenset({"ada@example.com"}), frozenset({"grace@example.com"})
REMOVAL = ["one", "two"]
PATH = "clusters/one/cluster.yaml"


def removed_by(author: str, *, also: int = 0, message: str = "") -> tuple[MemoryCloud, str]:
    """Return a cloud in which an author removes clusters, somebody else pushes afterwards, and the head."""
    cloud = MemoryCloud()
    cloud.with_ports(lambda ports: replace(ports, config=replace(ports.config, approvals=OTHERS)))
    names = [*REMOVAL, *(f"more-{number:03}" for number in range(also))]
    push(cloud, fleet_files.fleet(*names, "kept"))
    cloud.run()
    gone = dict.fromkeys(f"clusters/{name}/cluster.yaml" for name in names)
    cloud.repository.commit(gone, author=author, message=message)
    head = cloud.repository.commit({"README.md": b"x"}, author="joan@example.com")
    accept(pushed(cloud, head), cloud.ports)
    cloud.run()
    return cloud, head


def test_the_author_of_the_removal_is_refused_and_somebody_else_is_not() -> None:
    cloud, head = removed_by("Ada@example.com")
    refused = approve(head, REMOVAL, "ada", cloud.ports, addresses=ADA)
    assert refused.status == 403
    assert refused.body["error"].startswith("you are an author of the commit that removes one")
    cloud.run()
    assert len(phases(cloud)) == 3
    assert approve(head, REMOVAL, "grace", cloud.ports, addresses=GRACE).status == 202
    cloud.run()
    assert set(phases(cloud)) == {"kept"}


def test_who_wrote_the_removal_with_somebody_else_does_not_approve_it() -> None:
    cloud, head = removed_by("ada@example.com", message="Remove\n\nCo-authored-by: Grace <Grace@example.com>")
    assert approve(head, REMOVAL, "grace", cloud.ports, addresses=GRACE).status == 403
    assert approve(head, REMOVAL, "lin", cloud.ports, addresses=frozenset({"lin@example.com"})).status == 202


def test_what_was_written_with_copilot_is_approved_by_anybody_but_who_wrote_it_with_that() -> None:
    copilot = "Co-authored-by: Copilot <223556219+Copilot@users.noreply.github.com>"
    cloud, head = removed_by("ada@example.com", message=f"Remove\n\n{copilot}")
    assert approve(head, REMOVAL, "ada", cloud.ports, addresses=ADA).status == 403
    assert approve(head, REMOVAL, "grace", cloud.ports, addresses=GRACE).status == 202


def test_a_key_or_an_app_approves_nothing() -> None:
    cloud, head = removed_by("ada@example.com")
    assert approve(head, REMOVAL, "the key of Admin", cloud.ports).status == 403


def test_an_author_who_hides_the_address_is_not_taken_for_somebody_else() -> None:
    cloud, head = removed_by("1+ada@users.noreply.github.com")
    refused = approve(head, REMOVAL, "grace", cloud.ports, addresses=GRACE)
    assert (refused.status, "no address of its author" in refused.body["error"]) == (403, True)


def test_authors_that_cannot_be_read_approve_nothing() -> None:
    cloud, head = removed_by("ada@example.com")

    def broken(*_: object) -> Sequence[BranchCommit]:
        raise Unavailable("GitHub did not answer")

    around(cloud, "git_host", changes=broken)
    assert approve(head, REMOVAL, "grace", cloud.ports, addresses=GRACE).status == 502
    cloud.run()
    assert len(phases(cloud)) == 3


def test_the_calls_to_github_of_one_approval_are_bounded() -> None:
    cloud, head = removed_by("ada@example.com", also=MOST)
    plan_record = cloud.state.plan(head)
    assert plan_record is not None
    names = sorted(plan_record.plan.deletes_needing_approval)
    assert approve(head, names, "grace", cloud.ports, addresses=GRACE).status == 409


@pytest.mark.parametrize(
    ("authors", "allowed"),
    [
        ({"ada@example.com"}, True),
        ({"ada@example.com", "noreply@github.com"}, True),
        ({"ada@example.com", "grace@example.com"}, False),
        ({"grace@example.com", "noreply@github.com"}, False),
        ({"noreply@github.com"}, False),
        ({"ada@example.com", "7+app[bot]@users.noreply.github.com"}, True),
        ({"7+app[bot]@users.noreply.github.com"}, False),
        ({"ada@example.com", "1+copilot@users.noreply.github.com"}, True),
        ({"ada@example.com", "1+notcopilot@users.noreply.github.com"}, False),
        ({"ada@example.com", "7+lin@users.noreply.github.com"}, False),
        (set(), False),
    ],
)
def test_who_cannot_be_compared_is_not_somebody_else(authors: set[str], allowed: bool) -> None:
    assert (why_not("one", GRACE, frozenset(authors), MemoryCloud().git_host) == "") == allowed


def test_the_author_of_a_rebuild_is_refused_also_after_somebody_else_has_changed_the_manifest() -> None:
    cloud = MemoryCloud()
    cloud.with_ports(lambda ports: replace(ports, config=replace(ports.config, approvals=OTHERS)))
    protected = fleet_files.cluster("one", extra="  deletionProtection: true\n")
    push(cloud, fleet_files.fleet() | {PATH: protected})
    cloud.run()
    asks = b'name: one\n  annotations: {roadstead.dev/rebuild: "2026-01-02T00:00:00Z"}\n'
    rebuild = protected.replace(b"name: one\n", asks)
    cloud.repository.commit({PATH: rebuild}, author="ada@example.com")
    two = rebuild.replace(b"count: 1", b"count: 2")
    head = cloud.repository.commit({PATH: two}, author="joan@example.com")
    accept(pushed(cloud, head), cloud.ports)
    cloud.run()
    uid = [record.uid for record in cloud.state.clusters()]
    for author in (ADA, frozenset({"joan@example.com"})):
        assert approve(head, ["one"], "a", cloud.ports, addresses=author).status == 403
    assert approve(head, ["one"], "grace", cloud.ports, addresses=GRACE).status == 202
    cloud.run()
    assert [record.uid for record in cloud.state.clusters()] != uid
