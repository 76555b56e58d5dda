"""Parse and verify a webhook of GitHub, from its headers and raw body alone.

The signature is over the raw bytes (docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from shared.app.intake.issue_form import LONGEST, is_form
from shared.app.intake.webhook import (
    DELIVERY_ID,
    Delivery,
    DeliveryEnvelope,
    DeliveryRefusal,
    IgnoredDelivery,
    NewIssue,
    at,
    id_at,
    is_any_of,
    is_commit,
    is_number,
    json_object,
    sent_by_another,
    too_large,
)
from shared.masking import cut

MAX_SECONDS = 1 << 36
"""In the year 4147; a later time is invalid."""
PLANNED_ACTIONS = ("opened", "synchronize", "reopened")


def read_delivery(
    headers: Mapping[str, str], body: bytes, *, secrets: Sequence[str], repository: str, branch: str
) -> Delivery:
    """Return the delivery; the case of ``headers`` does not matter."""
    header = {name.lower(): value for name, value in headers.items()}
    refused = too_large(body) or _check_signature(header, body, secrets)
    if refused:
        return refused
    event, delivery = header.get("x-github-event", ""), header.get("x-github-delivery", "")
    payload = _payload(body)
    if event == "ping" and payload is not None:
        return _read_ping(payload, repository, branch)
    read = {**_READERS, **_OPTIONAL}.get(event)
    if read is None and event != "ping":
        known = ", ".join((*_READERS, *_OPTIONAL))
        return IgnoredDelivery(f"the event {cut(event, 40) or '(none)'} is none of {known}")
    if payload is None or read is None:
        return DeliveryRefusal(
            400, "the body is not a JSON object; set the webhook's content type to application/json"
        )
    if not DELIVERY_ID.fullmatch(delivery):
        return DeliveryRefusal(400, "the header X-GitHub-Delivery is missing, or not an id of a delivery")
    name = at(payload, "repository.full_name")
    if not isinstance(name, str):
        return DeliveryRefusal(400, f"the {event} has no repository.full_name")
    if name.lower() != repository.lower():
        return IgnoredDelivery(f"the repository {cut(name, 100)} is not {repository}")
    digest = hashlib.sha256(body).hexdigest()
    return read(payload, DeliveryEnvelope(delivery, digest, branch, id_at(payload, "repository.id")))


def _check_signature(
    header: Mapping[str, str], body: bytes, secrets: Sequence[str]
) -> DeliveryRefusal | None:
    usable = [secret for secret in secrets if secret]
    if not usable:
        return DeliveryRefusal(401, "no webhook secret is configured; set GITHUB_WEBHOOK_SECRET")
    signature = header.get("x-hub-signature-256", "")
    if not signature:
        return DeliveryRefusal(401, sent_by_another(header, "GitHub") or _unsigned(header))
    digests = (hmac.new(secret.encode(), body, hashlib.sha256).hexdigest() for secret in usable)
    if not is_any_of(signature, [f"sha256={digest}" for digest in digests]):
        return DeliveryRefusal(401, _WRONG)
    return None


_WRONG = (
    "the signature is wrong; the secret in GitHub is not GITHUB_WEBHOOK_SECRET, white space around it"
    " included, or something between has changed the body"
)
"""Sources: Azure/azure-functions-host#702, white space that was copied; docs.github.com, troubleshooting of
the validation of deliveries: a proxy that modifies them."""


def _unsigned(header: Mapping[str, str]) -> str:
    if "x-hub-signature" in header:
        return "only X-Hub-Signature is there; what is between must let X-Hub-Signature-256 through"
    return "the header X-Hub-Signature-256 is missing; set the webhook's secret in GitHub"


def _payload(body: bytes) -> dict[str, Any] | None:
    """Return the payload: GitHub sends a form with it unless the webhook says application/json.

    The body says which: a relay may change the content type, and the signature is over the body alone.
    """
    payload = json_object(body)
    if payload is not None:
        return payload
    try:
        fields = parse_qs(body.decode(), max_num_fields=10)
    except ValueError:
        return None
    return json_object("".join(fields.get("payload", ())).encode())


def _read_ping(payload: dict[str, Any], repository: str, branch: str) -> Delivery:
    """Return "pong", or why no delivery of the webhook would start a plan: GitHub shows that where it is set.

    A ping has the webhook (docs.github.com/webhooks/webhook-events-and-payloads, ping). That of an
    organization, or of an app, has no repository.
    """
    name, events = at(payload, "repository.full_name"), at(payload, "hook.events")
    if isinstance(name, str) and name.lower() != repository.lower():
        return DeliveryRefusal(
            400, f"the webhook is one of {cut(name, 100)}; set it in {repository}, which is planned"
        )
    if at(payload, "hook.active") is False:
        return DeliveryRefusal(400, "the webhook is not active, so it sends nothing; make it active")
    listed = events if isinstance(events, list) and "*" not in events else []
    missing = [event for event in _READERS if listed and event not in listed]
    if "push" in missing:
        return DeliveryRefusal(400, f"the webhook sends no pushes; add the events {', '.join(missing)} to it")
    pong = f"pong; it sends no {' and no '.join(missing)}" if missing else "pong"
    default = at(payload, "repository.default_branch")
    other = isinstance(default, str) and default != branch
    return IgnoredDelivery(
        f"{pong}; {branch} is planned, and the default branch is {cut(default, 100)}" if other else pong
    )


def _read_push(payload: dict[str, Any], envelope: DeliveryEnvelope) -> Delivery:
    return envelope.push(payload.get("ref"), payload.get("after"), "after", _pushed_at(payload))


def _pushed_at(payload: dict[str, Any]) -> datetime | None:
    """Return the time of a push: seconds since 1970 in push events."""
    seconds = at(payload, "repository.pushed_at")
    usable = type(seconds) is int and 0 < seconds < MAX_SECONDS
    return datetime.fromtimestamp(seconds, UTC) if usable else None


def _read_pull(payload: dict[str, Any], envelope: DeliveryEnvelope) -> Delivery:
    action, number = payload.get("action"), payload.get("number")
    head, base = at(payload, "pull_request.head.sha"), at(payload, "pull_request.base.ref")
    if not (isinstance(action, str) and is_number(number)):
        return DeliveryRefusal(400, "the pull_request has no action or number")
    if not (isinstance(head, str) and isinstance(base, str)):
        return DeliveryRefusal(400, "the pull_request has no head.sha or base.ref")
    base_changed = action == "edited" and at(payload, "changes.base") is not None
    if action not in (*PLANNED_ACTIONS, "closed") and not base_changed:
        return IgnoredDelivery(f"a pull request that was {cut(action, 40)} needs no plan")
    if elsewhere := envelope.elsewhere(base):
        return elsewhere
    if not is_commit(head):
        return DeliveryRefusal(400, "the pull_request's head.sha is not the id of a commit")
    return envelope.pull(number, head, action, at(payload, "pull_request.head.ref"))


def _read_review(payload: dict[str, Any], envelope: DeliveryEnvelope) -> Delivery:
    """Return a review of a merged pull request; GitHub writes its state in lower case here alone."""
    action, state = payload.get("action"), at(payload, "review.state")
    base, commit = at(payload, "pull_request.base.ref"), at(payload, "pull_request.merge_commit_sha")
    if not (isinstance(action, str) and isinstance(state, str) and isinstance(base, str)):
        return DeliveryRefusal(400, "the pull_request_review has no action, review.state or base.ref")
    if (action, state.lower()) != ("submitted", "approved") and action != "dismissed":
        return IgnoredDelivery(f"a review that was {cut(action, 40)} as {cut(state, 40)} approves nothing")
    if elsewhere := envelope.elsewhere(base):
        return elsewhere
    if not isinstance(at(payload, "pull_request.merged_at"), str):
        return IgnoredDelivery(
            "the pull request is not merged; its reviews are read with the plan of its merge"
        )
    return envelope.review(commit, "the pull_request_review's merge_commit_sha")


def _read_issue(payload: dict[str, Any], envelope: DeliveryEnvelope) -> Delivery:
    """Return an issue that a person opened with the form: docs.github.com/webhooks, issues."""
    action, number, body = payload.get("action"), at(payload, "issue.number"), at(payload, "issue.body")
    login, account = at(payload, "issue.user.login"), at(payload, "issue.user.id")
    if not (isinstance(action, str) and is_number(number)):
        return DeliveryRefusal(400, "the issue has no action or number")
    if action != "opened" or not isinstance(body, str) or not is_form(body):
        return IgnoredDelivery("only an issue that is opened with the form asks for a cluster")
    if at(payload, "issue.user.type") != "User" or not isinstance(login, str) or type(account) is not int:
        return IgnoredDelivery("the issue is not by the account of a person")
    text = cut(body, LONGEST + 1)
    known = envelope.delivery, envelope.digest
    return NewIssue(*known, number, login, account, text, envelope.repository)


_READERS = {"push": _read_push, "pull_request": _read_pull, "pull_request_review": _read_review}
_OPTIONAL = {"issues": _read_issue}
"""What a webhook may leave out."""
