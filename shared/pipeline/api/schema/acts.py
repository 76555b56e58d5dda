"""What a call answers that changes something, dead letters, and the import of a cluster."""

from __future__ import annotations

from typing import Any, TypedDict, final


@final
class ReplayReceipt(TypedDict):
    """``POST clusters/NAME/replay``: the recipe that starts again."""

    cluster: str
    replayed: str
    by: str


@final
class RefreshReceipt(TypedDict):
    """``POST refresh``: which clusters are compared with Azure, or ``all``."""

    clusters: list[str]
    all: bool
    by: str


@final
class SyncReceipt(TypedDict):
    """``POST sync``: the head of the branch, and whether a plan of it was queued."""

    commit: str
    queued: bool
    by: str


@final
class TakeoverReceipt(TypedDict):
    """``POST clusters/NAME/takeover``: the installations that the takeover overrules, by id."""

    cluster: str
    overruled: list[str]
    by: str


@final
class SourceReceipt(TypedDict):
    """``POST takeover``: where the fleet is planned from now on."""

    repositoryId: int
    branch: str
    by: str


@final
class ApprovalReceipt(TypedDict):
    """``POST plans/COMMIT/approve``: the deletes that were approved."""

    queued: str
    commit: str
    approved: list[str]
    by: str


@final
class CorrectionReceipt(TypedDict):
    """``POST clusters/NAME/approve``: the fields whose correction was approved."""

    cluster: str
    approved: list[str]
    by: str


class DeadLetter(TypedDict):
    """A message that a queue gave up and that could not be handled; ``body`` is its beginning."""

    queue: str
    id: str
    at: str | None
    reason: str
    description: str
    body: str
    size: int


@final
class DeadLetters(TypedDict):
    """``GET dead-letters``, the newest first."""

    deadLetters: list[DeadLetter]


@final
class DismissReceipt(TypedDict):
    """``POST dead-letters/dismiss``: how many were removed."""

    dismissed: int


@final
class Imported(TypedDict):
    """``GET import``: the manifest of a managed cluster.

    ``spec`` has every field, ``manifest`` omits those that have the same effect when absent. ``left`` are
    sentences about what a manifest cannot express, ``differences`` the fields that an
    adoption would change.
    """

    resource: str
    manifest: dict[str, Any]
    spec: dict[str, Any]
    left: list[str]
    differences: list[str]
