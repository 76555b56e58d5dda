"""Every queued message states its schema version."""

from __future__ import annotations

import json

import pytest

from shared.cluster.messages import JobMessage, PlanRequest, job_message
from tests.support.cluster_records import record


@pytest.mark.parametrize("message", [job_message(record()), PlanRequest(reason="push")])
@pytest.mark.parametrize("version", [None, 0, "1"])
def test_a_message_without_a_known_schema_version_is_refused(
    message: JobMessage | PlanRequest, version: object
) -> None:
    kind = type(message)
    assert kind.model_validate_json(message.model_dump_json()) == message
    body = json.loads(message.model_dump_json())
    del body["schema_version"]
    if version is not None:
        body["schema_version"] = version
    with pytest.raises(ValueError, match="schema_version"):
        kind.model_validate_json(json.dumps(body))
