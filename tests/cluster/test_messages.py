"""Every queued message states its schema version, and its kind decides what it may say."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from shared.cluster.forms import NewerForm
from shared.cluster.queues.envelopes import job_message
from shared.cluster.queues.messages import (
    JobMessage,
    NotifyRequest,
    OutdatedRequest,
    PlanRequest,
    PreviewRequest,
    PromoteRequest,
    ProposeRequest,
    QueueMessage,
    QueueRequest,
    ReportRequest,
    ReviewRequest,
    RolloutRequest,
    StatusRequest,
    SweepRequest,
    TryRequest,
    WorkerMessage,
    commit_of,
    message_of,
)
from tests.support.cluster_records import record

REQUESTS = [
    PlanRequest(commit="c", reason="push"),
    RolloutRequest(again=True),
    ReviewRequest(commit="c"),
    ReportRequest(),
    StatusRequest(commit="c"),
    NotifyRequest(attempt=2),
    ProposeRequest(pull=7, beyond="one"),
    PromoteRequest(pull=7),
    SweepRequest(sweep="1"),
    PreviewRequest(pull=7, head="c"),
    TryRequest(pull=7),
    OutdatedRequest(commit="c"),
]


@pytest.mark.parametrize(
    ("message", "kind"),
    [(job_message(record()), JobMessage), (PlanRequest(reason="push"), QueueRequest)],
)
@pytest.mark.parametrize("version", [None, 0, "1"])
def test_a_message_without_a_known_schema_version_is_refused(
    message: QueueMessage, kind: type[QueueMessage], version: object
) -> None:
    assert message_of(message.model_dump_json(), kind) == message
    with pytest.raises(ValueError, match="schema_version"):
        message_of(body_of(message, schema_version=version), kind)


def test_a_message_of_another_queue_is_refused() -> None:
    with pytest.raises(ValueError, match="no message of this kind"):
        message_of(PlanRequest(reason="push").model_dump_json(), WorkerMessage)
    with pytest.raises(ValueError, match="no message of this kind"):
        message_of(job_message(record()).model_dump_json(), QueueRequest)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: str(request.kind))
def test_a_request_is_read_as_what_was_sent_and_says_nothing_of_another_kind(request_: QueueRequest) -> None:
    read = message_of(request_.model_dump_json(), QueueRequest)
    assert (type(read), read) == (type(request_), request_)
    assert commit_of(read) == ("c" if '"c"' in request_.model_dump_json() else "")
    with pytest.raises(ValueError, match="act"):
        message_of(body_of(request_, act={}), QueueRequest)
    with pytest.raises(NewerForm):
        message_of(body_of(request_, schema_version=3), QueueRequest)


def test_a_kind_that_only_a_newer_version_has_waits_and_one_that_none_has_is_refused() -> None:
    with pytest.raises(NewerForm):
        message_of(body_of(ReportRequest(), kind="forecast", schema_version=3), QueueRequest)
    kinds: list[object] = ["forecast", "", [], None]
    for kind in kinds:
        with pytest.raises(ValueError, match="kind"):
            message_of(body_of(ReportRequest(), kind=kind), QueueRequest)


def body_of(message: BaseModel, **changed: object) -> str:
    """Return the body of a message with other fields, without those that are None."""
    fields = {**json.loads(message.model_dump_json()), **changed}
    return json.dumps({name: value for name, value in fields.items() if value is not None})
