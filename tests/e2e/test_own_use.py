"""What Roadstead itself uses, over the wire: what the app has counted is what its services were asked."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from localcloud.runtime.options import Options
from shared.ports.tally import arm_request
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead


@pytest.mark.long
def test_what_is_counted_is_what_azure_was_asked(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra={"POLL_SECONDS": "0.5", "ALWAYS_READY_INSTANCES": "1"}))
    operator.wait_for_status(operator.push(fleet_files.fleet("one", "two")), "success")

    def used() -> dict[tuple[str, str], float]:
        view = _own_use(operator)
        return {(found["kind"], found["operation"]): found["count"] for found in view["operations"]}

    operator.wait(lambda: ("executions", "changer") in used(), "the executions of small changes are counted")
    counted = used()  # read before the log of Azure, which then has at least as much
    asked = Counter(
        arm_request(call["method"], call["path"]).partition(" ")[2].lower()
        for call in operator.cloud.requests("arm")
    )
    of_azure = {
        operation.lower(): count
        for (kind, operation), count in counted.items()
        if kind == "calls of Azure Resource Manager"
    }
    assert of_azure
    assert all(count <= asked[operation] for operation, count in of_azure.items()), (of_azure, asked)
    assert sum(of_azure.values()) >= asked.total() / 2
    assert counted["executions", "planner"] >= 1
    assert counted["messages", "sent changes"] >= 2
    assert counted["messages", "received changes"] == counted["executions", "changer"]
    assert counted["table operations", "PUT roadsteadclusters"] >= 2
    shown = roadstead("cost", "--own", "--url", operator.cloud.urls.functions).stdout
    assert "at list prices of East US: " in shown


def _own_use(operator: Operator) -> Any:
    url = operator.cloud.urls.functions
    view = json.loads(roadstead("cost", "--own", "--url", url, "-o", "json").stdout)["ownUse"]
    return view or {"operations": []}
