"""What ``roadstead import --pull-request`` writes: a commit on a branch, and one pull request of it.

With the person's own git and own token, so that the pull request is theirs: the app may lack the right to
write, and somebody else approves. No file of the working tree changes. A second run pushes nothing that is
there, and shows the pull request that is open.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from cli.errors import CommandError, UsageError
from cli.worktree import Worktree, open_commit
from shared.github_app import api_address

BRANCH, TITLE = "roadstead/import", "Import clusters"
TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")
TIMEOUT = 30.0
LONGEST_BODY = 60_000
"""Characters; GitHub takes 65,536."""
_REMOTE = re.compile(
    r"(?:(?P<web>https?://[^/@]+)/|(?:ssh://)?(?:[^@/]+@)(?P<host>[^:/]+)(?::\d+)?[:/])(?P<name>[^/]+/[^/]+?)(?:\.git)?/?"
)
"""An address of a repository as git has it: of HTTPS, of SSH, or its short form."""


@dataclass(frozen=True)
class Target:
    """A repository on GitHub, the branch that is proposed to, and the newest commit of that."""

    root: Path
    api: str
    repository: str
    base: str
    commit: str
    token: str


def find_target(path: Path, base: str) -> Target:
    """Return where the pull request goes; raise UsageError for what is missing, before anything is read."""
    token = next((os.environ[name] for name in TOKENS if os.environ.get(name)), "")
    if not token:
        raise UsageError(
            "--pull-request needs your token in GITHUB_TOKEN (contents: write, pull requests: write), "
            "such as that of `gh auth token`"
        )
    if not path.is_dir():
        raise UsageError(f"there is no folder {path}; give the folder of a fleet repository")
    root = Path(_git(path, "rev-parse", "--show-toplevel").strip())
    remote = _git(root, "remote", "get-url", "origin").strip()
    found = _REMOTE.fullmatch(remote)
    if found is None:
        raise UsageError("the remote origin is no repository on GitHub: https://HOST/OWNER/NAME")
    _git(root, "fetch", "--quiet", "origin", base)
    commit = _git(root, "rev-parse", "FETCH_HEAD").strip()
    web = found["web"] or f"https://{found['host']}"
    return Target(root, api_address(web), found["name"], base, commit, token)


def tree_of(target: Target, path: Path) -> Worktree:
    """Return the fleet repository as the branch has it that is proposed to."""
    return open_commit(path, target.commit)


def propose(target: Target, path: Path, files: Mapping[str, str], body: str) -> str:
    """Push a commit with files below a folder, open one pull request, and return its address."""
    prefix = _git(path, "rev-parse", "--show-prefix").strip()
    tree = _tree(target, {f"{prefix}{name}": text for name, text in files.items()})
    former = _git(target.root, "ls-remote", "origin", f"refs/heads/{BRANCH}").partition("\t")[0]
    parents = [target.commit]
    if former:
        _git(target.root, "fetch", "--quiet", "origin", BRANCH)
        if not _git(target.root, "log", "-1", "--format=%s", former).startswith(TITLE):
            raise CommandError(
                f"somebody has pushed to {BRANCH}: it is left as it is. Merge its pull request, or delete it"
            )
        parents = [former] if _is_ancestor(target, former) else [former, target.commit]
    if not former or _git(target.root, "rev-parse", f"{former}^{{tree}}").strip() != tree:
        named = [argument for parent in parents for argument in ("-p", parent)]
        commit = _git(target.root, "commit-tree", tree, *named, "-m", TITLE).strip()
        _git(target.root, "push", "--quiet", "origin", f"{commit}:refs/heads/{BRANCH}")
    return _opened(target, body[:LONGEST_BODY])


def _is_ancestor(target: Target, former: str) -> bool:
    """Return whether the branch already has the newest commit."""
    command = ["git", "-C", str(target.root), "merge-base", "--is-ancestor", target.commit, former]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _tree(target: Target, files: Mapping[str, str]) -> str:
    """Return the id of the newest tree with more files, written with an index of its own."""
    with tempfile.TemporaryDirectory(prefix="roadstead-") as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git(target.root, "read-tree", target.commit, more=index)
        for name, text in sorted(files.items()):
            blob = _git(target.root, "hash-object", "-w", "--stdin", given=text).strip()
            _git(target.root, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", more=index)
        return _git(target.root, "write-tree", more=index).strip()


def _opened(target: Target, body: str) -> str:
    """Return the address of the open pull request of the branch, opened if there is none."""
    owner = target.repository.partition("/")[0]
    query = {"head": f"{owner}:{BRANCH}", "base": target.base, "state": "open"}
    known = _call(target, "GET", query=query)
    if known:
        return str(known[0]["html_url"])
    wanted = {"head": BRANCH, "base": target.base, "title": TITLE, "body": body}
    return str(_call(target, "POST", wanted=wanted)["html_url"])


def _call(
    target: Target, method: str, *, query: Mapping[str, str] | None = None, wanted: object = None
) -> Any:
    headers = {"Accept": "application/vnd.github+json", "Authorization": f"Bearer {target.token}"}
    url = f"{target.api}/repos/{target.repository}/pulls"
    try:
        answer = httpx.request(method, url, params=query, json=wanted, headers=headers, timeout=TIMEOUT)
        found = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise CommandError(
            f"GitHub does not answer: {type(error).__name__}. The branch {BRANCH} is there"
        ) from None
    if not answer.is_success:
        said = found.get("message") if isinstance(found, dict) else ""
        raise CommandError(
            f"GitHub answered {answer.status_code}: {said}. The branch {BRANCH} is there: give the token the "
            "permission pull requests: write, and run the command again"
        )
    return found


def _git(folder: Path, *arguments: str, given: str = "", more: Mapping[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            input=given,
            env={**os.environ, **(more or {})},
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise CommandError(f"git cannot be run: {error.strerror}") from error
    if done.returncode:
        raise CommandError(f"git {arguments[0]} failed: {done.stderr.strip() or 'it said nothing'}")
    return done.stdout
