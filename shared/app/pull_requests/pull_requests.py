"""Pull requests: the planner, read-only. A comment describes what a merge would do, and so does a page.

The planner plans the commit of the host's test merge, so that a branch that is behind its base shows no false
changes. It retries while there is no test merge. With conflicts, or when no test merge appears, it plans
the head alone, and the comment says so. Manifests from a fork are only validated: nothing of the recorded
state is shown on such a pull request.

Pull requests have a queue of their own, with a session for each, and a limit of work and of time. None
delays a push, or another pull request. Saved is only what the page shows: one plan for each pull request.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from shared.app.costs.list_prices import list_price_of
from shared.app.followed import newest
from shared.app.followed import recorded as recorded_sources
from shared.app.offers import asked_of_azure, what_is_short
from shared.app.outbox import seconds_until_again, send, send_unlike
from shared.app.own_repository import require_own
from shared.app.platform.platform_plan import platform_plan
from shared.app.pull_requests import comment
from shared.app.pull_requests.comment import PullPlan, PullPlatform, PullWarnings
from shared.app.repository import (
    PlanInputs,
    ResolvedCommit,
    files_in,
    plan_of,
    read_known,
    resolved,
    tombstones_of,
)
from shared.azure.availability.retirements import retirement_warnings, stale
from shared.azure.drift.policy import exemption_warnings
from shared.cluster.failures.errors import ReconcileError, TooLarge
from shared.cluster.queues.messages import OutdatedRequest, PreviewRequest, QueueRequest
from shared.cluster.record import ClusterRecord
from shared.frozen import replace
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.repository_layout import Files, manifest_paths
from shared.language.resolve.work import Work
from shared.plan.plan import Action, Plan
from shared.plan.platform_plan import NO_PLATFORM_CHANGE
from shared.platform.pins import without_stages
from shared.ports import Capability, Ports, Pull
from shared.ports.state import PullPlanRecord
from shared.rollouts.candidates import CommitRequest, updates_of
from shared.rollouts.of_plan import held_now, rollout_of_plan
from shared.rollouts.rollout import Rollout
from shared.rollouts.shut import calendar_of

log = logging.getLogger(__name__)

MERGE_SECONDS = 5.0
MERGE_ATTEMPTS = 3
"""How often the host is asked for its test merge, and for the head that the webhook announced."""
COUNT_SECONDS = 60.0
"""After so long a pull request is planned again whose clusters were asked what they have."""
NEW_MANIFESTS = 500
"""How many new manifests a pull request may have, compared with its base."""
NEW_BYTES = 32 << 20
"""How large the files are together that a pull request may add: they are downloaded with the manifests."""
OUTDATED_PULLS = 20
WARNINGS_OF = 200
"""Of so many changed clusters, retirements and exemptions that end are looked up: those of shared files are
the same for all."""

PULL_PART, FORK_PART = 2, 20
"""Which part of the work of a plan a pull request may take, and one from a fork."""

CONFLICTS = (
    "The branch conflicts with its base, so there is no merge to plan. "
    "This plan is of the head alone: it shows newer changes of the base as undone."
)
NO_MERGE = (
    "There is no test merge yet. "
    "This plan is of the head alone: it shows newer changes of the base as undone."
)


TOO_LARGE = "The plan is too large for a page: the comment on the pull request has its beginning."


class NotPlanned(Exception):
    """A pull request takes too much to be planned; the message says what, and what to do."""


def handle(request: QueueRequest, ports: Ports) -> None:
    """Report on a pull request what a merge would do, or mark the plans of all as out of date.

    Errors are retried a few times, and then reported on the pull request. Raise the error when the host takes
    no report either: then the request becomes a dead letter.
    """
    match request:
        case OutdatedRequest():
            mark_outdated(request.commit, ports)
        case PreviewRequest():
            _preview(request, ports)
        case _:
            raise ValueError(f"the queue of pull requests has no message of the kind {request.kind}")


def _preview(request: PreviewRequest, ports: Ports) -> None:
    pull = None
    try:
        if not request.pull:
            return preview_new(ports)
        pull = ports.git_host.pull(request.pull)
        if pull is None or not pull.open or pull.base != ports.config.branch:
            log.info("pull request %d is not open into %s", request.pull, ports.config.branch)
            return None
        if (pull.merge is None or request.head not in ("", pull.head)) and request.attempt < MERGE_ATTEMPTS:
            send_unlike(request.next_attempt(), ports, after=MERGE_SECONDS)
            return None
        view = _view(pull, ports)
        _report(pull, view, ports)
        if view.is_uncounted and not request.attempt:  # once: clusters that answer have counted by then
            send_unlike(request.next_attempt(), ports, after=COUNT_SECONDS)
    except ReconcileError as error:
        log.warning("pull request %d could not be planned: %s: %s", request.pull, error.kind, error)
        wait = seconds_until_again(error, request, ports)
        if wait is not None:
            send_unlike(request.next_attempt(), ports, after=wait)
        elif pull is None:
            raise
        else:
            _report(pull, replace(_empty(pull, ports), refusal=f"could not be planned: {error.kind}"), ports)


def preview_new(ports: Ports) -> None:
    """Queue the plan of each open pull request whose head has none."""
    for pull in ports.git_host.open_pulls(ports.config.branch):
        known = ports.state.pull(pull.number)
        if known is None or known.head != pull.head:
            request = PreviewRequest(pull=pull.number, head=pull.head)
            send(request, ports, message_id=f"pull:{pull.number}:{pull.head}")


def mark_outdated(commit: str, ports: Ports) -> None:
    """Mark the comments of the newest open pull requests as out of date after a new commit.

    A comment of an earlier head is written again: a preview that stood still wrote over the newer one.
    """
    try:
        for pull in ports.git_host.open_pulls(ports.config.branch)[:OUTDATED_PULLS]:
            existing = ports.git_host.comment(pull.number, comment.marker(ports.config.fleet))
            if existing is None:
                continue
            if not comment.is_of(existing.body, pull.head):
                send(PreviewRequest(pull=pull.number, head=pull.head), ports)
                continue
            body = comment.outdated(existing.body, commit)
            if body != existing.body:
                ports.git_host.write_comment(pull.number, body, over=existing)
    except ReconcileError as error:
        log.warning("open pull requests were not marked as out of date: %s: %s", error.kind, error)


def _view(pull: Pull, ports: Ports) -> PullPlan:
    """Read the pull request and plan it against the recorded state; change nothing."""
    view, work = _empty(pull, ports), _work(pull, ports)
    try:
        base = ports.git_host.read_head(ports.config.branch)
        require_own(base, ports.state.fleet(), ports)
        view = replace(view, base=base.commit)
        listed = ports.state.clusters()
        records = {record.name: record for record in listed}
        read = _desired(pull, view.base, records, work, ports)
        desired, commit = read.desired, pull.merge or pull.head
        platform = (
            NO_PLATFORM_CHANGE if pull.fork else platform_plan(commit, read, records, ports, work.check)
        )
        view = replace(view, problems=(*desired.problems, *platform.problems))
        unreadable = {record.key: record for record in listed.unreadable}
        inputs = PlanInputs(desired, records, {}, unreadable, platform, read.followed)
        return view if pull.fork else _planned(view, inputs, read.tree.files, pull, ports)
    except NotPlanned as error:
        return replace(view, refusal=str(error))


def _empty(pull: Pull, ports: Ports) -> PullPlan:
    note = ""
    if not pull.merge:
        note = NO_MERGE if pull.merge is None else CONFLICTS
    config = ports.config
    page = f"{config.public_url}/pulls/{pull.number}" if config.public_url else ""
    return PullPlan(config.fleet, config.branch, "", pull.head, note=note, fork=pull.fork, page=page)


def _work(pull: Pull, ports: Ports) -> Work:
    """Return what the plan of a pull request may take; its check raises NotPlanned when the time is over."""
    config = ports.config
    seconds = config.limits.fork_seconds if pull.fork else config.limits.pull_seconds
    end = ports.clock() + timedelta(seconds=seconds)

    def check() -> None:
        if ports.clock() >= end:
            raise NotPlanned(f"not planned: it takes longer than {seconds:g} seconds; {_instead(pull)}")

    return Work(config.limits.plan_work // (FORK_PART if pull.fork else PULL_PART), check)


def _instead(pull: Pull) -> str:
    if pull.fork:
        return "split it, or ask a maintainer to push it as a branch of this repository"
    return "split it"


def _planned(
    view: PullPlan,
    inputs: PlanInputs,
    files: Files,
    pull: Pull,
    ports: Ports,
) -> PullPlan:
    desired, records = inputs.desired, inputs.records
    fleet = ports.state.fleet()
    plan = plan_of(view.head, inputs, fleet, ports)
    documents = {}
    for item in plan.items:
        record, cluster = records.get(item.cluster), desired.clusters.get(item.cluster)
        documents[item.cluster] = (
            record.document if record else None,
            cluster.document() if cluster else None,
        )
    today, touched = ports.clock().date(), (Action.CREATE, Action.ADOPT, Action.UPDATE)
    changed = [
        item.cluster for item in plan.items if item.action in touched and item.cluster in desired.clusters
    ]
    warned = changed[:WARNINGS_OF]
    return replace(
        view,
        plan=plan,
        documents=documents,
        warnings=PullWarnings(
            retirements=tuple(retirement_warnings(desired, warned, today)),
            stale=stale(today) if changed else "",
            exemptions=tuple(exemption_warnings(desired, warned, today)),
            short=what_is_short(asked_of_azure(plan.items, desired.clusters), records, ports),
        ),
        rollout=_rollout(plan, desired, records, pull, fleet.rollout, ports),
        durations=fleet.durations,
        platform=PullPlatform(
            inputs.platform.sections(
                {name: cluster.environment for name, cluster in desired.clusters.items()},
                tuple(desired.environments),
            ),
            inputs.platform.note,
            inputs.platform.notes,
        ),
        followed=(*map(str, inputs.followed), *without_stages(desired, ports.config.source)),
        held=held_now(plan, desired.clusters, records, calendar_of(desired.rollout), ports.clock()),
        list_price=list_price_of(
            pull.merge or pull.head, files, plan.items, desired.clusters, records, ports
        ),
        today=today,
    )


def _rollout(
    plan: Plan,
    desired: DesiredFleet,
    records: Mapping[str, ClusterRecord],
    pull: Pull,
    under_way: str,
    ports: Ports,
) -> Rollout | None:
    """Return the rollout that a merge would have now, after the one that is ``under_way``; None for none."""
    if desired.rollout is None or not updates_of(plan):
        return None
    before, its_plan = ports.state.rollout(under_way), ports.state.plan(under_way)
    return rollout_of_plan(
        plan,
        desired,
        desired.rollout,
        records,
        ports.clock(),
        before,
        its_plan.plan if its_plan else None,
        asked=CommitRequest(labels=pull.labels),
    )


def _desired(
    pull: Pull, base: str, records: Mapping[str, ClusterRecord], work: Work, ports: Ports
) -> ResolvedCommit:
    """Resolve what would be merged; raise NotPlanned before thousands of manifests are read."""
    commit = pull.merge or pull.head
    work.check()
    entries = ports.git_host.tree(commit)
    known = {entry.sha for entry in ports.git_host.tree(base)}
    _refuse_large(sum(entry.size for entry in entries if entry.sha not in known))
    files = files_in(entries)
    new = sum(files.blobs[path] not in known for path in manifest_paths(files))
    if new > NEW_MANIFESTS:
        raise NotPlanned(
            f"not planned: {new:,} manifests are new or changed, and at most {NEW_MANIFESTS} are read for a "
            "pull request; split it"
        )
    recorded, tombstones = read_known(records, ports), tombstones_of(records)
    look = recorded_sources(ports, None if pull.fork else newest((), ports))
    read = resolved(commit, files, recorded, ports, work, tombstones=tombstones, look=look)
    if read.desired.left_out:
        raise NotPlanned(
            f"not planned: its manifests take more than {work.limit:,} units of work; {_instead(pull)}"
        )
    return read


def _refuse_large(size: int) -> None:
    """Raise NotPlanned when the archive of a commit would be far larger than that of its base."""
    if size > NEW_BYTES:
        raise NotPlanned(
            f"not planned: its new files have {size >> 20} MiB, and at most {NEW_BYTES >> 20} MiB are read "
            "for a pull request; remove large files"
        )


def _report(pull: Pull, view: PullPlan, ports: Ports) -> None:
    """Write the check or the status first, then the comment, unless its text is the same already."""
    if Capability.WRITTEN_CHECKS in ports.git_host.capabilities:
        ports.git_host.write_check(pull.head, comment.check_of(view))
    else:
        status = replace(comment.status_of(view), pull=pull.number)
        ports.git_host.set_status(pull.head, status)
    existing = ports.git_host.comment(pull.number, comment.marker(view.fleet))
    body = comment.comment_of(view)
    if existing is None or existing.body != body:
        ports.git_host.write_comment(pull.number, body, over=existing)
    _save(pull, view, ports)


def _save(pull: Pull, view: PullPlan, ports: Ports) -> None:
    """Save what the page of the pull request shows; a plan that is too large is in the comment alone."""
    record = PullPlanRecord(
        number=pull.number,
        head=view.head,
        base=view.base,
        at=ports.clock(),
        title=view.title,
        url=pull.url,
        note=view.note,
        refusal=view.refusal,
        fork=view.fork,
        problems=tuple(map(str, view.problems[: comment.PROBLEMS_SHOWN])),
        plan=view.plan,
        list_price=view.list_price,
    )
    try:
        ports.state.save_pull(record)
    except TooLarge:
        ports.state.save_pull(replace(record, plan=None, note=TOO_LARGE))
