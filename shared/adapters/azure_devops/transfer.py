"""Git of Azure DevOps, over HTTPS, signed in with a bearer token; with pushes of our own branches.

Source: learn.microsoft.com/azure/devops/repos/git/auth-overview. Git states what a branch points to when it
is to be moved, so the server refuses a push that would lose what somebody pushed in between
(gitprotocol-pack, "Reference Update Request").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dulwich.errors import SendPackError
from dulwich.object_store import DiskObjectStore
from dulwich.objects import ZERO_SHA

from shared.adapters.azure_devops.client import NO_PERMISSION, refused
from shared.adapters.git.transfer import HttpsGitServer, git_errors
from shared.cluster.failures.errors import Conflict, ReconcileError, Unauthorized

_FORBIDDEN = ("TF401027", "TF402455", "TF401030", "not permitted", "hook declined")
"""No permission, a branch policy, and a lock; other refusals of a branch are about what it points to."""


class DevOpsGit(HttpsGitServer):
    """One repository of Azure DevOps; ``authorization`` returns the header that signs in."""

    def __init__(self, url: str, authorization: Callable[[], str]) -> None:
        super().__init__(url, "", "")
        self._authorization = authorization

    def _http_request(
        self,
        url: str,
        headers: dict[str, str] | None = None,
        data: bytes | Iterator[bytes] | None = None,
        raise_for_status: bool = True,
    ) -> tuple[Any, Callable[[int], bytes]]:
        signed = {**(headers or {}), "Authorization": self._authorization()}
        return super()._http_request(url, signed, data, raise_for_status)

    def refused(self, status: int, headers: Mapping[str, str]) -> ReconcileError:
        """Return what an answer means that is not 200."""
        return refused(status, headers, f"Azure DevOps answered {status} to git")

    def push(self, store: DiskObjectStore, branch: str, old: str | None, new: str | None) -> None:
        """Let a branch point to ``new`` instead of ``old``; None is no branch. Raise Conflict."""
        name = f"refs/heads/{branch}".encode()
        before, after = ((sha or ZERO_SHA.decode()).encode() for sha in (old, new))

        def updated(refs: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
            if refs.get(name, ZERO_SHA) != before:
                raise Conflict(f"somebody else has moved, created or deleted the branch {branch}")
            return {name: after}

        def packed(have: Any, want: Any, **given: Any) -> Any:
            return store.generate_pack_data(have, want, **given)

        with git_errors():
            try:
                done = self.send_pack("", updated, packed)  # type: ignore[arg-type]
            except SendPackError as error:
                raise Conflict(f"Azure DevOps refuses the commits for {branch}: {error}") from None
        said = (done.ref_status or {}).get(name)
        if said and any(text.lower() in said.lower() for text in _FORBIDDEN):
            raise Unauthorized(f"Azure DevOps refuses to move {branch}: {said}; {NO_PERMISSION}")
        if said:
            raise Conflict(f"Azure DevOps refuses to move {branch}: {said}")
