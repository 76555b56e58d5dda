"""A cluster by request over the wire: merged by the host alone, asked for by an issue, beyond a quota."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from localcloud.runtime.options import Options
from shared.app.intake.issue_form import HEADINGS
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.one_cluster import files
from tests.support.roadstead_command import roadstead

RULE = (
    "{roles: [Operator], github: [contributor], classes: [small], environments: [development], "
    "locations: [eastus], atOnce: 5, merge: auto}"
)
QUOTA = "{environment: development, clusters: 2}"


@pytest.mark.long
def test_what_needs_nobody_is_merged_by_the_host_and_what_is_beyond_a_quota_is_not(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra={"POLL_SECONDS": "0.5"}))
    _local(operator, "PUT", "rules", {"autoMerge": True, "requiredChecks": ["roadstead/plan"]})
    fleet = files()
    more = f"spec:\n  selfService:\n    - {RULE}\n  clusterQuotas:\n    - {QUOTA}\n"
    fleet["fleet.yaml"] = fleet["fleet.yaml"].replace(b"spec:\n", more.encode(), 1)
    operator.wait_for_status(operator.push(fleet), "success")

    url = operator.cloud.urls.functions
    asked = (
        "--class",
        "small",
        "--location",
        "eastus",
        "--lifetime",
        "8h",
        "--reason",
        "a test",
        "--url",
        url,
    )
    done = roadstead("request", "first-aks", *asked)
    assert done.returncode == 0, done.stderr
    assert "who merges it: the host merges it once the rules of the branch allow that" in done.stdout
    operator.wait(lambda: operator.phases().get("first-aks") == "Ready", "what was asked for is Ready")
    assert _pulls(operator, "open") == []
    (lifetime,) = (
        view["lifetime"] for view in operator.api.get("clusters")["clusters"] if view["name"] == "first-aks"
    )
    assert lifetime["endsAt"], "it counts from the moment at which the cluster is Ready"

    number = _asked_by_issue(operator, "second-aks")
    operator.wait(lambda: operator.phases().get("second-aks") == "Ready", "what an issue asked for is Ready")
    path = f"{operator.repository}/issues/{number}"
    (comment,) = operator.github.get(f"{path}/comments").json()
    assert "adds the cluster `second-aks` in `development` for `8h`" in comment["body"]
    assert [entry["number"] for entry in _pulls(operator, "open")] == []

    done = roadstead("request", "third-aks", *asked)
    assert done.returncode != 0
    assert "environment development: 3 of 2 clusters; this commit adds 1; 0 would fit" in done.stderr
    assert _pulls(operator, "open") == []


@pytest.mark.long
def test_an_issue_whose_webhook_is_lost_is_answered_by_the_timer(start: Start) -> None:
    operator = start(Options(create_seconds=1, plan_schedule="*/5 * * * * *", extra={"POLL_SECONDS": "0.5"}))
    fleet = files()
    more = f"spec:\n  selfService:\n    - {RULE}\n"
    fleet["fleet.yaml"] = fleet["fleet.yaml"].replace(b"spec:\n", more.encode(), 1)
    operator.wait_for_status(operator.push(fleet), "success")
    _local(operator, "PUT", "webhooks", {"drop": 1})
    number = _asked_by_issue(operator, "lost-aks")
    path = f"{operator.repository}/issues/{number}"
    operator.wait(lambda: operator.github.get(path).json()["state"] == "closed", "the issue is answered")
    (comment,) = operator.github.get(f"{path}/comments").json()
    assert "adds the cluster `lost-aks` in `development` for `8h`" in comment["body"]
    (pull,) = _pulls(operator, "open")
    assert "/github-4/github.contributor/lost-aks-" in pull["head"]["ref"]


def _asked_by_issue(operator: Operator, cluster: str) -> int:
    """Open an issue with the form, and return its number."""
    answers = {"name": cluster, "class": "small", "environment": "development", "lifetime": "8h"}
    answers |= {"location": "eastus", "reason": "a load test"}
    body = "\n\n".join(f"### {heading}\n\n{answers[name]}" for name, heading in HEADINGS.items())
    issue = _local(operator, "POST", "issues", {"login": "contributor", "title": "A cluster", "body": body})
    return int(issue["number"])


def _pulls(operator: Operator, state: str) -> list[Any]:
    found: list[Any] = operator.github.get(f"{operator.repository}/pulls", params={"state": state}).json()
    return found


def _local(operator: Operator, method: str, what: str, given: dict[str, Any]) -> Any:
    url = f"{operator.cloud.urls.github}/_local/{what}"
    done = httpx.request(method, url, json=given, trust_env=False)
    done.raise_for_status()
    return done.json()
