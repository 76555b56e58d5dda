"""What each class of error means, what Roadstead does about it, and what a person does.

The one table behind ``roadstead why`` and docs/errors.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shared.jobs import errors
from shared.jobs.errors import ReconcileError, Retryable, Terminal
from shared.jobs.retry import DEFAULTS, Policies, RetryPolicy, policy_for


@dataclass(frozen=True)
class Advice:
    """Sentences for a person; ``does`` is "" where the retry policy says it all.

    ``deleting`` is what a person does when the cluster is being deleted, "" for the same as always.
    ``whole``: ``does`` says it all, for no policy tries it again.
    """

    meaning: str
    person: str
    does: str = ""
    deleting: str = ""
    whole: bool = False


REPLAY = "`roadstead replay NAME` begins it anew."

ADVICE: Mapping[type[ReconcileError], Advice] = {
    errors.Throttled: Advice(
        "A service asked for fewer requests (429).",
        "Nothing. If it lasts, see what else uses the same subscription or token.",
        "Waits for the service's `Retry-After`, and hands out no calls of that kind before it.",
    ),
    errors.Conflict: Advice(
        "Another operation is in progress on the resource, or somebody changed it a moment ago.",
        "Nothing. If it lasts, see in the activity log of Azure who else changes the resource.",
    ),
    errors.Stale: Advice(
        "Roadstead's own row changed between its read and its write: two workers met.",
        "Nothing.",
        "Reads the row again and goes on with what it says.",
    ),
    errors.Unavailable: Advice(
        "A service did not answer, or answered that it cannot (5xx).",
        "See the service's health page.",
    ),
    errors.Dependency: Advice(
        "Something that this step needs is not there yet (404, a kind that the cluster does not know).",
        "See that what the message names exists.",
    ),
    errors.NotYetVisible: Advice(
        "Azure does not show a cluster or a group that may be there: what is new is shown late.",
        "Nothing.",
        "Looks once more after 20 s, and believes that look.",
        whole=True,
    ),
    errors.Interrupted: Advice(
        "Azure began the operation and gave it up for a reason that passes: an error inside, a time limit.",
        "See Azure's health page; if it lasts, ask Azure with the request id.",
        "Makes the same write again.",
    ),
    errors.Blocked: Advice(
        "A PodDisruptionBudget does not allow that a pod is evicted from a node that is drained.",
        "Let the workload have more replicas, or its budget allow one less.",
        "Evicts what it may and asks again until the time for draining is over; then fails, as when AKS"
        " gives up to drain a node. The next commit tries again, whatever it changes.",
        whole=True,
    ),
    errors.Unexpected: Advice(
        "An error that nobody foresaw: a defect in Roadstead or in a library.",
        "Find the error in the logs by the cluster's name, and report it.",
    ),
    errors.Unauthenticated: Advice(
        "There is no valid credential: an identity, token or key is missing, wrong or has expired.",
        "Renew the credential that the message names (docs/settings.md).",
    ),
    errors.Unauthorized: Advice(
        "The identity lacks a role or a permission (403); Azure takes minutes to spread a new one.",
        "Give the app's identity the role (infra/access.bicep).",
    ),
    errors.QuotaExceeded: Advice(
        "The subscription or the region has no room: quota, size or capacity.",
        "Raise the quota or free some, then `roadstead replay NAME`; or commit another size or region.",
    ),
    errors.InvalidManifest: Advice(
        "The service refused what the manifest asks for, or takes it and does not keep it.",
        "Commit a manifest that the service takes; if a policy is the cause, change that and replay.",
    ),
    errors.Immutable: Advice(
        "The manifest changes a field that cannot be changed on what exists.",
        "Commit the old value again; or remove the cluster and create it anew.",
    ),
    errors.Aborted: Advice(
        "Somebody, or something, cancelled the operation in Azure while it ran, or took away what it made, or"
        " Azure keeps what was to be deleted.",
        "See in the activity log of Azure who did it and why; then `roadstead replay NAME`, or commit.",
    ),
    errors.Locked: Advice(
        "A lock on the resource, its group or its subscription, or a disabled subscription, forbids it.",
        "Remove the lock that the message names, or have the subscription enabled; then"
        " `roadstead replay NAME`.",
    ),
    errors.NotOwned: Advice(
        "A resource of that name exists, and its tags say that it is not this fleet's.",
        "Give the cluster another name; one that carries no fleet's tags can be taken over by the annotation"
        " roadstead.dev/adopt (docs/lifecycle.md).",
        "Touches nothing, and stops the job until a commit changes the cluster, or somebody replays it.",
        deleting="Put the tags back that the message names, or delete the resource by hand; then"
        " `roadstead replay NAME`.",
    ),
    errors.DeadLettered: Advice(
        "The queue gave up the message of this job: it was delivered ten times without an end, or expired.",
        "Find the error in the logs by the cluster's name, then `roadstead replay NAME`.",
        "Stops the job and keeps its row. The next commit tries again, whatever it changes.",
    ),
}


def classes(kind: type[ReconcileError] = ReconcileError) -> Iterator[type[ReconcileError]]:
    """Yield every class of errors that a job can meet, as the tree of ``shared.jobs.errors`` has them."""
    for found in kind.__subclasses__():
        if found not in (Retryable, Terminal):
            yield found
        yield from classes(found)


def suggested_action(kind: str, *, failed: bool, deleting: bool = False) -> str:
    """Say what a person does about a class, by its stored name; "" for one that is not known any more.

    What is still tried goes on by itself when its cause is gone; what has ``failed`` is begun anew.
    """
    for known, advice in ADVICE.items():
        if known.__name__ == kind:
            words = (deleting and advice.deleting) or advice.person
            return f"{words} {REPLAY}" if failed and issubclass(known, Retryable) else words
    return REPLAY if failed else ""


def does(kind: type[ReconcileError], policies: Policies = DEFAULTS) -> str:
    """Say what Roadstead does about a class of errors."""
    words = ADVICE[kind].does
    if ADVICE[kind].whole:
        return words
    if issubclass(kind, Terminal):
        return words or "Stops the job until a commit changes the cluster, or somebody replays it."
    return f"{words} {_told(policy_for(kind, policies))}".strip()


def _told(policy: RetryPolicy) -> str:
    longest = policy.wait((policy.attempts or 100) - 1, jitter=1)
    between = f"at most {_span(policy.first)} apart at first and {_span(longest)} at last"
    if policy.attempts is None:
        return f"Tries again for ever, {between}."
    return f"Tries {policy.attempts} times, {between}, then fails; the next commit tries again."


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
