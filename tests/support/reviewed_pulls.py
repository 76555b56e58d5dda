"""A fleet in memory whose deletes the team acme/approvers approves by reviews of pull requests."""

from __future__ import annotations

from dataclasses import replace

from localcloud.git.world.people import PEOPLE
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.webhook import ReviewDelivery
from shared.ports import ApprovalRules, PlanRecord, Ports
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push, pushed
from tests.support.replaced_ports import Around

TEAM = "acme/approvers"
REMOVED = ("one", "two")


class ReviewedFleet:
    """Three clusters; a commit that removes the first two needs an approval.

    ``calls`` are those to the git host about merged pull requests.
    """

    def __init__(self, *, teams: tuple[str, ...] = (TEAM,), by_others: bool = False) -> None:
        self.cloud, self.number, self.calls = MemoryCloud(), 0, list[str]()
        self.configure(approvals=ApprovalRules(by_others, teams))
        self.cloud.with_ports(self._counted)
        push(self.cloud, fleet_files.fleet(*REMOVED, "kept"))
        self.cloud.run()

    def configure(self, **settings: object) -> None:
        def change(ports: Ports) -> Ports:
            return replace(ports, config=replace(ports.config, **settings))  # type: ignore[arg-type]

        self.cloud.with_ports(change)

    def _counted(self, ports: Ports) -> Ports:
        fleet, host = self, ports.git_host

        class Counted(Around):
            def __getattr__(self, name: str) -> object:
                if name in ("merged_as", "reviews", "removed_files", "pull_authors", "team_members"):
                    fleet.calls.append(name)
                return super().__getattr__(name)

        return replace(ports, git_host=Counted(host))  # type: ignore[arg-type]

    def propose(self, *removed: str, author: str = "operator@example.invalid") -> int:
        """Open a pull request that removes clusters; return its number."""
        git = self.cloud.repository
        git.reset(git.head("main"), "topic")
        gone = dict.fromkeys(f"clusters/{name}/cluster.yaml" for name in removed or REMOVED)
        git.commit(gone, branch="topic", author=author)
        self.number = git.pulls.open("Remove clusters", "topic", "main").number
        return self.number

    def commit(self, *, author: str = "operator@example.invalid") -> str:
        """Commit to the pull request's branch once more."""
        return self.cloud.repository.commit({"README.md": b"more"}, branch="topic", author=author)

    def review(self, login: str = "reviewer", event: str = "APPROVE", body: str = "") -> int:
        """Review the pull request as somebody, without a webhook; return the id of the review."""
        self.cloud.clock.advance(60)
        pulls = self.cloud.repository.pulls
        record = pulls.get(self.number)
        assert record is not None
        return pulls.reviews.submit(record, PEOPLE[login], event, body or ("x" * (event != "APPROVE"))).id

    def merge(self, *, squash: bool = False) -> str:
        """Merge the pull request and plan the merge; return its commit."""
        merged = self.cloud.repository.pulls.merged_into_base(self.number, squash=squash)
        self.plan(merged.merge_commit)
        return merged.merge_commit

    def plan(self, commit: str) -> None:
        accept(pushed(self.cloud, commit), self.cloud.ports)
        self.cloud.run(seconds=1200)

    def announce_only(self, commit: str, delivery: str) -> int:
        """Deliver the webhook of a review of what was merged as a commit; return the status of the answer."""
        return accept(ReviewDelivery(delivery, f"review-{delivery}", commit, 1), self.cloud.ports).status

    def announce(self, commit: str, delivery: str = "r1") -> int:
        """Deliver that webhook, and let the fleet come to rest."""
        status = self.announce_only(commit, delivery)
        self.cloud.run(seconds=1200)
        return status

    def plan_record(self, commit: str) -> PlanRecord:
        found = self.cloud.state.plan(commit)
        assert found is not None
        return found

    def said(self, commit: str) -> str:
        """Return what the reviews said when they were read last."""
        return str(self.plan_record(commit).review or "")

    @property
    def left(self) -> set[str]:
        """The clusters of the fleet."""
        return set(phases(self.cloud))
