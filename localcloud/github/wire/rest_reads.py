"""The reading calls of GitHub's REST API: repository, branches, refs, commits, trees, blobs, contents."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from werkzeug.wrappers import Request

from localcloud.git.world import repository_history as history
from localcloud.git.world.git_commands import GitEntry, GitObject, is_safe_name, list_tree
from localcloud.github.rulesets import guards
from localcloud.github.wire.github_auth import GitHubError
from localcloud.github.wire.github_json import (
    JsonObject,
    Place,
    commit_json,
    git_commit_json,
    ref_json,
    repository_json,
)
from shared.cluster.failures.errors import Dependency

MAX_TREE_ENTRIES = 100_000
MAX_TREE_BYTES = 7 << 20
MAX_CONTENT_BYTES = 1 << 20
MAX_FILES = 300
"""docs.github.com/rest: git/trees, repos/contents, commits/commits ("Compare two commits")."""

_SHA = re.compile(r"^[0-9a-f]{40}$")


def repository(place: Place, _: Request) -> JsonObject:
    """Write the repository, with what the role of the person may there (docs.github.com/rest/repos/repos)."""
    role = {"admin": False, "maintain": False, "push": place.writes, "triage": place.writes, "pull": True}
    return {**repository_json(place), "permissions": role}


def branch(place: Place, _: Request, branch: str) -> JsonObject:
    """Write a branch with its newest commit."""
    found = _named(place, f"refs/heads/{branch}^{{commit}}", branch)
    if found is None:
        raise GitHubError(404, "Branch not found")
    return {
        "name": branch,
        "commit": commit_json(place, history.parse_commit(found)),
        "protected": False,
        "_links": {"self": f"{place.api}/branches/{branch}", "html": f"{place.html}/tree/{branch}"},
    }


def ref(place: Place, _: Request, ref: str) -> JsonObject:
    """Write a ref, named as "heads/main"; 409 in an empty repository."""
    found = _named(place, f"refs/{ref}", ref)
    if found is None:
        _refuse_empty(place)
        raise GitHubError(404, "Not Found")
    return ref_json(place, f"refs/{ref}", found.sha, found.kind)


def matching_refs(place: Place, _: Request, ref: str) -> list[JsonObject]:
    """List the refs whose names begin with this one, as "heads/next"; [] for none."""
    _refuse_empty(place)
    found = history.refs(place.repository.path)
    names = [name for name in found if name.startswith(f"refs/{ref}")]
    kinds = {name: place.repository.read(found[name]) for name in names}
    return [ref_json(place, name, found[name], stored.kind) for name, stored in kinds.items() if stored]


def branch_rules(place: Place, _: Request, branch: str) -> list[JsonObject]:
    """List the rules of active rulesets about a branch, which need not exist."""
    source = {"ruleset_source_type": "Repository", "ruleset_source": place.full_name, "ruleset_id": 1}
    return [{"type": "update", **source}] if guards(place.repository.guarded, branch) else []


def git_commit(place: Place, _: Request, sha: str) -> JsonObject:
    """Write a commit of the git database."""
    found = place.repository.read(sha) if _SHA.match(sha) else None
    if found is None or found.kind != "commit":
        raise GitHubError(404, "Not Found")
    return git_commit_json(place, history.parse_commit(found))


def commit(place: Place, _: Request, ref: str) -> JsonObject:
    """Write a commit with the files that it touched."""
    found = resolve_commit(place, ref)
    touched = history.log(place.repository.path, found.sha, limit=1)[found.sha]
    kinds = (("added", touched.added), ("removed", touched.removed), ("modified", touched.modified))
    files = [{"filename": path, "status": kind} for kind, paths in kinds for path in paths]
    return {**commit_json(place, found), "files": files[:MAX_FILES]}


def commits(place: Place, request: Request) -> list[JsonObject]:
    """Write a page of the commits up to ``?sha=`` that changed something at ``?path=``, newest first."""
    start = request.args.get("sha", place.repository.default_branch)
    found = _resolve(place, start, "commit")
    if found is None:
        _refuse_empty(place)
        raise GitHubError(404, "Not Found")
    page, size = request.args.get("page", 1, int), request.args.get("per_page", 30, int)
    paths = [request.args["path"]] if request.args.get("path") else []
    shas = history.rev_list(place.repository.path, found.sha, limit=page * size, paths=paths)
    return [commit_json(place, resolve_commit(place, sha)) for sha in shas[(page - 1) * size :]]


def tree(place: Place, request: Request, tree: str) -> JsonObject:
    """Write a tree by the id or name of a tree or commit; ``truncated`` when it is too large."""
    found = _resolve(place, tree, "tree")
    if found is None:
        _refuse_empty(place)
        raise GitHubError(404, "Not Found")
    entries = list_tree(place.repository.path, found.sha, recursive="recursive" in request.args)
    shown = entries[: _fitting(entries)]
    return {
        "sha": found.sha,
        "url": f"{place.api}/git/trees/{found.sha}",
        "tree": [_tree_item(place, entry) for entry in shown],
        "truncated": place.repository.truncate_trees or len(shown) < len(entries),
    }


def blob(place: Place, _: Request, sha: str) -> JsonObject:
    """Write a blob in base64."""
    if not _SHA.match(sha):
        raise GitHubError(422, "The sha parameter must be exactly 40 characters and contain only [0-9a-f].")
    try:
        data = place.repository.blob(sha)
    except Dependency as error:
        raise GitHubError(404, "Not Found") from error
    return {
        "sha": sha,
        "node_id": f"B_{sha}",
        "size": len(data),
        "url": f"{place.api}/git/blobs/{sha}",
        "content": base64.encodebytes(data).decode(),
        "encoding": "base64",
    }


def contents(place: Place, request: Request, path: str = "") -> JsonObject | list[JsonObject]:
    """Write a file with its content, or a folder's entries, at ``?ref=`` or the default branch."""
    name = request.args.get("ref", place.repository.default_branch)
    found = _resolve(place, name, "tree")
    if found is None:
        raise GitHubError(404, f"No commit found for the ref {name}")
    path = path.strip("/")
    entries = list_tree(place.repository.path, found.sha)
    exact = [entry for entry in entries if entry.path == path]
    if exact and exact[0].kind != "tree":
        return _content(place, exact[0], name, whole=True)
    if path and not exact:
        raise GitHubError(404, "Not Found")
    parent = f"{path}/" if path else ""
    inside = [e for e in entries if e.path.startswith(parent) and "/" not in e.path[len(parent) :]]
    return [_content(place, entry, name, whole=False) for entry in inside]


