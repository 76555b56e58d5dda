"""The approval of a plan that counts: one that was sent, an earlier one, or a review on the git host.

A review that counts is an approving one, by a member of a named team, of exactly the commit of the pull
request that was merged as exactly the planned commit, and that pull request itself removes every cluster
whose delete needs approval: so the reviewer saw each removal, also when the merge brought other changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

from shared.app.notifications import store_act
from shared.app.outbox import send_all, unlike
from shared.app.records import again
from shared.app.repository import PlanInputs, plan_of
from shared.cluster.failures.errors import ReconcileError, Retryable
from shared.cluster.failures.retry import wait_before_retry
from shared.cluster.history import Act
from shared.cluster.queues.envelopes import Envelope
from shared.cluster.queues.message_parts import Approval
from shared.cluster.queues.messages import PlanRequest, QueueRequest, ReviewRequest, ToPlan
from shared.cluster.record import ClusterRecord
from shared.cluster.review_check import IgnoredReview, ReviewCheck, Verdict
from shared.frozen import dataclass, replace
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.repository_layout import cluster_path
from shared.masking import cut, without_secrets
from shared.plan.plan import Plan
from shared.plan.platform_plan import PlatformPlan
from shared.plan.retained import RetainedSystems
from shared.ports import FleetRecord, MergedPull, PlanRecord, Ports, Review, ReviewState

PLANNING = timedelta(minutes=5)
"""How long after a merge a plan of the commit before it may be saved, which was read before."""
_DECISIVE = (ReviewState.APPROVED, ReviewState.CHANGES_REQUESTED, ReviewState.DISMISSED)
"""A comment leaves what its author said before; a dismissed review takes it back."""


def pull_of(commit: str, branch: str, repository: int, pulls: Sequence[MergedPull]) -> MergedPull | None:
    """Return the pull request that was merged as a commit into a branch of a repository, None for none."""
    merged = (commit, branch, repository)
    return next((p for p in pulls if (p.merge_commit, p.base, p.repository) == merged), None)


def standing(reviews: Sequence[Review]) -> Sequence[Review]:
    """Return what each reviewer said last, newest first, of reviews from the oldest to the newest."""
    last: dict[int, Review] = {}
    for review in reviews:
        if review.state in _DECISIVE:
            last.pop(review.reviewer, None)
            last[review.reviewer] = review
    return list(reversed(last.values()))


def not_removed(clusters: Collection[str], removed_files: Collection[str]) -> Sequence[str]:
    """Return the clusters whose manifests a pull request does not remove, by name."""
    return sorted(name for name in clusters if cluster_path(name) not in removed_files)


def left_at(commit: str, pull: MergedPull, plans: Sequence[PlanRecord]) -> datetime | None:
    """Return when another commit was planned last after the merge, None if the branch never left it.

    Whoever set the branch back has undone the merge, and an earlier review is no approval of it any more. A
    plan of the commit before the merge may end shortly after it.
    """
    others = [record.at for record in plans if record.plan.commit != commit]
    return max((at for at in others if at > pull.at + PLANNING), default=None)


@dataclass(frozen=True)
class Approvals:
    """The approving reviews that count so far, newest first, and why each other one does not, by login."""

    counting: tuple[Review, ...]
    ignored: Mapping[str, IgnoredReview]

    def only(self, counts: Callable[[Review], bool], otherwise: IgnoredReview) -> Approvals:
        """Return those that count; each other one does not, for this reason."""
        refused = {review.login: otherwise for review in self.counting if not counts(review)}
        return Approvals(tuple(filter(counts, self.counting)), {**self.ignored, **refused})


def objection(reviews: Sequence[Review], members: Collection[int]) -> Review | None:
    """Return a member's request for changes, None where there is none."""
    requested = (r for r in reviews if r.state is ReviewState.CHANGES_REQUESTED)
    return next((r for r in requested if r.reviewer in members), None)


# Approvals by a review: the planner reads the reviews itself, and believes no webhook.
#
# It asks only for a plan with deletes that need approval: with the plan, once more half a minute later
# because the host's lists may lag behind the merge, and after each webhook of a review of its pull request.

log = logging.getLogger(__name__)

AGAIN_SECONDS = 30.0
ATTEMPTS = 8
_MAY_LAG = (Verdict.NO_PULL, Verdict.NO_REVIEW)
MAX_TEXT = 200
_SHOWN = 5


@dataclass(frozen=True)
class ReviewAnswer:
    """What the reviews say; ``approval`` if one approves, ``retry`` if the host may answer later."""

    check: ReviewCheck
    approval: Approval | None = None
    act: Act | None = None
    retry: Retryable | None = None


