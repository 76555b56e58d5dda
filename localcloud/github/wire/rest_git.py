"""The writing calls of GitHub's git database: trees, commits and refs.

Source: docs.github.com/rest/git/trees, /git/commits and /git/refs. All of them take the permission
Contents: write. A ref that exists, one that does not, and a move that is no fast-forward are answered 422;
GitHub has no condition on what a ref points to but that.
"""

from __future__ import annotations

import re
from typing import Any

from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import json_response
from localcloud.git.world import new_commits
from localcloud.git.world import repository_history as history
from localcloud.git.world.git_commands import GitError, is_safe_name, list_tree, run_git
from localcloud.git.world.ref_changes import ZERO, RefChange
from localcloud.github.wire.github_auth import GitHubError
from localcloud.github.wire.github_json import JsonObject, Place, git_commit_json, read_object, ref_json
from localcloud.github.wire.push_events import push_event
from localcloud.github.wire.rest_pulls import pushed

_SHA = re.compile(r"[0-9a-f]{40}")
_FILE_MODES = ("100644", "100755", "120000")


def create_tree(place: Place, request: Request) -> Response:
    """Create a tree: ``base_tree`` with some files, each by its ``content`` or its ``sha``."""
    wanted = read_object(request)
    items, base = wanted.get("tree"), str(wanted.get("base_tree") or "")
    if not isinstance(items, list) or not items:
        raise GitHubError(422, 'Invalid request.\n\nNo subschema in "anyOf" matched.')
    if not _is(place, base, "tree"):
        raise GitHubError(404, "Not Found")
    files = [_file(place, item) for item in items]
    try:
        created = new_commits.new_tree(place.repository.path, base, files)
    except GitError as error:
        raise GitHubError(422, "GitRPC::BadObjectState") from error
    shown = [
        {"path": entry.path, "mode": entry.mode, "type": entry.kind, "sha": entry.sha}
        for entry in list_tree(place.repository.path, created, recursive=False)
    ]
    body = {"sha": created, "url": f"{place.api}/git/trees/{created}", "tree": shown, "truncated": False}
    return json_response(201, body)


def create_commit(place: Place, request: Request) -> Response:
    """Create a commit on no branch; whoever calls is its author."""
    wanted = read_object(request)
    tree, parents = str(wanted.get("tree") or ""), wanted.get("parents") or []
    if not wanted.get("message"):
        raise GitHubError(422, 'Invalid request.\n\n"message" wasn\'t supplied.')
    if not _is(place, tree, "tree"):
        raise GitHubError(422, "Tree SHA does not exist")
    if not all(_is(place, str(parent), "commit") for parent in parents):
        raise GitHubError(422, "Parent SHA does not exist or is not a commit object")
    created = new_commits.new_commit(place.repository.path, tree, str(wanted["message"]), parents)
    stored = place.repository.read(created)
    if stored is None:
        raise GitHubError(500, "the commit was not stored")
    return json_response(201, git_commit_json(place, history.parse_commit(stored)))


def create_ref(place: Place, request: Request) -> Response:
    """Create a ref by its full name, and call the webhook."""
    wanted = read_object(request)
    ref, sha = str(wanted.get("ref") or ""), str(wanted.get("sha") or "")
    if not (ref.startswith("refs/") and ref.count("/") > 1 and is_safe_name(ref)):
        raise GitHubError(422, f"{ref} is not a valid ref name.")
    if place.repository.read(ref) is not None:
        raise GitHubError(422, "Reference already exists")
    if not _is(place, sha, "commit"):
        raise GitHubError(422, "Object does not exist")
    _moved(place, RefChange(ref, ZERO, sha))
    return json_response(201, ref_json(place, ref, sha, "commit"))


def update_ref(place: Place, request: Request, ref: str) -> JsonObject:
    """Let a ref point to another commit, without ``force`` only to a descendant."""
    wanted = read_object(request)
    sha, before = str(wanted.get("sha") or ""), _tip(place, ref)
    if not _is(place, sha, "commit"):
        raise GitHubError(422, "Object does not exist")
    if not wanted.get("force") and not place.repository.is_descendant(sha, before):
        raise GitHubError(422, "Update is not a fast forward")
    _moved(place, RefChange(f"refs/{ref}", before, sha))
    return ref_json(place, f"refs/{ref}", sha, "commit")


def delete_ref(place: Place, _: Request, ref: str) -> Response:
    """Delete a ref, and close the pull requests of its branch."""
    _moved(place, RefChange(f"refs/{ref}", _tip(place, ref), ZERO))
    return Response(status=204)


def _moved(place: Place, change: RefChange) -> None:
    """Write a ref, call the webhook of the push, and do to pull requests what a push does."""
    path = place.repository.path
    before = history.refs(path)
    if change.after == ZERO:
        run_git(path, "update-ref", "-d", change.ref)
    else:
        place.repository.point(change.ref, change.after)
    place.send("push", push_event(place, change, before, place.repository.clock()))
    pushed(place, change)


def _tip(place: Place, ref: str) -> str:
    found = place.repository.read(f"refs/{ref}") if is_safe_name(ref) else None
    if found is None:
        raise GitHubError(422, "Reference does not exist")
    return found.sha


def _file(place: Place, item: Any) -> tuple[str, str, str]:
    """Return the mode, the blob and the path of a file of a new tree; one with a null sha has no blob."""
    path, mode = str(item.get("path") or ""), str(item.get("mode") or "")
    if not path or mode not in _FILE_MODES:
        raise GitHubError(422, "tree.path or tree.mode is invalid")
    if ("content" in item) == ("sha" in item):
        raise GitHubError(422, "Must supply either tree.content or tree.sha")
    if "sha" in item:
        if item["sha"] is None:
            return mode, "", path
        if not _is(place, str(item["sha"]), "blob"):
            raise GitHubError(422, f"tree.sha {item['sha']} is not a valid blob")
        return mode, str(item["sha"]), path
    return mode, new_commits.new_blob(place.repository.path, str(item["content"]).encode()), path


def _is(place: Place, sha: str, kind: str) -> bool:
    found = place.repository.read(sha) if _SHA.fullmatch(sha) else None
    return found is not None and found.kind == kind