def compare(place: Place, request: Request, basehead: str) -> JsonObject:
    """Write how two commits, "base...head", differ; its files come with the first page alone.

    The oldest commit is the first one. Pages have 30 commits, or at most 100; without either parameter the
    newest 250 are shown (GitHub's REST API, "Compare two commits").
    """
    base_name, dots, head_name = basehead.partition("...")
    if not dots:
        raise GitHubError(404, "Not Found")
    base, head = resolve_commit(place, base_name), resolve_commit(place, head_name)
    path = place.repository.path
    common = history.merge_base(path, base.sha, head.sha)
    if common is None:
        raise GitHubError(404, f"No common ancestor between {base_name} and {head_name}.")
    ahead = history.count(path, f"{base.sha}..{head.sha}")
    behind = history.count(path, f"{head.sha}..{base.sha}")
    statuses = {(False, False): "identical", (True, False): "ahead", (False, True): "behind"}
    commits = history.rev_list(path, f"{base.sha}..{head.sha}", limit=ahead)[::-1]
    page = request.args.get("page", 1, int)
    if {"page", "per_page"} & request.args.keys():
        size = min(request.args.get("per_page", 30, int), 100)
        shown = commits[(page - 1) * size : page * size]
    else:
        shown = commits[-250:]
    return {
        "url": f"{place.api}/compare/{basehead}",
        "base_commit": commit_json(place, base),
        "merge_base_commit": commit_json(place, resolve_commit(place, common)),
        "status": statuses.get((ahead > 0, behind > 0), "diverged"),
        "ahead_by": ahead,
        "behind_by": behind,
        "total_commits": ahead,
        "commits": [commit_json(place, resolve_commit(place, sha)) for sha in shown],
        "files": _changed_files(place, common, head.sha)[:MAX_FILES] if page == 1 else [],
    }


