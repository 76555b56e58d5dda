"""``python -m localcloud pull``: opens, shows, merges and closes pull requests of the local GitHub."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from localcloud.runtime.state_folder import nearest_state

LIST = "python -m localcloud pull list shows the pull requests"


class _Refused(Exception):
    """GitHub does not do it; the message says why, and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do one thing to the pull requests of a running cloud; return 1 with the reason when that fails."""
    given = parser().parse_args(arguments)
    try:
        urls = json.loads((given.state / "cloud.json").read_text())["urls"]
        settings = json.loads((given.state / "local.settings.json").read_text())["Values"]
        with _GitHub(urls["github"], settings["GITHUB_REPOSITORY"], settings["GITHUB_TOKEN"]) as github:
            print(_ACTS[given.act](github, given))
    except (OSError, httpx.HTTPError) as error:
        print(f"no local cloud runs in {given.state}: {error}; start it with make up", file=sys.stderr)
        return 1
    except _Refused as error:
        print(error, file=sys.stderr)
        return 1
    return 0


class _GitHub:
    """The REST API of a repository at the local GitHub."""

    def __init__(self, address: str, repository: str, token: str) -> None:
        self._root = f"{address}/repos/{repository}"
        self._client = httpx.Client(headers={"Authorization": f"Bearer {token}"}, trust_env=False)

    def get(self, path: str, missing: str = "") -> Any:
        """Return what is at a path; ``missing`` says what a 404 means."""
        return self.call("GET", path, missing)

    def call(self, method: str, path: str, missing: str = "", **body: Any) -> Any:
        """Return the answer; raise _Refused with the reason of GitHub."""
        reply = self._client.request(method, self._root + path, json=body or None)
        if reply.is_success:
            return reply.json()
        if reply.status_code == httpx.codes.NOT_FOUND and missing:
            raise _Refused(missing)
        answer = reply.json()
        details = "; ".join(str(detail["message"]) for detail in answer.get("errors") or ())
        raise _Refused(f"the local GitHub refuses it: {details or answer['message']}")

    def branch(self, name: str) -> Any:
        """Return the newest commit of a branch."""
        missing = f"the local GitHub has no branch {name}; push it: git push origin {name}"
        return self.get(f"/branches/{name}", missing)["commit"]

    def pull(self, number: int) -> Any:
        """Return a pull request."""
        return self.get(f"/pulls/{number}", f"there is no pull request {number}; {LIST}")

    def open_pull(self, number: int) -> Any:
        """Return a pull request that is open."""
        pull = self.pull(number)
        if pull["state"] != "open":
            raise _Refused(f"the pull request {number} is {_state(pull)} already; {LIST}")
        return pull

    def __enter__(self) -> _GitHub:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


def _open(github: _GitHub, given: argparse.Namespace) -> str:
    branch, base = given.branch, given.base or github.get("")["default_branch"]
    newest = github.branch(base) and github.branch(branch)
    title = given.title or newest["commit"]["message"].partition("\n")[0]
    pull = github.call("POST", "/pulls", head=branch, base=base, title=title, body=given.body)
    return (
        f"Opened pull request {pull['number']}: {title}\n"
        f"See its plan, in some seconds: python -m localcloud pull show {pull['number']}"
    )


def _merge(github: _GitHub, given: argparse.Namespace) -> str:
    pull = github.open_pull(given.number)
    branch, base = pull["head"]["ref"], pull["base"]["ref"]
    if pull["mergeable"] is False:
        raise _Refused(
            f"the branch {branch} conflicts with {base}; on {branch}, run "
            f"git pull --no-rebase origin {base}, resolve the conflict, commit and push; then merge again"
        )
    method = "squash" if given.squash else "merge"
    merged = github.call("PUT", f"/pulls/{given.number}/merge", merge_method=method, sha=pull["head"]["sha"])
    return f"Merged pull request {given.number} into {base}: commit {merged['sha'][:8]}"


def _close(github: _GitHub, given: argparse.Namespace) -> str:
    github.open_pull(given.number)
    github.call("PATCH", f"/pulls/{given.number}", state="closed")
    return f"Closed pull request {given.number} without a merge"


def _list(github: _GitHub, given: argparse.Namespace) -> str:
    pulls = github.get(f"/pulls?per_page=100&state={'all' if given.all else 'open'}")
    if not pulls:
        return "There is no pull request." if given.all else "There is no open pull request."
    wide = max(len(pull["head"]["ref"]) for pull in pulls)
    return "\n".join(
        f"{pull['number']:>4}  {_state(pull):<6}  {pull['head']['ref']:<{wide}}  {pull['title']}"
        for pull in pulls
    )


def _show(github: _GitHub, given: argparse.Namespace) -> str:
    pull = github.pull(given.number)
    parts = [
        f"{pull['title']}\n{_state(pull)}: {pull['head']['ref']} into {pull['base']['ref']}, "
        f"commit {pull['head']['sha'][:8]}"
    ]
    statuses = github.get(f"/commits/{pull['head']['sha']}/status")["statuses"]
    parts += [f"{status['context']}: {status['state']}: {status['description'] or ''}" for status in statuses]
    parts += [str(pull["body"])] if pull["body"] else []
    comments = github.get(f"/issues/{given.number}/comments?per_page=100")
    for comment in comments:  # GitHub's pages show no HTML comments
        text = re.sub(r"<!--.*?-->\s*", "", comment["body"], flags=re.DOTALL).strip()
        parts.append(f"--- {comment['user']['login']}\n\n{text}")
    if not comments:
        parts.append("There is no comment yet. Roadstead writes its plan within some seconds.")
    return "\n\n".join(parts)


_ACTS = {"open": _open, "merge": _merge, "close": _close, "list": _list, "show": _show}


def _state(pull: dict[str, Any]) -> str:
    return "merged" if pull["merged_at"] else str(pull["state"])


def parser() -> argparse.ArgumentParser:
    """Return what the command line takes."""
    found = argparse.ArgumentParser(prog="python -m localcloud pull", description=__doc__)
    acts = found.add_subparsers(dest="act", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--state", type=Path, default=nearest_state(), help="state folder, by default the nearest .localcloud"
    )
    opens = acts.add_parser("open", parents=[common], help="open a pull request of a branch that was pushed")
    opens.add_argument("branch", metavar="BRANCH")
    opens.add_argument("--title", help="by default the first line of the newest commit")
    opens.add_argument("--body", default="", help="its text")
    opens.add_argument("--base", help="the branch that is to get it, by default the main branch")
    for name, text in (
        ("merge", "merge it"),
        ("close", "close it without a merge"),
        ("show", "show what it is"),
    ):
        act = acts.add_parser(name, parents=[common], help=text)
        act.add_argument("number", metavar="NUMBER", type=int)
        if name == "merge":
            act.add_argument("--squash", action="store_true", help="as one commit")
    lists = acts.add_parser("list", parents=[common], help="list the open pull requests")
    lists.add_argument("--all", action="store_true", help="list those that were merged or closed, too")
    return found
