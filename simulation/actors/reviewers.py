"""Pull requests that remove clusters, and reviews of them: by a member of the team, by others, dismissed.

A pull request is opened, reviewed, changed and merged at moments of its own, and reviewed once more after
that. The webhook of a review is lost, or comes twice. What counts is decided here, by the rules of
docs/decisions/0015, and noted in the history of the fleet.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from localcloud.git.world.people import CONTRIBUTOR, PEOPLE, REVIEWER
from localcloud.git.world.pull_requests import PullRecord
from localcloud.git.world.reviews import ReviewRecord
from shared.app.intake.accept import accept
from shared.app.intake.webhook import ReviewDelivery
from shared.cluster.failures.errors import Conflict
from shared.ports import ApprovalRules
from simulation.actors.kinds import TEAM_REVIEWS
from simulation.desired_state import DesiredCluster
from simulation.operators import Operators

TEAM = "acme/approvers"
STORIES = (2, 4)
PAUSES = (1.0, 5.0, 20.0, 60.0)
"""Seconds between what happens to a pull request."""
BEFORE, AFTER = 4, 2
"""How many reviews and changes a pull request gets at most, before and after it is merged."""


@dataclass
class Story:
    """A pull request that removes clusters; ``base`` is the commit from which it branched off."""

    number: int
    branch: str
    base: str
    removed: frozenset[str]


class Reviewers:
    """The authors and reviewers of one fleet, in one seed of some, with a random stream of their own."""

    def __init__(self, seed: int, operators: Operators) -> None:
        self._chance = random.Random(f"{seed} {TEAM_REVIEWS}")  # noqa: S311
        self._operators, self._loop, self._cloud = operators, operators.loop, operators.cloud
        self._pulls = self._cloud.repository.pulls
        self._deliveries = 0
        self.acts = 0
        self._cloud.with_ports(
            lambda ports: replace(ports, config=replace(ports.config, approvals=ApprovalRules(teams=(TEAM,))))
        )

    def schedule(self, seconds: float) -> None:
        """Let there be more clusters at first, and pull requests at some moments of so many seconds."""
        self._loop.schedule(1, self._add)
        for _ in range(self._chance.randint(*STORIES)):
            self._loop.schedule(self._chance.uniform(seconds / 4, seconds), self._open)

    def _add(self) -> None:
        desired = self._operators.now
        for name in self._operators.names:
            if name not in desired.clusters:
                protected = self._chance.random() < 0.5
                desired = desired.with_cluster(DesiredCluster(name, protected=protected))
        self._operators.push(desired)

    def _open(self) -> None:
        """Open a pull request that removes some clusters, and plan what happens to it."""
        names = sorted(self._operators.now.clusters)
        if self._loop.peaceful or not names:
            return
        self.acts += 1
        git, branch = self._cloud.repository, f"removal-{self.acts}"
        base = git.head("main")
        git.reset(base, branch)
        removed = self._chance.sample(names, k=min(len(names), self._chance.choice((1, 2, 2, 3))))
        git.commit(dict.fromkeys(map(_path, removed)), branch=branch)
        pull = self._pulls.open("Remove clusters", branch, "main")
        story = Story(pull.number, branch, base, frozenset(removed))
        self._loop.log("%s: pull request %d removes %s", self._operators.fleet, pull.number, sorted(removed))
        after = (self._approve, self._approve_as_another, self._object, self._dismiss)
        before = (*after, self._approve, self._commit)
        acts = [*self._some(before, BEFORE), self._merge, *self._some(after, AFTER)]
        at = 0.0
        for act in acts:
            at += self._chance.choice(PAUSES)
            self._loop.schedule(at, partial(self._go_on, act, story))

    def _go_on(self, act: Callable[[Story], None], story: Story) -> None:
        if not self._loop.peaceful:
            act(story)

    def _some(self, acts: Sequence[Callable[[Story], None]], most: int) -> Sequence[Callable[[Story], None]]:
        return self._chance.choices(acts, k=self._chance.randint(0, most))

    def _approve(self, story: Story) -> None:
        self._submit(story, REVIEWER.login, "APPROVE")

    def _object(self, story: Story) -> None:
        self._submit(story, REVIEWER.login, "REQUEST_CHANGES")

    def _approve_as_another(self, story: Story) -> None:
        """Approve as somebody in no team."""
        self._submit(story, CONTRIBUTOR.login, "APPROVE")

    def _submit(self, story: Story, login: str, event: str) -> None:
        pull = self._pull(story)
        self._pulls.reviews.submit(pull, PEOPLE[login], event, "a reason")
        self._loop.log("%s: %s: %s of pull request %d", self._operators.fleet, login, event, story.number)
        self._note(story)
        self._announce(pull)

    def _dismiss(self, story: Story) -> None:
        """Dismiss the newest review that approves or requests changes."""
        for review in reversed(self._pulls.reviews.of(story.number)):
            if review.state != "DISMISSED":
                self._pulls.reviews.dismiss(review.id)
                self._loop.log("%s: dismissed: %s", self._operators.fleet, review)
                self._announce(self._pull(story))
                return

    def _commit(self, story: Story) -> None:
        """Commit once more: earlier reviews are then of an older commit; sometimes remove another cluster."""
        others = sorted(self._operators.history.desired(story.base).clusters.keys() - story.removed)
        more = self._chance.sample(others, k=1) if others and self._chance.random() < 0.5 else []
        story.removed |= frozenset(more)
        note = f"{story.number}.{self._chance.getrandbits(32)}".encode()
        files = {**dict.fromkeys(map(_path, more)), f"docs/{story.number}.md": note}
        self._cloud.repository.commit(files, branch=story.branch)

    def _merge(self, story: Story) -> None:
        """Merge it, unless the branch was set back meanwhile, or somebody changed the same cluster."""
        git = self._cloud.repository
        if not git.is_descendant(git.head("main"), story.base):
            return
        try:
            merged = self._pulls.merged_into_base(story.number, squash=self._chance.random() < 0.5)
        except Conflict:
            return
        self._loop.log("%s: pull request %d is merged", self._operators.fleet, story.number)
        self._operators.merged(merged.merge_commit, self._operators.now.without(*story.removed))
        self._note(story)

    def _pull(self, story: Story) -> PullRecord:
        return next(pull for pull in self._pulls.listed(state="all") if pull.number == story.number)

    def _note(self, story: Story) -> None:
        """Note that the reviews of a merged pull request approve its deletes now, of clusters that exist."""
        pull = self._pull(story)
        review = approving(self._pulls.reviews.of(story.number), pull.sha) if pull.merged else None
        if review is None:
            return
        self._operators.history.reviewed[pull.merge_commit] |= dict.fromkeys(story.removed, review.at)
        self._loop.log("    which approves %s of %s", sorted(story.removed), pull.merge_commit[:8])

    def _announce(self, pull: PullRecord) -> None:
        """Send the webhook of a review, never, once or twice."""
        if not pull.merged:
            return
        for _ in range(self._chance.choice((0, 1, 1, 2))):
            self._deliveries += 1
            event = ReviewDelivery("r1", f"review-{self._deliveries}", pull.merge_commit)
            self._loop.run_function(self._cloud, partial(accept, event))


def approving(reviews: Sequence[ReviewRecord], head: str) -> ReviewRecord | None:
    """Return the review that approves, among those of a pull request from the oldest to the newest.

    It is of the last commit, and the last word of the only member of the team. None where it does not.
    """
    words = {review.author.login: review for review in reviews if review.state != "COMMENTED"}
    word = words.get(REVIEWER.login)
    return word if word is not None and word.state == "APPROVED" and word.commit == head else None


def _path(name: str) -> str:
    return f"clusters/{name}/cluster.yaml"
