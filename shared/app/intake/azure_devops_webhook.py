"""Parse and verify a service hook of Azure DevOps, from its headers and raw body alone.

Azure DevOps signs nothing. A subscription has a password for basic authentication, which nobody can read
there; whoever may see a subscription reads its other headers. So each delivery is a hint, with or without
the details of its resource ("All", "Minimal", "None"): the branch or the pull request is read. Sources:
learn.microsoft.com/azure/devops/service-hooks/events and .../services/webhooks.

The button "Test" sends the resource of a sample organization, and expects a success.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from shared.app.intake.webhook import (
    DELIVERY_ID,
    HEADS,
    Delivery,
    DeliveryEnvelope,
    DeliveryRefusal,
    IgnoredDelivery,
    PullChange,
    Push,
    at,
    hint_by_size,
    is_any_of,
    is_commit,
    is_number,
    json_object,
    too_large,
)
from shared.masking import cut

ENDED = ("completed", "abandoned")
"""The states of a pull request that is not active."""
_BASIC = "basic "


def read_delivery(
    headers: Mapping[str, str], body: bytes, *, secrets: Sequence[str], repository: str, branch: str
) -> Delivery:
    """Return the delivery; the case of ``headers`` does not matter."""
    header = {name.lower(): value for name, value in headers.items()}
    refused = too_large(body) or _check_password(header.get("authorization", ""), secrets)
    unread = refused or hint_by_size(body)
    if unread:
        return unread
    payload = json_object(body)
    if payload is None:
        return DeliveryRefusal(400, "the body is not a JSON object")
    event, delivery = payload.get("eventType"), payload.get("id")
    read = _READERS.get(event) if isinstance(event, str) else None
    if read is None:
        return IgnoredDelivery(f"the event {cut(str(event), 40)} is none of {', '.join(_READERS)}")
    if not (isinstance(delivery, str) and DELIVERY_ID.fullmatch(delivery)):
        return DeliveryRefusal(400, f"the {event} has no id")
    resource = payload.get("resource")
    other = _other_repository(at(resource, "repository"), repository)
    if other:
        return IgnoredDelivery(f"the repository {cut(other, 100)} is not {repository}")
    digest = hashlib.sha256(body).hexdigest()
    return read(resource, DeliveryEnvelope(delivery, digest, branch, _id_of(resource), signed=False))


def _check_password(given: str, secrets: Sequence[str]) -> DeliveryRefusal | None:
    """Return the refusal of a request without one of the passwords; its user may have any name."""
    usable = [secret for secret in secrets if secret]
    if not usable:
        return DeliveryRefusal(401, "no webhook secret is configured; set GIT_WEBHOOK_SECRET")
    if not is_any_of(_password(given), usable):
        wrong = "the password of the subscription is missing, or is not GIT_WEBHOOK_SECRET"
        return DeliveryRefusal(401, wrong)
    return None


def _password(given: str) -> str:
    """Return the password of basic authentication (RFC 7617), "" for none."""
    if not given.lower().startswith(_BASIC):
        return ""
    try:
        text = base64.b64decode(given[len(_BASIC) :], validate=True).decode()
    except ValueError:
        return ""
    return text.partition(":")[2]


def project_and_name(path: str) -> tuple[str, str]:
    """Return the names of a project and of its repository, from the path of an address, in lower case.

    ``/ORGANIZATION/PROJECT/_git/NAME``, also without the organization; of ``/_git/NAME`` the project is
    called as the repository is.
    """
    before, _, name = unquote(path).strip("/").lower().rpartition("/")
    place = before.removesuffix("_git").strip("/")
    project = place.rpartition("/")[2]
    return (project or name), name


def _other_repository(found: Any, repository: str) -> str:
    """Return the name of a repository that is not the fleet's, "" for the fleet's, or where nobody says."""
    name, project = at(found, "name"), at(found, "project.name")
    if not isinstance(name, str):
        return ""
    own_project, own_name = project_and_name(repository)
    same_project = not isinstance(project, str) or project.lower() == own_project
    if same_project and name.lower() == own_name:
        return ""
    return f"{project}/{name}" if isinstance(project, str) else name


def _id_of(resource: Any) -> int:
    """Return the number of the id of the repository, as the adapter has it; 0 for none."""
    found = at(resource, "repository.id")
    try:
        return UUID(found).int if isinstance(found, str) else 0
    except ValueError:
        return 0


def _read_push(resource: Any, envelope: DeliveryEnvelope) -> Delivery:
    """Return the push of the branch; one without details may be of any branch."""
    updates, branch = at(resource, "refUpdates"), envelope.branch
    if not isinstance(updates, list):
        return Push(envelope.delivery, envelope.digest, "", None, envelope.repository, signed=False)
    moved = [update for update in updates if at(update, "name") == HEADS + branch]
    if not moved:
        names = ", ".join(str(at(update, "name")).removeprefix(HEADS) for update in updates[:3])
        return IgnoredDelivery(f"the branch {cut(names, 100) or '(none)'} is not {branch}")
    return envelope.push(HEADS + branch, at(moved[-1], "newObjectId"), "newObjectId")


def _read_pull(resource: Any, envelope: DeliveryEnvelope) -> Delivery:
    """Return that a pull request changed, in whatever way: only whether it has ended counts."""
    number, target = at(resource, "pullRequestId"), at(resource, "targetRefName")
    if resource is None or number is None:
        return IgnoredDelivery("it names no pull request; have the subscription send all details")
    if not is_number(number):
        return DeliveryRefusal(400, "the pull request has no pullRequestId")
    if target is not None and (elsewhere := envelope.elsewhere(str(target).removeprefix(HEADS))):
        return elsewhere
    action = "closed" if at(resource, "status") in ENDED else "synchronize"
    return envelope.pull(number, "", action, str(at(resource, "sourceRefName")).removeprefix(HEADS))


def _read_update(resource: Any, envelope: DeliveryEnvelope) -> Delivery:
    """Return that a pull request changed; what happens to one that is completed is a vote.

    A pull request is completed once, which ``git.pullrequest.merged`` says as well: this event alone says
    votes.
    """
    read = _read_pull(resource, envelope)
    commit = at(resource, "lastMergeCommit.commitId")
    completed = isinstance(read, PullChange) and at(resource, "status") == "completed"
    return envelope.review(commit, "") if completed and is_commit(commit) else read


def _read_merge(resource: Any, envelope: DeliveryEnvelope) -> Delivery:
    """Return that a pull request was completed; a test merge of an active one follows an update of it."""
    if at(resource, "status") == "active":
        return IgnoredDelivery("a test merge of an active pull request needs no plan")
    return _read_pull(resource, envelope)


_READERS = {
    "git.push": _read_push,
    "git.pullrequest.created": _read_pull,
    "git.pullrequest.updated": _read_update,
    "git.pullrequest.merged": _read_merge,
}