def read_reviews(
    commit: str, deletes: Mapping[str, datetime], fleet: FleetRecord, ports: Ports
) -> ReviewAnswer:
    """Return whether a review approves the deletes of the planned commit.

    ``deletes`` are all that need approval, with the time at which each cluster became part of the fleet.
    Takes two calls to the host, and three more where somebody approved; one more for each further team and
    each further 100 entries of a list.
    """
    try:
        found = _read(commit, deletes, fleet, ports)
    except ReconcileError as error:
        log.warning("the reviews of %s could not be read: %s: %s", commit[:8], error.kind, error)
        check = ReviewCheck(Verdict.UNREADABLE, ports.clock(), {"error": f"{error.kind}: {error}"})
        return ReviewAnswer(check, retry=error if isinstance(error, Retryable) else None)
    log.info("the reviews of %s: %s", commit[:8], found.check)
    return found


def reading_again(
    reviewed: ReviewAnswer, request: QueueRequest, commit: str, ports: Ports, *, first: bool
) -> Envelope | None:
    """Return another reading of the reviews, where it may have another result without a new review."""
    attempt = request.attempt if isinstance(request, ReviewRequest) else 0
    after = AGAIN_SECONDS if first and reviewed.check.verdict in _MAY_LAG else None
    if reviewed.retry is not None and attempt < ATTEMPTS:
        after = wait_before_retry(reviewed.retry, attempt + 1, ports.random(), ports.config.timing.retries)
    return None if after is None else unlike(ReviewRequest(commit=commit, attempt=attempt + 1), ports, after)


def approved_request(request: ReviewRequest, ports: Ports) -> PlanRequest | None:
    """Return the request to plan with the approval of a review, None where none approves."""
    fleet, teams = ports.state.fleet(), ports.reviewers
    plan_record = ports.state.plan(request.commit) if teams and request.commit == fleet.commit else None
    deletes = _deletes(plan_record, ports)
    if plan_record is None or not deletes:
        log.info("no delete of commit %s waits for a review", request.commit[:8])
        return None
    reviewed = read_reviews(request.commit, deletes, fleet, ports)
    if reviewed.act is not None:
        store_act(reviewed.act, ports)
    _save(plan_record, reviewed.check, ports)
    if reviewed.approval is not None:
        return PlanRequest(again=True, reason="approved", approval=reviewed.approval)
    again = reading_again(reviewed, request, request.commit, ports, first=False)
    if again is not None:
        send_all([again], ports)
    return None


@again
def _save(read: PlanRecord, check: ReviewCheck, ports: Ports) -> None:
    """Save what the reviews say, unless the commit was planned again: that plan reads them itself."""
    plan_record = ports.state.plan(read.plan.commit)
    if plan_record is not None and plan_record.plan == read.plan:
        ports.state.save_review(replace(plan_record, review=check))


def _deletes(plan_record: PlanRecord | None, ports: Ports) -> Mapping[str, datetime]:
    """Return the deletes of a plan that need approval."""
    names = plan_record.plan.deletes_needing_approval if plan_record else frozenset[str]()
    items = plan_record.plan.items if plan_record else ()
    if not all(item.hold.by_review for item in items if item.hold and item.cluster in names):
        return {}
    created = {r.name: r.created for r in ports.state.clusters_named(sorted(names))} if names else {}
    return created if len(created) == len(names) else {}


def _read(commit: str, deletes: Mapping[str, datetime], fleet: FleetRecord, ports: Ports) -> ReviewAnswer:
    """Read no more than the decision needs; raise an error of the host."""
    config, now, host = ports.config, ports.clock(), ports.git_host
    teams = ", ".join(config.approvals.teams)

    def no(verdict: Verdict, **details: str) -> ReviewAnswer:
        return ReviewAnswer(ReviewCheck(verdict, now, details))

    repository = fleet.origin.source.repository if fleet.origin.source else 0
    pull = pull_of(commit, config.branch, repository, host.merged_as(commit))
    if pull is None:
        return no(Verdict.NO_PULL, branch=config.branch)
    number, said = str(pull.number), host.reviews(pull.number)
    if said is None:
        return no(Verdict.TOO_MANY, pull=number, what="reviews")
    latest = standing(said)
    approvals = Approvals(tuple(r for r in latest if r.state is ReviewState.APPROVED), {})
    approvals = approvals.only(lambda r: r.commit == pull.head, IgnoredReview.EARLIER_COMMIT)
    approvals = approvals.only(lambda r: r.at > max(deletes.values()), IgnoredReview.EARLIER_CLUSTER)
    if approvals.counting:
        left = left_at(commit, pull, ports.state.plans_since(pull.at))
        approvals = approvals.only(lambda r: left is None or r.at > left, IgnoredReview.EARLIER_PLAN)
    if approvals.counting:
        members = set[int]()
        removed = host.removed_files(pull.number)
        if removed is None:
            return no(Verdict.TOO_MANY, pull=number, what="files")
        missing = not_removed(deletes, removed)
        if missing:
            return no(Verdict.NOT_IN_PULL, pull=number, clusters=", ".join(missing[:_SHOWN]))
        for team in config.approvals.teams:
            found = host.team_members(team)
            if found is None:
                return no(Verdict.TOO_MANY, pull=number, what=f"members of {team}")
            members |= found
        against = objection(latest, members)
        if against is not None:
            return no(Verdict.CHANGES_REQUESTED, pull=number, login=against.login, teams=teams)
        approvals = approvals.only(lambda r: r.reviewer in members, IgnoredReview.NO_MEMBER)
    if approvals.counting and config.approvals.by_others:
        authors = host.pull_authors(pull.number)
        own = {pull.author, *authors.accounts}
        approvals = approvals.only(lambda r: r.reviewer not in own, IgnoredReview.AUTHOR)
        approvals = approvals.only(lambda _: authors.complete, IgnoredReview.UNKNOWN_AUTHORS)
    if not approvals.counting:
        details = {"pull": number, "teams": teams, "head": pull.head[:8]}
        return ReviewAnswer(ReviewCheck(Verdict.NO_REVIEW, now, details, approvals.ignored))
    review = approvals.counting[0]
    check = ReviewCheck(Verdict.APPROVED, now, {"pull": number, "login": review.login})
    approval = _approval(commit, deletes, pull, review, host.name)
    return ReviewAnswer(check, approval, _act_of(approval, review, host.name, now))


