"""The PullRequests port on the pull requests of a repository in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from localcloud.github.world.people import PEOPLE, account_of
from localcloud.github.world.pull_requests import PullRecord, Pulls
from localcloud.github.world.reviews import ReviewRecord
from localcloud.github.world.text_limits import MAX_ANNOTATIONS
from shared.cluster.failures.errors import Dependency, Unauthorized
from shared.ports import Check, CheckRun, Comment, MergedPull, Pull, PullAuthors, Review, ReviewState
from shared.ports.github import account_behind, co_authors

AUTHOR = "operator"
APP_AUTHOR = "roadstead[bot]"


class WorldPullRequests:
    """Acts as the one user of the world, or as a GitHub App, which alone may write check runs."""

    def __init__(self, pulls: Pulls, *, app: bool = False) -> None:
        self._pulls, self._app = pulls, app

    @property
    def can_check(self) -> bool:
        """Whether this is a GitHub App."""
        return self._app

    def open_pulls(self, base: str) -> Sequence[Pull]:
        """Return the open ones into a branch, newest first."""
        return [pull_of(record) for record in self._pulls.listed(base=base)[:100]]

    def pull(self, number: int) -> Pull | None:
        """Return a pull request with its merge result."""
        record = self._pulls.get(number)
        if record is None:
            return None
        mergeable, merge = self._pulls.merge(record)
        return pull_of(record, None if mergeable is None else merge or "")

    def comment(self, number: int, marker: str) -> Comment | None:
        """Return our oldest comment with the marker."""
        mine = (c for c in self._pulls.comments(number) if c.author == self._author)
        return next((Comment(c.id, c.body) for c in mine if c.body.startswith(marker)), None)

    def write_comment(self, number: int, body: str, *, over: Comment | None) -> None:
        """Write a comment."""
        if over is None:
            self._pulls.write_comment(number, self._author, body)
        else:
            self._pulls.edit_comment(over.id, body)

    def check_runs(self, commit: str, name: str) -> Sequence[CheckRun]:
        """Return the newest check run of each app that has one of a name of a commit."""
        found = {each.app: each for each in reversed(self._pulls.checks(commit)) if each.name == name}
        return [CheckRun(each.name, each.status, each.conclusion or "") for each in found.values()]

    def check(self, commit: str, check: Check) -> None:
        """Write a check run, its annotations in as many calls as GitHub wants."""
        if not self._app:
            raise Unauthorized("You must authenticate via a GitHub App.")
        output = {"title": check.title, "summary": check.summary}
        body = {"name": check.name, "conclusion": check.conclusion, "output": output}
        record = self._pulls.write_check(commit, {**body, "details_url": check.details_url or None})
        found = [_annotation(asdict(a)) for a in check.annotations]
        for start in range(0, len(found), MAX_ANNOTATIONS):
            part = found[start : start + MAX_ANNOTATIONS]
            self._pulls.edit_check(record.id, {"output": {**output, "annotations": part}})

    def merged_as(self, commit: str) -> Sequence[MergedPull]:
        """Return the merged pull requests that brought a commit."""
        found = self._pulls.with_commit(commit)
        return [_merged(p, self._pulls.repository, p.merged_at) for p in found if p.merged_at]

    def reviews(self, number: int) -> Sequence[Review] | None:
        """Return the reviews of a pull request, oldest first."""
        return [_review(review) for review in self._pulls.reviews.of(number)]

    def removed_files(self, number: int) -> frozenset[str] | None:
        """Return the paths that a pull request removes or renames."""
        gone = (
            file for file in self._pulls.files(self._record(number)) if file.status in ("removed", "renamed")
        )
        return frozenset(file.previous or file.path for file in gone)

    def pull_authors(self, number: int) -> PullAuthors:
        """Return the accounts of the authors and committers of a pull request's commits."""
        commits = self._pulls.commits_of(self._record(number))
        people = [account_of(address) for each in commits for address in (each.author, each.committer)]
        known = [person.id if person else None for person in people]
        known += [account_behind(address) for each in commits for address in co_authors(each.message)]
        accounts = frozenset(each for each in known if each is not None)
        return PullAuthors(accounts, complete=None not in known and bool(known))

    def team_members(self, team: str) -> frozenset[int] | None:
        """Return the members of a team."""
        found = self._pulls.teams.of(team)
        if found is None:
            raise Dependency(f"no team {team}")
        return frozenset(person.id for person in found)

    def _record(self, number: int) -> PullRecord:
        record = self._pulls.get(number)
        if record is None:
            raise Dependency(f"no pull request {number}")
        return record

    @property
    def _author(self) -> str:
        return APP_AUTHOR if self._app else AUTHOR


def _annotation(fields: dict[str, object]) -> dict[str, object]:
    line = fields["line"]
    return {
        "path": fields["path"],
        "start_line": line,
        "end_line": line,
        "annotation_level": fields["level"],
        "message": fields["message"],
    }


def pull_of(record: PullRecord, merge: str | None = None, html: str = "https://github.example") -> Pull:
    """Return a pull request as the port has it."""
    return Pull(
        record.number,
        record.sha,
        record.base,
        merge=merge,
        fork=record.fork,
        open=record.state == "open",
        merged=record.merged,
        url=f"{html}/pull/{record.number}",
        labels=frozenset(record.labels),
    )


def _review(record: ReviewRecord) -> Review:
    url = f"https://github.example/pull/{record.pull}#pullrequestreview-{record.id}"
    state, at = ReviewState(record.state), record.at.replace(microsecond=0)
    return Review(
        record.id, record.author.id, record.author.login, state, record.commit, at, url, record.body
    )


def _merged(record: PullRecord, repository: int, at: datetime) -> MergedPull:
    return MergedPull(
        number=record.number,
        head=record.sha,
        base=record.base,
        repository=repository,
        merge_commit=record.merge_commit,
        author=PEOPLE[record.author].id,
        at=at.replace(microsecond=0),
        labels=frozenset(record.labels),
    )
