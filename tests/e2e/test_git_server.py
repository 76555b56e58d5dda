"""A fleet on a git server that is nothing more: no webhook, no status, no pull request."""

from __future__ import annotations

import subprocess

import httpx

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start

GIT = {"GIT_HOST": "git", "POLL_SECONDS": "0.5"}


def polling(start: Start) -> Operator:
    """Start a cloud whose app reads the repository by git alone; nobody delivers a webhook."""
    operator = start(Options(create_seconds=1, plan_schedule="*/2 * * * * *", extra=GIT))
    url = f"{operator.cloud.urls.github}/_local/webhooks"
    httpx.put(url, json={"drop": 1000}, trust_env=False).raise_for_status()
    return operator


def test_polling_finds_each_push_and_a_cluster_becomes_ready_changes_and_goes(start: Start) -> None:
    operator = polling(start)
    first = operator.push(fleet_files.fleet("one", "two"))
    operator.wait(lambda: operator.phases() == {"one": "Ready", "two": "Ready"}, "both are Ready")
    assert operator.plan(first) is not None
    grown = fleet_files.fleet("one", "two")
    grown["clusters/one/cluster.yaml"] = fleet_files.cluster("one", extra="  tags: {team: a}\n")
    second = operator.push(grown)
    operator.wait(lambda: operator.plan(second) is not None, "the change is planned")
    operator.wait(lambda: operator.api.get("clusters/one")["observedGeneration"] == 2, "it is verified")
    operator.push({path: content for path, content in grown.items() if "clusters/two" not in path})
    operator.wait(lambda: operator.phases() == {"one": "Ready"}, "two is deleted")
    asked = {call["path"].partition("?")[0] for call in operator.cloud.requests("github")}
    assert not [path for path in asked if path.startswith(("/repos/", "/app/"))], "git alone is spoken"
    lacks = operator.api.get("health")["lacks"]
    assert any(line.startswith("commit statuses:") for line in lacks)


def test_a_history_that_is_another_repositorys_is_held_and_nothing_is_deleted(start: Start) -> None:
    operator = polling(start)
    operator.push(fleet_files.fleet("one"))
    operator.wait(lambda: operator.phases() == {"one": "Ready"}, "it is Ready")
    operator.checkout.replace_all(fleet_files.fleet())
    for arguments in (
        ["checkout", "--quiet", "--orphan", "other"],
        ["add", "--all"],
        ["commit", "--quiet", "-m", "another beginning"],
        ["push", "--quiet", "--force", "origin", "HEAD:main"],
    ):
        who = ("-c", "user.name=Operator", "-c", "user.email=operator@example.com")
        subprocess.run(["git", "-C", str(operator.checkout.folder), *who, *arguments], check=True)
    operator.wait(
        lambda: "another repository" in str(operator.api.get("clusters").get("problem")), "it is held"
    )
    assert operator.phases() == {"one": "Ready"}
