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

    answers = {"name": "second-aks", "class": "small", "environment": "development", "lifetime": "8h"}
    answers |= {"location": "eastus", "reason": "a load test"}
    body = "\n\n".join(f"### {heading}\n\n{answers[name]}" for name, heading in HEADINGS.items())
    issue = _local(operator, "POST", "issues", {"login": "contributor", "title": "A cluster", "body": body})
    operator.wait(lambda: operator.phases().get("second-aks") == "Ready", "what an issue asked for is Ready")
    path = f"{operator.repository}/issues/{issue['number']}"
    (comment,) = operator.github.get(f"{path}/comments").json()
    assert "adds the cluster `second-aks` in `development` for `8h`" in comment["body"]
    assert [entry["number"] for entry in _pulls(operator, "open")] == []

    done = roadstead("request", "third-aks", *asked)
    assert done.returncode == 0, done.stderr
    (pull,) = _pulls(operator, "open")

    def comments() -> str:
        found = operator.github.get(f"{operator.repository}/issues/{pull['number']}/comments").json()
        return "".join(entry["body"] for entry in found)

    operator.wait(lambda: "would fit" in comments(), "the comment says what would fit")
    assert "environment development: 3 of 2 clusters; this commit adds 1; 0 would fit" in comments()
    operator.wait(lambda: operator.status(pull["head"]["sha"]).startswith("failure"), "its plan has failed")
    assert [entry["number"] for entry in _pulls(operator, "open")] == [pull["number"]]
    assert "third-aks" not in operator.phases()


def _pulls(operator: Operator, state: str) -> list[Any]:
    found: list[Any] = operator.github.get(f"{operator.repository}/pulls", params={"state": state}).json()
    return found


def _local(operator: Operator, method: str, what: str, given: dict[str, Any]) -> Any:
    url = f"{operator.cloud.urls.github}/_local/{what}"
    done = httpx.request(method, url, json=given, trust_env=False)
    done.raise_for_status()
    return done.json()
