"""The health of the app, over the wire: every service answers, and then one does not."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start

OFTEN = "*/5 * * * * *"


def health(operator: Operator) -> dict[str, Any]:
    """Return the whole health, whatever its status."""
    body: dict[str, Any] = operator.api._client.get(f"{operator.api.url}/api/health").json()
    return body


def problems(operator: Operator) -> dict[str, str]:
    found = health(operator)
    return {
        document["name"]: document["problem"]
        for document in found["services"] + found["timers"]
        if not document["ok"]
    }


@pytest.mark.long
def test_an_app_is_ready_until_github_fails_and_again_when_it_answers(start: Start) -> None:
    timers = dict.fromkeys(("RETENTION_SCHEDULE", "SWEEP_SCHEDULE", "CHECK_SCHEDULE"), OFTEN)
    operator = start(Options(create_seconds=1, plan_schedule=OFTEN, resend_schedule=OFTEN, extra=timers))
    operator.push(fleet_files.fleet("one"))
    operator.wait(lambda: health(operator)["ready"], "the app is ready")
    found = health(operator)
    names = [service["name"] for service in found["services"]]
    own = ["Clock", "Table Storage", "GitHub", "Service Bus"]
    assert names == [*own, "Azure credential", "Key Vault platform"]
    assert {timer["name"]: timer["schedule"] for timer in found["timers"]} == dict.fromkeys(
        ("plan_missed_head", "resend_overdue", "purge_expired", "sweep", "check"), OFTEN
    )
    probe = httpx.get(f"{operator.api.url}/api/ready", trust_env=False)
    assert (probe.status_code, probe.json()) == (200, {"live": True, "ready": True})
    github = operator.cloud.urls.github
    operator.faults(github, [{"match": "^GET .*/git/", "status": 502, "times": None}])
    operator.wait(lambda: "GitHub" in problems(operator), "GitHub fails")
    assert problems(operator)["GitHub"].startswith("Unavailable")
    assert httpx.get(f"{operator.api.url}/api/ready", trust_env=False).status_code == 503
    operator.faults(github, [])
    operator.wait(lambda: health(operator)["ready"], "the app is ready again")