def resolve_commit(place: Place, name: str) -> history.CommitInfo:
    """Return the commit of an id, branch or tag; 422 when there is none, 409 in an empty repository."""
    found = _resolve(place, name, "commit")
    if found is None:
        _refuse_empty(place)
        raise GitHubError(422, f"No commit found for SHA: {name}")
    return history.parse_commit(found)


def _resolve(place: Place, name: str, kind: str) -> GitObject | None:
    if _SHA.match(name):
        return place.repository.read(f"{name}^{{{kind}}}")
    spellings = (f"refs/heads/{name}", f"refs/tags/{name}", f"refs/{name}", name)
    tries = (_named(place, f"{spelling}^{{{kind}}}", name) for spelling in spellings)
    return next((found for found in tries if found is not None), None)


def _named(place: Place, expression: str, name: str) -> GitObject | None:
    """Return what an expression stands for when the caller's name in it is only a name."""
    return place.repository.read(expression) if is_safe_name(name) else None


def _refuse_empty(place: Place) -> None:
    if not history.refs(place.repository.path):
        raise GitHubError(409, "Git Repository is empty.")


def _fitting(entries: Sequence[GitEntry]) -> int:
    """Return how many entries of a tree GitHub would show.

    It does not say what its 7 MB count; here they are git's own lines: mode, kind, id, size, path.
    """
    sizes = accumulate(60 + len(entry.path) for entry in entries[:MAX_TREE_ENTRIES])
    return sum(size <= MAX_TREE_BYTES for size in sizes)


def _tree_item(place: Place, entry: GitEntry) -> JsonObject:
    item: JsonObject = {"path": entry.path, "mode": entry.mode, "type": entry.kind, "sha": entry.sha}
    if entry.size is not None:
        item["size"] = entry.size
    if entry.kind != "commit":
        item["url"] = f"{place.api}/git/{entry.kind}s/{entry.sha}"
    return item


def _content(place: Place, entry: GitEntry, ref_name: str, *, whole: bool) -> JsonObject:
    kinds = {"tree": "dir", "commit": "submodule"}
    content: dict[str, Any] = {
        "type": "symlink" if entry.mode == "120000" else kinds.get(entry.kind, "file"),
        "name": entry.path.rpartition("/")[2],
        "path": entry.path,
        "sha": entry.sha,
        "size": entry.size or 0,
        "url": f"{place.api}/contents/{entry.path}?ref={ref_name}",
        "git_url": f"{place.api}/git/{entry.kind}s/{entry.sha}",
        "html_url": f"{place.html}/blob/{ref_name}/{entry.path}",
        "download_url": None,
    }
    if whole and entry.kind == "blob":
        large = (entry.size or 0) > MAX_CONTENT_BYTES
        data = b"" if large else place.repository.blob(entry.sha)
        content |= {
            "encoding": "none" if large else "base64",
            "content": base64.encodebytes(data).decode(),
        }
    return content


def _changed_files(place: Place, base: str, head: str) -> Sequence[JsonObject]:
    changed = history.diff(place.repository.path, base, head)
    kinds = (("added", changed.added), ("removed", changed.removed), ("modified", changed.modified))
    return sorted(
        ({"filename": path, "status": kind} for kind, paths in kinds for path in paths),
        key=lambda item: item["filename"],
    )
