"""A commit that deletes every cluster waits for approval, is approved, and is carried out."""

from __future__ import annotations

import json

import pytest

from cli.fleet_api.client import Refused
from localcloud.runtime.options import Options
from shared.resource_ids import ClusterId
from tests.support import fleet_files
from tests.support.local_cloud_start import Start
from tests.support.pull_request_author import Author
from tests.support.roadstead_command import roadstead

ONE = ClusterId("00000000-0000-0000-0000-000000000001", "rg-one", "one")


@pytest.mark.long
def test_a_commit_that_deletes_every_cluster_waits_for_the_approval_of_exactly_that(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra={"POLL_SECONDS": "0.5"}))
    url = operator.cloud.urls.functions
    operator.wait_for_status(operator.push(fleet_files.fleet("one", "two")), "success")

    written = roadstead("import", ONE.resource, "--url", url)
    assert (written.returncode, "name: one" in written.stdout) == (0, True)
    assert not [line for line in written.stdout.splitlines() if line.startswith("#")]

    author = Author(operator, "empty")
    proposed = author.push(fleet_files.fleet())
    author.propose()
    author.wait_for("#### 2 clusters: **deletes that need approval**")
    assert operator.status(proposed) == "success: 2 needs approval"
    assert author.checks(proposed) == []

    commit = operator.push(fleet_files.fleet())
    status = operator.wait_for_status(commit, "failure")
    assert status.startswith("failure: one: the commit removes 2 clusters, guards.deleteBudget in fleet.yaml")
    author.wait_for("**Out of date**")
    release = f"2 deletes need approval (roadstead approve {commit[:8]}): one, two"
    assert release in " ".join(roadstead("status", "--url", url).stdout.split())
    planned = roadstead("plan", "--exit-code", "--url", url, cwd=operator.checkout.folder)
    assert planned.returncode == 3
    assert release in " ".join(planned.stdout.split())
    plan = operator.plan(commit)
    assert plan is not None
    assert (plan["needsApproval"], plan["howToApprove"][:26]) == (
        ["one", "two"],
        f"roadstead approve {commit[:8]}",
    )
    with pytest.raises(Refused, match="exactly the deletes that need it: one, two"):
        operator.api.post(f"plans/{commit}/approve", {"clusters": ["one"]})

    newer = operator.push({**fleet_files.fleet(), "README.md": b"A fleet\n"})
    operator.wait_for_status(newer, "failure")
    refused = roadstead("approve", commit, "--yes", "--url", url)
    assert (refused.returncode, f"a newer commit than {commit[:8]} is planned" in refused.stderr) == (1, True)
    with pytest.raises(Refused, match="is no longer the commit that was planned last"):
        operator.api.post(f"plans/{commit}/approve", {"clusters": ["one", "two"]})
    assert operator.phases() == {"one": "Ready", "two": "Ready"}

    done = roadstead("approve", newer[:8], "--yes", "--url", url)
    assert done.returncode == 0, done.stderr
    status = operator.wait_for_status(newer, "success")
    assert status == "success: 2 of 2 clusters in sync (2 delete)"
    assert operator.phases() == {}
    accepted = operator.accepted()
    assert {name: accepted["delete", name] for name in ("one", "two")} == {"one": 1, "two": 1}


@pytest.mark.long
def test_a_team_approves_deletes_by_a_review_before_or_after_the_merge(start: Start) -> None:
    extra = {"POLL_SECONDS": "0.5", "APPROVAL_TEAMS": "example/approvers"}
    operator = start(Options(create_seconds=1, extra=extra))
    operator.wait_for_status(operator.push(fleet_files.fleet("one", "two", "three", "four")), "success")

    before = Author(operator, "before")
    before.push(fleet_files.fleet("one", "two"))
    before.propose()
    before.wait_for("or an approving review of its pull request by example/approvers releases")
    review = before.reviewed("reviewer")
    status = operator.wait_for_status(before.merge(), "success")
    assert status == "success: 4 of 4 clusters in sync (2 delete, 2 unchanged)"

    after = Author(operator, "after")
    after.push(fleet_files.fleet())
    after.propose()
    after.reviewed("contributor")
    commit = after.merge()
    operator.wait_for_status(commit, "failure")
    plan = operator.plan(commit)
    assert plan is not None
    assert plan["reviews"].endswith("(contributor is no member)")
    assert sorted(operator.phases()) == ["one", "two"]
    late = after.reviewed("reviewer")
    operator.wait_for_status(commit, "success")
    assert operator.phases() == {}

    audit = roadstead("audit", "--output", "json", "--url", operator.cloud.urls.functions)
    acts = [act for act in json.loads(audit.stdout)["acts"] if act["action"] == "approve"]
    assert [(act["address"], act["by"]) for act in acts] == [
        (late, "reviewer on GitHub"),
        (review, "reviewer on GitHub"),
    ]
