"""Parse and verify a webhook of GitLab, from its headers and raw body alone.

GitLab signs as Standard Webhooks says where the webhook has a signing token, which begins with ``whsec_``.
The older secret token comes as it is, in the header ``X-Gitlab-Token``: such a delivery is a hint. Sources:
docs.gitlab.com/user/project/integrations/webhooks and .../webhook_events. A webhook that gets four answers,
one after the other, that are no success is disabled for a while, one that gets forty for good. So what
needs no plan is a success.

Neither a push nor its delivery has a time that is the same for the same push, so no push has one here. How
old a delivery is does not matter: one that came before starts nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from shared.app.intake.webhook import (
    DELIVERY_ID,
    Delivery,
    DeliveryEnvelope,
    DeliveryRefusal,
    IgnoredDelivery,
    at,
    hint_by_size,
    id_at,
    is_any_of,
    is_commit,
    is_number,
    json_object,
    sent_by_another,
    too_large,
)
from shared.masking import cut
from shared.standard_webhooks import PREFIX, is_signed, standard_webhooks_key

ACTIONS = {"open": "opened", "reopen": "reopened", "close": "closed", "merge": "closed"}
"""What an action on a merge request is on a pull request; ``update`` depends on what was updated."""
REVIEWED = ("approved", "unapproved", "approval", "unapproval")
"""By all who have to, or by somebody; GitLab writes a merge request's state in full: "merged"."""


def read_delivery(
    headers: Mapping[str, str], body: bytes, *, secrets: Sequence[str], repository: str, branch: str
) -> Delivery:
    """Return the delivery; the case of ``headers`` does not matter."""
    header = {name.lower(): value for name, value in headers.items()}
    refused = too_large(body)
    if refused:
        return refused
    signed = _has_signature(header, body, secrets)
    if not signed and not is_any_of(header.get("x-gitlab-token", ""), _tokens(secrets)):
        return DeliveryRefusal(401, _unsigned(header, secrets))
    if not signed and (hint := hint_by_size(body)):
        return hint
    event = header.get("x-gitlab-event", "")
    read = _READERS.get(event)
    if read is None:
        return IgnoredDelivery(f"the event {cut(event, 40) or '(none)'} is none of {', '.join(_READERS)}")
    payload = json_object(body)
    if payload is None:
        return DeliveryRefusal(400, "the body is not a JSON object; the webhook must have no custom template")
    delivery = header.get("webhook-id", "") if signed else ""
    delivery = delivery or header.get("idempotency-key", "") or header.get("x-gitlab-event-uuid", "")
    if not DELIVERY_ID.fullmatch(delivery):
        return DeliveryRefusal(400, "the header webhook-id or Idempotency-Key is missing, or not an id")
    name = at(payload, "project.path_with_namespace")
    if not isinstance(name, str):
        return DeliveryRefusal(400, f"the {event} has no project.path_with_namespace")
    if name.lower() != repository.lower():
        return IgnoredDelivery(f"the project {cut(name, 100)} is not {repository}")
    # Two equal pushes have equal bodies, where a branch went back and forth; their ids differ.
    digest = hashlib.sha256(delivery.encode() + b"." + body).hexdigest()
    return read(
        payload, DeliveryEnvelope(delivery, digest, branch, id_at(payload, "project.id"), signed=signed)
    )


def _has_signature(header: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> bool:
    """Return whether a signing token has signed the body; every one is tried."""
    keys = [_key(secret) for secret in secrets if secret.startswith(PREFIX)]
    found = [is_signed(header, body, key) for key in keys]
    return any(found)


def _key(secret: str) -> bytes:
    try:
        return standard_webhooks_key(secret)
    except ValueError:
        return b""


def _tokens(secrets: Sequence[str]) -> list[str]:
    """Return the secrets that GitLab may send as they are: a signing token is never sent."""
    return [secret for secret in secrets if secret and not secret.startswith(PREFIX)]


def _unsigned(header: Mapping[str, str], secrets: Sequence[str]) -> str:
    if not any(secrets):
        return "no webhook secret is configured; set GIT_WEBHOOK_SECRET"
    if "webhook-signature" in header:
        return "the signature is wrong; the signing token in GitLab is not GIT_WEBHOOK_SECRET"
    token = header.get("x-gitlab-token", "")
    if token.startswith(PREFIX):
        return "a signing token is in the field of the secret token in GitLab; put it into Signing token"
    if token:
        return "the secret token in GitLab is not GIT_WEBHOOK_SECRET"
    other = sent_by_another(header, "GitLab")
    return other or "the header webhook-signature is missing; set the webhook's signing token in GitLab"


def _read_push(payload: dict[str, Any], envelope: DeliveryEnvelope) -> Delivery:
    return envelope.push(payload.get("ref"), payload.get("after"), "after")


def _read_merge_request(payload: dict[str, Any], envelope: DeliveryEnvelope) -> Delivery:
    """Return what a merge request means; a test delivery has no action, and needs no plan."""
    request = payload.get("object_attributes")
    request = request if isinstance(request, dict) else {}
    action, number = at(request, "action"), at(request, "iid")
    target, head = at(request, "target_branch"), at(request, "last_commit.id")
    if not (isinstance(target, str) and is_number(number)):
        return DeliveryRefusal(400, "the merge request has no iid or target_branch")
    if action is None:
        return IgnoredDelivery("a merge request without an action is a test")
    if elsewhere := envelope.elsewhere(target, "merge request"):
        return elsewhere
    if action in REVIEWED:
        return _read_review(payload, envelope)
    changed = "oldrev" in request or at(payload, "changes.target_branch") is not None
    became = "synchronize" if action == "update" and changed else ACTIONS.get(str(action))
    if became is None:
        return IgnoredDelivery(f"a merge request with the action {cut(str(action), 40)} needs no plan")
    if not is_commit(head):
        return DeliveryRefusal(400, "the merge request's last_commit.id is not the id of a commit")
    return envelope.pull(number, head if envelope.signed else "", became, at(request, "source_branch"))


def _read_review(payload: dict[str, Any], envelope: DeliveryEnvelope) -> Delivery:
    state, commit = at(payload, "object_attributes.state"), at(payload, "object_attributes.merge_commit_sha")
    if state != "merged":
        return IgnoredDelivery(
            "the merge request is not merged; its approvals are read with the plan of its merge"
        )
    return envelope.review(commit, "the merge request's merge_commit_sha")


_READERS = {"Push Hook": _read_push, "Merge Request Hook": _read_merge_request}
