"""Our own branches on GitLab, by git, and their merge requests, by the API.

The API moves no branch to a commit. So a commit, and the move of a branch to it, is a push, which says what
the branch had before: see ``shared.adapters.git.writing``. Sources: docs.gitlab.com/api/merge_requests,
/api/branches, /api/protected_branches.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

from gitlab.v4.objects import Project

from shared.adapters.git.writing import WritableGit
from shared.adapters.gitlab.client import GitLabClient, page
from shared.adapters.gitlab.merge_requests import pull_of
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest
from shared.ports.pull_requests import NewCommit, Pull, PullText

_DEVELOPER = 30
"""The level of those who may push (docs.gitlab.com/api/access_requests, "Valid access levels")."""


class GitLabBranches(WritableGit):
    """The part of the port that is about our own branches."""

    _client: GitLabClient
    to_write = (
        "give the access token of GIT_PASSWORD the scope api and the role Developer, or Maintainer where a "
        "rule protects the branch"
    )

    @contextmanager
    def _writing(self, missing: str) -> Iterator[Project]:
        """Lend the project for one call; a refusal says which permissions it takes."""
        with self._permitted(), self._client.calling(missing) as project:
            yield project

    def is_guarded(self, branch: str) -> bool:
        """Return whether a rule lets no Developer push to a branch of this name."""
        with self._client.calling("no rules of branches") as project:
            rules = page(project.protectedbranches)
            levels = [
                {int(access["access_level"] or 0) for access in rule["push_access_levels"]}
                for rule in rules
                if fnmatchcase(branch, _pattern(str(rule["name"])))
            ]
            return bool(levels) and not any(_DEVELOPER in level for level in levels)

    def add_commit(self, commit: NewCommit) -> str:
        """Create a commit of the token's user, which waits for its branch."""
        user = self._client.user
        name = "".join(letter for letter in user.name if letter not in "<>\n")
        address = "".join(letter for letter in user.address if letter not in "<>\n ")
        return self.new_commit(commit, f"{name} <{address}>", int(time.time()))

    def delete_branch(self, branch: str) -> None:
        """Delete a branch, which closes its merge requests; one that does not exist is success."""
        try:
            with self._writing(f"no branch {branch}") as project:
                project.branches.delete(branch)
        except Dependency:
            return

    def open_pull(self, branch: str, base: str, text: PullText) -> Pull:
        """Open a merge request; GitLab answers 409 when one is open, which takes another call to find.

        GitLab opens one for a branch without commits of its own as well, which is refused here.
        """
        heads = self.branches("")
        if branch in heads and base in heads and self.is_descendant(heads[base], heads[branch]):
            raise InvalidManifest(f"no commits between {base} and {branch}")
        between = {"source_branch": branch, "target_branch": base}
        try:
            with self._writing("no merge requests") as project:
                return pull_of(project.mergerequests.create({**between, **_text(text)}).attributes)
        except Conflict as error:
            if "already exists" not in str(error).lower():
                raise
        with self._writing("no merge requests") as project:
            listed = map(pull_of, page(project.mergerequests, state="opened", **between))
            found = next((pull for pull in listed if not pull.fork), None)  # anybody names a branch of a fork
            if found is None:
                raise Conflict(f"the merge request of {branch} was closed meanwhile")
            return found

    def edit_pull(self, number: int, text: PullText) -> None:
        """Replace what a merge request says."""
        with self._writing(f"no merge request {number}") as project:
            project.mergerequests.update(number, _text(text))

    def close_pull(self, number: int) -> None:
        """Close a merge request; one that is closed is success."""
        with self._writing(f"no merge request {number}") as project:
            project.mergerequests.update(number, {"state_event": "close"})


def _text(text: PullText) -> dict[str, Any]:
    return {"title": text.title, "description": text.body}


def _pattern(name: str) -> str:
    """Return the name of a rule as fnmatch reads it: of its signs, only * is one of GitLab's."""
    return name.replace("[", "[[]").replace("?", "[?]")
