"""Tarballs as GitHub serves them: a redirect to a URL that is valid for five minutes without a token.

GitHub has another host for the second call, here it is the same one; a credential that comes along is
logged as ``authorized``, because no client should send it there.
"""

from __future__ import annotations

import secrets
import threading
from datetime import datetime, timedelta
from urllib.parse import quote

from werkzeug.wrappers import Request, Response

from localcloud.git.wire.repository_folder import RepositoryStore
from localcloud.github.wire.github_auth import GitHubError
from localcloud.github.wire.github_json import Place
from localcloud.github.wire.rest_reads import resolve_commit
from shared.ports import Clock

DOWNLOAD = "/<owner>/<name>/legacy.tar.gz/<sha>"
LINK_MINUTES = 5


class Archives:
    """Gives links to tarballs, and the tarballs."""

    def __init__(self, store: RepositoryStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        self._links: dict[str, tuple[str, datetime]] = {}

    def link(self, place: Place, _: Request, ref: str = "") -> Response:
        """Redirect to the tarball of a commit, branch or tag."""
        try:
            sha = resolve_commit(place, ref or place.repository.default_branch).sha
        except GitHubError as error:
            raise GitHubError(404, "Not Found") from error
        path, token = f"/{place.full_name}/legacy.tar.gz/{sha}", secrets.token_urlsafe(20)
        with self._lock:
            self._links[token] = (path, self._clock() + timedelta(minutes=LINK_MINUTES))
        return Response(status=302, headers={"Location": f"{place.base}{quote(path)}?token={token}"})

    def download(self, request: Request, owner: str, name: str, sha: str) -> Response:
        """Write the tarball for a caller with a valid link."""
        if "Authorization" in request.headers:
            request.environ.setdefault("roadstead.note", {})["authorized"] = True
        with self._lock:
            path, until = self._links.get(request.args.get("token", ""), ("", self._clock()))
        repository = self._store.find(f"{owner}/{name}")
        if path != request.path or self._clock() >= until or repository is None:
            raise GitHubError(404, "Not Found")
        return Response(
            repository.tarball(sha, f"{owner}-{name}-{sha[:7]}"),
            content_type="application/x-gzip",
            headers={"Content-Disposition": f"attachment; filename={owner}-{name}-{sha[:7]}.tar.gz"},
        )
