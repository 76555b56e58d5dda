"""A pull request over the wire, signed in as a GitHub App: its check, and one comment that is edited."""

from __future__ import annotations

import pytest

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.github_app import AS_APP
from tests.support.local_cloud_start import Start
from tests.support.pull_request_author import Author


@pytest.mark.long
def test_a_pull_request_has_a_check_at_the_wrong_lines_and_one_comment_that_every_push_edits(
    start: Start,
) -> None:
    operator = start(Options(create_seconds=1, extra={"POLL_SECONDS": "0.5", **AS_APP}))
    operator.wait_for_status(operator.push(fleet_files.fleet("one")), "success")
    author = Author(operator, "topic")
    files = fleet_files.fleet("one", "two")
    right = files["clusters/two/cluster.yaml"]
    wrong = author.push({**files, "clusters/two/cluster.yaml": right.replace(b"location", b"loaction")})
    author.propose()
    comment = author.wait_for("did you mean location?")
    assert comment["user"]["login"].endswith("[bot]")
    (check,) = author.checks(wrong)
    assert (check["name"], check["conclusion"]) == ("roadstead/plan", "failure")
    assert check["output"]["title"] == "1 unchanged, 1 invalid; 1 problem in the manifests"
    (note,) = check["annotations"]
    lines = right.decode().splitlines()
    assert lines[note["start_line"] - 1].startswith("  location")
    assert (note["path"], note["end_line"]) == ("clusters/two/cluster.yaml", note["start_line"])
    assert "did you mean location?" in note["message"]

    good = author.push(files)
    edited = author.wait_for("**1 create, 1 unchanged**")
    assert edited["id"] == comment["id"]
    assert [run["conclusion"] for run in author.checks(good)] == ["success"]
    assert operator.status(good) == ""
    assert operator.phases() == {"one": "Ready"}

    operator.push(fleet_files.fleet("one", "four"))
    assert author.wait_for("**Out of date**")["id"] == comment["id"]

    fork = Author(operator, "fork")
    validated = fork.push(fleet_files.fleet("one", "four", "five"))
    fork.propose(fork=True)
    fork.wait_for("This pull request comes from a fork")
    assert [run["conclusion"] for run in fork.checks(validated)] == ["neutral"]
