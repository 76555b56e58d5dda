"""What a delivery of a git host means, and what the readers of all hosts share: no port, no call.

Each host has a reader: ``github_webhook``, ``gitlab_webhook`` and ``azure_devops_webhook``. It checks who
sends before anything is parsed, in constant time, and over the raw bytes. Two secrets are accepted, so that
one can be rotated; without any, every delivery is rejected.

A delivery whose body is signed is believed in what was pushed. Any other one, which has a password or a
token, is a hint: it says that there is something to read, and what is read counts.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeGuard

from shared.cluster.divergence.drift import BRANCHES, CHANNELS, PROMOTIONS
from shared.cluster.lifetime import ENDS
from shared.frozen import dataclass
from shared.masking import cut

MAX_BODY_BYTES = 25 * 1024 * 1024
"""GitHub and GitLab cap payloads at 25 MB (docs.github.com/webhooks/webhook-events-and-payloads,
docs.gitlab.com/user/gitlab_com, "Webhooks"); Azure DevOps states no cap."""
MAX_HINT_BYTES = 1 << 20
"""The longest hint that is parsed: JSON takes a multiple in memory. A longer one has the branch read."""
MAX_NUMBER = (1 << 31) - 1
COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
DELIVERY_ID = re.compile(r"[!-~]{1,100}")
HEADS = "refs/heads/"
_SENDERS = {"x-gitlab-event": "GitLab", "x-event-key": "Bitbucket", "x-github-event": "GitHub"}
"""The header that only deliveries of a host have; Azure DevOps has none."""


@dataclass(frozen=True)
class DeliveryRefusal:
    """The request is not a valid delivery: HTTP status and reason."""

    status: int
    reason: str


@dataclass(frozen=True)
class IgnoredDelivery:
    """A valid delivery that requires no plan."""

    reason: str


@dataclass(frozen=True)
class Push:
    """The tracked branch moved to ``commit``; "" where the host does not say to which.

    ``delivery`` is the host's id, which a signature need not cover; ``digest`` is that of what was sent,
    the same on a redelivery. ``at`` is when it was pushed, which may be long before the delivery; None if
    the delivery has no time. ``repository`` is the host's id of the repository, 0 if the delivery has none
    that counts. One that is not ``signed`` is a hint: the branch is read, and no commit is waited for.
    """

    delivery: str
    digest: str
    commit: str
    at: datetime | None = None
    repository: int = 0
    signed: bool = True


@dataclass(frozen=True)
class PullChange:
    """A pull request into the tracked branch changed: its commit ``head``, its base, or its state.

    A hint has no head: the pull request is read as it is.
    """

    delivery: str
    digest: str
    number: int
    head: str
    action: str
    repository: int = 0
    proposal: bool = False
    promotion: bool = False


@dataclass(frozen=True)
class ReviewDelivery:
    """A review of what was merged into the tracked branch as ``commit`` approves, or was dismissed."""

    delivery: str
    digest: str
    commit: str
    repository: int = 0


@dataclass(frozen=True)
class NewIssue:
    """Somebody has opened an issue with the form for clusters by request; ``body`` is what it says."""

    delivery: str
    digest: str
    number: int
    login: str
    account: int
    body: str
    repository: int = 0


Delivery = DeliveryRefusal | IgnoredDelivery | Push | PullChange | ReviewDelivery | NewIssue


@dataclass(frozen=True)
class DeliveryEnvelope:
    """What is around a payload, and what deliveries of every host make of it.

    ``repository`` is the host's id of that, 0 for none. A body that is not ``signed`` makes a hint.
    """

    delivery: str
    digest: str
    branch: str
    repository: int = 0
    signed: bool = True

    def push(self, ref: Any, commit: Any, of: str, pushed: datetime | None = None) -> Delivery:
        """Return the push of a ref, or why it needs no plan; ``of`` is the name of the commit's field."""
        if not isinstance(ref, str):
            return DeliveryRefusal(400, "the push has no ref")
        if not ref.startswith(HEADS):
            return IgnoredDelivery(f"{cut(ref, 100)} is not a branch")
        if ref != HEADS + self.branch:
            return IgnoredDelivery(f"the branch {cut(ref.removeprefix(HEADS), 100)} is not {self.branch}")
        if not is_commit(commit):
            return DeliveryRefusal(400, f"the push's {of} is not the id of a commit")
        if not commit.strip("0"):
            return IgnoredDelivery(f"the branch {self.branch} was deleted; the fleet stays as it is")
        return Push(self.delivery, self.digest, commit, pushed, self.repository, signed=self.signed)

    def elsewhere(self, target: str, what: str = "pull request") -> IgnoredDelivery | None:
        """Return why a pull request needs no plan that goes into another branch, None for ours."""
        if target == self.branch:
            return None
        return IgnoredDelivery(f"the {what} goes into {cut(target, 100)}, not {self.branch}")

    def pull(self, number: int, head: str, action: str, source: Any) -> PullChange:
        """Return a pull request that changed, from the branch that is its ``source``."""
        proposal = str(source).startswith((BRANCHES, ENDS))
        promotion = str(source).startswith((PROMOTIONS, *CHANNELS.values()))
        known = self.delivery, self.digest, number, head, action, self.repository
        return PullChange(*known, proposal, promotion)

    def review(self, commit: Any, of: str) -> Delivery:
        """Return a review of what was merged as a commit; ``of`` is the name of its field."""
        if not is_commit(commit):
            return DeliveryRefusal(400, f"{of} is not the id of a commit")
        return ReviewDelivery(self.delivery, self.digest, commit, self.repository)


