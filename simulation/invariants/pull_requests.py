"""The rules of pull requests: they change nothing, delay nothing, and each gets a check that is so.

"pull request": a preview changed a record or sent something but another preview or a count of objects on
clusters, its request was queued with those of the fleet, its newest commit has no check at the end, or the
check says what is not so.
"""

from __future__ import annotations

from localcloud.git.world.pull_requests import PullRecord
from localcloud.memory.memory_cloud import MemoryCloud
from shared.ports import Message
from simulation.actors.contributors import PROPOSALS, ContributedCommit, Contributors
from simulation.event_loop import EventLoop
from simulation.rule import RuleViolated

CHECK = "roadstead/plan"
OPEN = ("", "pending")


class PullRequestInvariant:
    """Checks what the functions do for pull requests."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop

    def changes(self, what: str) -> None:
        """Check that no pull request is behind a change of what is stored, or of Azure."""
        if self._loop.actor.queue == "previews":
            raise RuleViolated("pull request", f"a preview changes {what}")

    def sent(self, cloud: MemoryCloud, queue: str, message: Message) -> None:
        """Check that pull requests wait in a queue and in sessions of their own."""
        if queue == "previews":
            # One that waits is sent again as it is, in the session in which the unreadable ones are planted.
            if message.session == cloud.ports.config.fleet and not message.id.startswith("waiting:"):
                raise RuleViolated("pull request", f"{message.id} waits in the session of the fleet")
            return
        if not message.id.startswith("readiness:count:"):  # reads what the objects are that it would delete
            self.changes(f"the queue {queue}: {message.id}")
        body = message.body.replace(" ", "")
        if queue == "plans" and ('"kind":"pull"' in body or '"kind":"outdated"' in body):
            raise RuleViolated("pull request", f"{message.id} waits among the requests of the fleet")

    def ended(self, cloud: MemoryCloud, contributors: Contributors) -> None:
        """Check, at the end, what GitHub shows on every commit of every pull request."""
        for commit, proposal in contributors.proposals.items():
            if proposal.fork and "success" in _results(cloud, commit):
                raise RuleViolated("pull request", f"the check of {commit[:8]}, of a fork, is a success")
        for pull in cloud.repository.pulls.listed():
            if not pull.head.startswith(PROPOSALS):  # no event of these is delivered here
                self._has_check(cloud, pull, contributors.proposals[pull.sha])

    def _has_check(self, cloud: MemoryCloud, pull: PullRecord, proposal: ContributedCommit) -> None:
        results = _results(cloud, pull.sha)
        what = f"pull request {pull.number} at {pull.sha[:8]}"
        if not results or (results[0] in OPEN and not proposal.fork):
            raise RuleViolated("pull request", f"the check of {what} has not ended: {results}")
        if proposal.refused and results[0] != "failure":
            raise RuleViolated(
                "pull request", f"the check of {what} is {results[0]}, and a manifest is invalid"
            )
        comments = [comment.body for comment in cloud.repository.pulls.comments(pull.number)]
        if not any(f" head={pull.sha} " in body for body in comments):
            raise RuleViolated("pull request", f"{what} has no comment")


def _results(cloud: MemoryCloud, commit: str) -> list[str]:
    """Return what the checks, or the statuses, of a commit say, the newest first; "" has not ended."""
    repository = cloud.repository
    checks = [check.conclusion or "" for check in repository.pulls.checks(commit) if check.name == CHECK]
    statuses = [
        record.status.state
        for record in repository.statuses.history(commit)
        if record.status.context == CHECK
    ]
    return [*checks, *statuses]
