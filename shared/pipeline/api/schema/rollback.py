"""The rollback of a node pool, as the API shows it."""

from __future__ import annotations

from typing import TypedDict, final


@final
class PoolVersions(TypedDict):
    """What a node pool runs."""

    orchestratorVersion: str
    nodeImageVersion: str


@final
class RollbackReceipt(TypedDict):
    """``POST clusters/{name}/pools/{pool}/rollback``: the pull request is open.

    ``lastUsed`` is until when the pool ran the versions of ``target``.
    """

    cluster: str
    pool: str
    running: PoolVersions
    target: PoolVersions
    lastUsed: str
    pullRequest: str
    by: str
