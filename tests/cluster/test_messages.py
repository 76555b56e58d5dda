"""Every queued message states its schema version, and its kind decides what it may say."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pydantic import BaseModel

from shared.cluster.forms import NewerForm
from shared.cluster.queues.bodies import commit_of, request_of
from shared.cluster.queues.envelopes import job_message
from shared.cluster.queues.messages import (
    JobMessage,
    NotifyRequest,
    OutdatedRequest,
    PlanRequest,
    PreviewRequest,
    PromoteRequest,
    ProposeRequest,
    QueueRequest,
    ReportRequest,
    ReviewRequest,
    RolloutRequest,
    StatusRequest,
    SweepRequest,
    TryRequest,
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
    ("message", "read"),
    [(job_message(record()), JobMessage.model_validate_json), (PlanRequest(reason="push"), request_of)],
)
@pytest.mark.parametrize("version", [None, 0, "1"])
def test_a_message_without_a_known_schema_version_is_refused(
    message: BaseModel, read: Callable[[str], BaseModel], version: object
) -> None:
    assert read(message.model_dump_json()) == message
    with pytest.raises(ValueError, match="schema_version"):
        read(body_of(message, schema_version=version))


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: str(request.kind))
def test_a_request_is_read_as_what_was_sent_and_says_nothing_of_another_kind(request_: QueueRequest) -> None:
    read = request_of(request_.model_dump_json())
    assert (type(read), read) == (type(request_), request_)
    assert commit_of(read) == ("c" if '"c"' in request_.model_dump_json() else "")
    with pytest.raises(ValueError, match="act"):
        request_of(body_of(request_, act={}))
    with pytest.raises(NewerForm):
        request_of(body_of(request_, schema_version=3))


def test_a_kind_that_only_a_newer_version_has_waits_and_one_that_none_has_is_refused() -> None:
    with pytest.raises(NewerForm):
        request_of(body_of(ReportRequest(), kind="forecast", schema_version=3))
    kinds: list[object] = ["forecast", "", [], None]
    for kind in kinds:
        with pytest.raises(ValueError, match="kind"):
            request_of(body_of(ReportRequest(), kind=kind))


def body_of(message: BaseModel, **changed: object) -> str:
    """Return the body of a message with other fields, without those that are None."""
    fields = {**json.loads(message.model_dump_json()), **changed}
    return json.dumps({name: value for name, value in fields.items() if value is not None})
