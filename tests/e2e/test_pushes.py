"""Pushes over the wire: repeated, forged, lost, identical, invalid; and a pull request."""

from __future__ import annotations

import hashlib
import hmac
import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.github_app import AS_APP
from tests.support.local_cloud_start import Start
from tests.support.pull_request_author import Author

QUICK = {"POLL_SECONDS": "0.5", "RETRY_LIMITS": "Unavailable=60/1 Throttled=forever/1 Conflict=forever/1"}


def deliver(operator: Operator, commit: str, *, key: str, delivery: str = "d1") -> int:
    """Send a push webhook as GitHub would; return the HTTP status."""
    body = json.dumps(
        {"ref": "refs/heads/main", "after": commit, "repository": {"full_name": "example/fleet"}}
    ).encode()
    signature = "sha256=" + hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-Hub-Signature-256": signature, "X-GitHub-Event": "push", "X-GitHub-Delivery": delivery}
    url = f"{operator.cloud.urls.functions}/api/github"
    return httpx.post(url, content=body, headers=headers, trust_env=False, timeout=30).status_code


def calls_to_host(operator: Operator, method: str, part: str) -> int:
    calls = operator.cloud.requests("github")
    return sum(1 for call in calls if call["method"] == method and part in call["path"])


def test_a_delivery_five_times_is_one_plan_and_a_forged_one_none(start: Start) -> None:
    operator = start(Options(create_seconds=1, plan_schedule="0 0 0 1 1 *", extra=QUICK))
    cloud = operator.cloud
    httpx.put(f"{cloud.urls.github}/_local/webhooks", json={"drop": 1}, trust_env=False).raise_for_status()
    commit = operator.push(fleet_files.fleet("one"))
    assert deliver(operator, commit, key="forged", delivery="forged") == 401
    right = cloud.settings["GITHUB_WEBHOOK_SECRET"]
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: deliver(operator, commit, key=right), range(5)))
    assert set(answers) <= {200, 202}
    operator.wait_for_status(commit, "success")
    assert deliver(operator, commit, key=right) == 200
    assert calls_to_host(operator, "GET", "/git/trees/") == 1
    assert operator.accepted()["create", "one"] == 1


def test_a_push_whose_webhook_is_lost_is_planned_by_the_timer(start: Start) -> None:
    operator = start(Options(create_seconds=1, plan_schedule="*/2 * * * * *", extra=QUICK))
    url = f"{operator.cloud.urls.github}/_local/webhooks"
    httpx.put(url, json={"drop": 1}, trust_env=False).raise_for_status()
    commit = operator.push(fleet_files.fleet("one"))
    operator.wait_for_status(commit, "success")
    deliveries = httpx.get(f"{operator.cloud.urls.github}/_local/deliveries", trust_env=False).json()
    of_main = [item for item in deliveries if item["request"]["payload"].get("ref") == "refs/heads/main"]
    assert [delivery["status"] for delivery in of_main] == ["dropped"]


def test_an_identical_push_writes_nothing_but_the_commit_status(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra=QUICK))
    files = fleet_files.example()
    operator.wait_for_status(operator.push(files), "success")
    before = {service: len(operator.cloud.requests(service)) for service in ("arm", "kubernetes", "github")}
    commit = operator.push(files)
    status = operator.wait_for_status(commit, "success")
    assert status == "success: 3 of 3 clusters in sync (3 unchanged)"
    new = {service: operator.cloud.requests(service)[seen:] for service, seen in before.items()}
    assert new["arm"] == []
    assert new["kubernetes"] == []
    posts = [call["path"] for call in new["github"] if call["method"] != "GET" and "/repos/" in call["path"]]
    assert set(posts) == {f"/repos/example/fleet/statuses/{commit}"}


def test_a_typo_is_reported_on_the_commit_with_its_place_and_blocks_no_other_cluster(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra=QUICK))
    files = fleet_files.fleet("one", "two")
    files["clusters/two/cluster.yaml"] = files["clusters/two/cluster.yaml"].replace(b"location", b"loaction")
    commit = operator.push(files)
    status = operator.wait_for_status(commit, "failure")
    assert (
        "clusters/two/cluster.yaml:7:3 spec.loaction: there is no such field; did you mean location?"
        in status
    )
    operator.wait(lambda: operator.phases() == {"one": "Ready"}, "one is Ready")
    good = operator.push(fleet_files.fleet("one", "two"))
    operator.wait_for_status(good, "success")


@pytest.mark.long
def test_faults_at_every_service_are_retried_and_reported(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra=QUICK))
    urls = operator.cloud.urls
    throttle = {
        "status": 429,
        "headers": {"Retry-After": "2"},
        "body": {"error": {"code": "TooManyRequests"}},
    }
    operator.faults(
        urls.arm,
        [
            {"match": "^PUT .*/managedClusters/", "times": 2, **throttle},
            {"match": "^PUT .*/managedClusters/", "status": 500, "after": True, "times": 1},
            {"match": "^GET ", "status": 503, "times": 6, "share": 0.3},
        ],
    )
    operator.faults(
        urls.github,
        [
            {"match": "^GET .*/git/", "status": 502, "times": 2},
            {"match": "^POST .*/statuses/", "status": 500, "times": 1},
        ],
    )
    commit = operator.push(fleet_files.fleet("one", "two"))
    operator.wait_for_status(commit, "success")
    assert operator.accepted()["create", "one"] == operator.accepted()["create", "two"] == 1
    retries = [
        event["reason"] + " " + event["message"]
        for name in ("one", "two")
        for event in operator.api.get(f"clusters/{name}")["events"]
    ]
    assert any(text.startswith("Retrying") and "Throttled" in text for text in retries), retries


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
