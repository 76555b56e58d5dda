"""What a webhook of a review means: only that the planner may read the reviews of a merged pull request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.github_webhook import read_delivery
from shared.app.intake.webhook import (
    Delivery,
    DeliveryRefusal,
    IgnoredDelivery,
    ReviewDelivery,
)
from tests.support.reviewed_pulls import ReviewedFleet
from tests.support.webhook_deliveries import COMMIT, sign

MERGED = {"merge_commit_sha": COMMIT, "merged_at": "2026-01-01T00:00:00Z", "base": {"ref": "main"}}


def review(action: str | None = "submitted", state: str | None = "approved", **pull: Any) -> bytes:
    body = {
        "action": action,
        "review": {"id": 1, "state": state},
        "pull_request": MERGED | pull,
        "repository": {"full_name": "example/fleet", "id": 7},
    }
    return json.dumps(body).encode()


def read(body: bytes, signature: str | None = None) -> Delivery:
    headers = {
        "X-Hub-Signature-256": sign(body) if signature is None else signature,
        "X-GitHub-Event": "pull_request_review",
        "X-GitHub-Delivery": "d1",
    }
    return read_delivery(headers, body, secrets=("new",), repository="example/fleet", branch="main")


@pytest.mark.parametrize(
    "body",
    [review(), review(state="APPROVED"), review("dismissed", "dismissed"), review("dismissed", "approved")],
)
def test_an_approval_or_a_dismissal_of_what_was_merged_is_accepted(body: bytes) -> None:
    answer = read(body)
    assert isinstance(answer, ReviewDelivery)
    assert (answer.commit, answer.repository) == (COMMIT, 7)


@pytest.mark.parametrize("signature", ["", sign(b"other"), sign(review(), "wrong")])
def test_a_review_without_a_valid_signature_is_refused(signature: str) -> None:
    answer = read(review(), signature)
    assert isinstance(answer, DeliveryRefusal)
    assert answer.status == 401


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (review(state="commented"), "a review that was submitted as commented approves nothing"),
        (
            review(state="changes_requested"),
            "a review that was submitted as changes_requested approves nothing",
        ),
        (review("edited"), "a review that was edited as approved approves nothing"),
        (
            review(merged_at=None),
            "the pull request is not merged; its reviews are read with the plan of its merge",
        ),
        (review(base={"ref": "next"}), "the pull request goes into next, not main"),
    ],
)
def test_a_review_that_can_approve_nothing_is_ignored_with_the_reason(body: bytes, reason: str) -> None:
    assert read(body) == IgnoredDelivery(reason)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        review(action=None),
        review(state=None),
        review(base=None),
        review(base={"ref": 3}),
        review(merge_commit_sha=None),
        review(merge_commit_sha="c0ffee"),
        json.dumps({"action": "submitted", "repository": {"full_name": "example/fleet"}}).encode(),
    ],
)
def test_a_signed_body_that_is_not_a_review_is_a_bad_request(body: bytes) -> None:
    answer = read(body)
    assert isinstance(answer, DeliveryRefusal)
    assert answer.status == 400


def test_without_the_setting_a_review_is_ignored_and_says_so() -> None:
    answer = accept(ReviewDelivery("d1", "digest", COMMIT), MemoryCloud().ports)
    assert answer.body["ignored"] == "no review approves anything; set APPROVAL_TEAMS to change that"


def test_a_review_in_another_repository_of_that_name_is_ignored() -> None:
    fleet = ReviewedFleet()
    fleet.propose()
    commit = fleet.merge()
    assert accept(ReviewDelivery("d1", "digest", commit, 2), fleet.cloud.ports).status == 200
    assert accept(ReviewDelivery("d1", "digest", commit, 1), fleet.cloud.ports).status == 202
    assert accept(ReviewDelivery("d2", "digest", commit, 1), fleet.cloud.ports).status == 200