class Reader(Protocol):
    """Reads the deliveries of a host."""

    def __call__(
        self, headers: Mapping[str, str], body: bytes, *, secrets: Sequence[str], repository: str, branch: str
    ) -> Delivery:
        """Return the delivery; the case of ``headers`` does not matter. Never raises."""


def sent_by_another(header: Mapping[str, str], own: str) -> str:
    """Return that another host sent what is not signed as ``own`` does, "" where nothing says so."""
    senders = [name for key, name in _SENDERS.items() if key in header]
    if not senders or own in senders:
        return ""
    return f"{senders[0]} sent this, and GIT_HOST is {own.lower()}; remove the webhook, or correct GIT_HOST"


def too_large(body: bytes) -> DeliveryRefusal | None:
    """Return the refusal of a body that is larger than any host's, None for others."""
    if len(body) <= MAX_BODY_BYTES:
        return None
    return DeliveryRefusal(413, f"the body has {len(body)} bytes; at most {MAX_BODY_BYTES} are read")


def hint_by_size(body: bytes) -> Push | None:
    """Return what a delivery that nobody signed is if it is too large to parse, None for others."""
    if len(body) <= MAX_HINT_BYTES:
        return None
    return Push("too-large-to-parse", hashlib.sha256(body).hexdigest(), "", signed=False)


def is_any_of(given: str, secrets: Sequence[str]) -> bool:
    """Return whether a text is one of the secrets, each compared in constant time."""
    equal = [hmac.compare_digest(given.encode(errors="replace"), secret.encode()) for secret in secrets]
    return bool(given) and any(equal)


def json_object(body: bytes) -> dict[str, Any] | None:
    """Return the object that a body has, None for anything else."""
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


def at(value: Any, path: str) -> Any:
    """Return what is at a path of names, "a.b"; None where there is nothing."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def is_number(value: Any) -> TypeGuard[int]:
    """Return whether a value is the number of a pull request."""
    return type(value) is int and 0 < value <= MAX_NUMBER


def is_commit(value: Any) -> TypeGuard[str]:
    """Return whether a value is the id of a commit: SHA-1, or SHA-256.

    See git-scm.com/docs/hash-function-transition.
    """
    return isinstance(value, str) and COMMIT.fullmatch(value) is not None


def id_at(payload: Any, path: str) -> int:
    """Return the number of a repository that is at a path, 0 for none."""
    number = at(payload, path)
    return number if type(number) is int else 0