def _approval(
    commit: str, deletes: Mapping[str, datetime], pull: MergedPull, review: Review, host: str
) -> Approval:
    said = cut(" ".join(without_secrets(review.text).split()), MAX_TEXT)
    reason = f"approved pull request #{pull.number} at {pull.head[:8]}: {review.url}"
    reason += f" ({said})" if said else ""
    clusters = tuple(sorted(deletes))
    return Approval(
        commit=commit, clusters=clusters, by=f"{review.login} on {host}", at=review.at, reason=reason
    )


def _act_of(approval: Approval, review: Review, host: str, now: datetime) -> Act:
    return Act(
        id=f"review-{review.id}-{approval.commit[:12]}",
        at=now,
        action="approve",
        target=approval.commit,
        by=approval.by,
        by_id=f"{host.lower()}:{review.reviewer}",
        address=review.url,
        client=f"{host} review",
        clusters=approval.clusters,
        reason=approval.reason,
        result="accepted",
    )


@dataclass(frozen=True)
class ApprovedPlan:
    """A plan, the approval that it has, and what the reviews say if it holds a delete."""

    plan: Plan
    approval: Approval | None = None
    review: ReviewCheck | None = None
    act: Act | None = None
    again: Envelope | None = None


def approved_plan(
    request: ToPlan, inputs: PlanInputs, fleet: FleetRecord, earlier: PlanRecord | None, ports: Ports
) -> ApprovedPlan:
    """Return the plan of ``fleet.planning``; ``earlier`` is the one that was saved for that commit before."""
    head, teams = fleet.planning, ports.reviewers
    approval = _given(request, head, earlier if fleet.commit == head else None)
    approved = frozenset(approval.clusters) if approval else frozenset[str]()
    plan = plan_of(head, inputs, fleet, ports, approved)
    deletes = plan.deletes_needing_approval
    by_review = all(item.hold.by_review for item in plan.items if item.hold and item.needs_approval)
    if not (teams and deletes) or not by_review:
        # A review is of a removal that its pull request shows; for other deletes, nothing says that.
        return ApprovedPlan(plan, approval)
    created = {name: inputs.records[name].created for name in deletes}
    reviewed = read_reviews(head, created, fleet, ports)
    if reviewed.approval is not None:
        plan = plan_of(head, inputs, fleet, ports, approved | deletes)
        return ApprovedPlan(plan, reviewed.approval, reviewed.check, reviewed.act)
    first = earlier is None or earlier.review is None
    again = reading_again(reviewed, request, head, ports, first=first)
    return ApprovedPlan(plan, approval, reviewed.check, again=again)


def systems_staying(
    request: ToPlan,
    desired: DesiredFleet,
    records: Mapping[str, ClusterRecord],
    platform: PlatformPlan,
    fleet: FleetRecord,
    ports: Ports,
) -> Mapping[str, RetainedSystems]:
    """Return the systems that stay on clusters; none where the first plan of a commit may be reviewed."""
    earlier = ports.state.plan(fleet.planning)
    if earlier is None and ports.reviewers:
        return {}
    approval = _given(request, fleet.planning, earlier if fleet.commit == fleet.planning else None)
    return platform.staying(desired, records, frozenset(approval.clusters if approval else ()))


def _given(request: ToPlan, head: str, earlier: PlanRecord | None) -> Approval | None:
    """Return the approval that counts at this commit: of exactly the deletes that need it, or an earlier one.

    ``earlier`` is the present plan, None when other commits were planned since: the clusters of an older plan
    may have been deleted and created again.
    """
    if earlier is None:
        return None
    given = request.approval
    exact = (
        given is not None
        and given.commit == head
        and {*given.clusters} == earlier.plan.deletes_needing_approval
    )
    return given if exact else earlier.approval
