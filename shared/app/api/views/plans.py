"""Plans: what commits do, how far they are, what the next is compared with; and promotions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from operator import attrgetter

from shared.app.api import schema
from shared.app.api.parts import (
    FIRST_PAGE,
    ClusterPage,
    followed_sources,
    items_of,
    names_in,
    plan_part,
    unreadable_records,
)
from shared.app.api.projection import iso, projected
from shared.app.api.views.rollouts import waits_now
from shared.app.planner.commit_status import Standing, progress_of
from shared.app.planner.pins import commits_after
from shared.app.planner.reporter import lasting_since
from shared.cluster.queues.message_parts import Approval
from shared.cluster.record import ClusterRecord
from shared.language.pin import Pin
from shared.masking import cut
from shared.plan.list_price import ListPrice, details_of, headline
from shared.plan.plan import Item
from shared.platform.pins import FleetSource
from shared.ports import FleetRecord, Ports
from shared.ports.git_host import BranchCommit
from shared.ports.state import PlanBrief, Promotion
from shared.promotions import HoldReason, Value
from shared.rollouts.report import describe_wait

PLANS_SHOWN = 50
PLANS_SHOWN_DAYS = 30
PROBLEMS_SHOWN = 100


def plans_view(ports: Ports) -> schema.PlansView:
    """Return the plans of the last days, the newest one however old it is, and the corrections to approve."""
    today = ports.clock().replace(hour=0, minute=0, second=0, microsecond=0)  # so that visits share the read
    since, newest = today - timedelta(days=PLANS_SHOWN_DAYS), ports.state.fleet().commit
    briefs = list(ports.state.briefs_since(since)[:PLANS_SHOWN])
    current = None if any(brief.commit == newest for brief in briefs) else ports.state.plan(newest)
    if current is not None:
        briefs.append(current.brief)
    return {
        "plans": [_summary(brief, newest=brief.commit == newest) for brief in briefs],
        "corrections": [summary.name for summary in ports.state.summaries() if summary.divergence.to_approve],
    }


def plan_view(commit: str, ports: Ports, page: ClusterPage = FIRST_PAGE) -> schema.PlanView | None:
    """Return the plan of a commit and its progress; None when that commit was not planned."""
    plan_record = ports.state.plan(commit)
    if plan_record is None:
        return None
    clusters = ports.state.summaries().keyed(attrgetter("name"))
    fleet = ports.state.fleet()
    newest = commit == fleet.commit
    now = waits_now(fleet, ports) if commit == (fleet.rollout or fleet.commit) else None
    waits = {name: describe_wait(wait, commit) for name, wait in now[1].waits.items()} if now else {}
    latest = newest or commit == fleet.planning
    progress = progress_of(plan_record.plan, clusters, newest=latest, differed=lasting_since(ports))
    items = sorted(items_of(plan_record).values(), key=lambda item: item.cluster)
    items = [item for item in items if item.cluster > page.after][: page.limit]
    return {
        **_summary(plan_record.brief, newest=newest),
        "listPrice": list_price_view(plan_record.list_price, ports.clock().date()),
        "problems": list(plan_record.plan.problems[:PROBLEMS_SHOWN]),
        "needsApproval": [item.cluster for item in items if item.needs_approval],
        "items": [plan_item(item, waits.get(item.cluster, "")) for item in items],
        "next": page.next([item.cluster for item in items]),
        "progress": {
            "total": progress.total,
            "ready": progress.count(Standing.READY),
            "failed": progress.count(Standing.FAILED),
            "firstProblem": progress.first_problem,
        },
    }


def pull_plan_view(number: int, ports: Ports, page: ClusterPage = FIRST_PAGE) -> schema.PullPlanView | None:
    """Return the last plan of a pull request with a page of its clusters; None for none."""
    record = ports.state.pull(number)
    if record is None:
        return None
    items = sorted(record.plan.items if record.plan else (), key=lambda item: item.cluster)
    items = [item for item in items if item.cluster > page.after][: page.limit]
    return projected(
        schema.PullPlanView,
        record,
        plannedAt=record.at,
        listPrice=list_price_view(record.list_price, ports.clock().date()),
        outdated=record.base != ports.state.fleet().commit,
        needsApproval=[item.cluster for item in items if item.needs_approval],
        items=[plan_item(item) for item in items],
        next=page.next([item.cluster for item in items]),
    )


def _summary(brief: PlanBrief, *, newest: bool) -> schema.PlanSummary:
    return {
        "commit": brief.commit,
        "plannedAt": iso(brief.at),
        "summary": brief.summary,
        "status": brief.reported,
        "problemCount": brief.problems,
        "needsApprovalCount": brief.to_approve,
        "needsReleaseCount": brief.to_release,
        "approval": _approval(brief.approval, brief.approved),
        "approvedReleaseCount": brief.approved_releases,
        "howToApprove": _how_to_approve(brief.commit) if newest and brief.to_approve else "",
        "reviews": brief.review,
    }


def list_price_view(price: ListPrice | None, today: date) -> schema.ListPriceView | None:
    """Return a difference of list prices with its sentences; None for none."""
    if price is None:
        return None
    summary, details = headline(price, today), list(details_of(price))
    return projected(schema.ListPriceView, price, summary=summary, details=details)


def plan_item(item: Item, waits: str = "") -> schema.PlanItem:
    """Return what a plan does to a cluster, field by field, and why its rollout does not do so now."""
    return projected(schema.PlanItem, item, plan_part(item), retainedSystems=item.retained, waits=waits)


def _how_to_approve(commit: str) -> str:
    return (
        f"roadstead approve {commit[:8]}, or POST api/plans/{commit}/approve "
        'with {"clusters": [...]} naming exactly the deletes that need approval; '
        "a newer commit needs a new approval"
    )


def recorded_view(ports: Ports, page: ClusterPage = FIRST_PAGE) -> schema.RecordedFleet:
    """Return what the next plan is compared with: the clusters as accepted, and the commit planned last."""
    fleet = ports.state.fleet()
    records = ports.state.clusters_page(page.after, page.limit)
    plan_record = ports.state.plan(fleet.commit)
    approval = plan_record.approval if plan_record else None
    needs_approval = plan_record.plan.deletes_needing_approval if plan_record else frozenset[str]()
    approved = frozenset(approval.clusters if approval else ())
    return projected(
        schema.RecordedFleet,
        ports.config,
        fleet,
        source=_source(ports.config.source),
        followed=followed_sources(fleet),
        approval=_approval(approval, len(approved)),
        durations={kind: list(seconds) for kind, seconds in fleet.durations.items()},
        replacing={old: list(new) for old, new in fleet.expects.replacing.items()},
        clusters=[_recorded(record, needs_approval, approved) for record in records],
        unreadable=unreadable_records(records.unreadable),
        next=page.next(names_in(records)),
    )


def _source(source: FleetSource) -> schema.TrackedBranch:
    return projected(schema.TrackedBranch, source, repositories=sorted(source.names))


def _recorded(
    record: ClusterRecord, needs_approval: frozenset[str], approved: frozenset[str]
) -> schema.RecordedCluster:
    return projected(
        schema.RecordedCluster,
        record,
        heldUntil=record.lifetime_hold.until if record.lifetime_hold else None,
        heldBy=record.lifetime_hold.by if record.lifetime_hold else "",
        heldBecause=record.lifetime_hold.reason if record.lifetime_hold else "",
        runningVersion=record.running.kubernetes_version,
        runningPools=[
            schema.RunningPool(name=name, kubernetesVersion=pool.kubernetes, nodeImageVersion=pool.image)
            for name, pool in sorted(record.running.pools.items())
        ],
        needsApproval=record.name in needs_approval,
        approved=record.name in approved,
    )


def _approval(approval: Approval | None, clusters: int) -> schema.ApprovalView | None:
    return projected(schema.ApprovalView, approval, clusterCount=clusters) if approval else None


# Promotions: what is proposed to each environment, why nothing is, and which values no rule gives.


def promotions_view(ports: Ports) -> schema.PromotionsView:
    """Return the promotions that were ever asked for, and those of the rules."""
    fleet, pulls = ports.state.fleet(), ports.state.promotions()
    known = {promotion.target: promotion for promotion in pulls if promotion.what is None}
    rules = {rule.target: rule.source for rule in fleet.rules.promotions}
    for target, source in rules.items():
        known.setdefault(target, Promotion(target, source))
    return {"promotions": [_promotion(known[name], fleet, rule=name in rules) for name in sorted(known)]}


def _promotion(promotion: Promotion, fleet: FleetRecord, *, rule: bool) -> schema.PromotionView:
    return projected(
        schema.PromotionView,
        promotion,
        rule=rule,
        state=_state(promotion),
        values=[schema.PromotionValue(field=value.path, value=value.value) for value in promotion.values],
        pullRequest=promotion.url if promotion.values else "",
        holds=_holds(promotion, fleet) if rule else [],
    )


def _state(promotion: Promotion) -> str:
    """Return what became of the newest pull request, as far as it is known."""
    if not promotion.values:
        return "none"
    if all(value in promotion.merged for value in promotion.values):
        return "merged"
    return "declined" if all(value in promotion.declined for value in promotion.values) else "open"


def _holds(promotion: Promotion, fleet: FleetRecord) -> Iterator[schema.PromotionHold]:
    """Yield the values that the environment has not, and that no rule gives to it."""
    had = next((values for values in fleet.rules.had if values.environment == promotion.target), None)
    if had is None:
        return
    lifted = {hold.value: hold.at for hold in promotion.lifted}
    has = {*had.file, *had.clusters}
    withdrew = [
        withdrawal.value
        for withdrawal in had.withdrawn
        if had.withdrew(withdrawal.value, lifted.get(withdrawal.value))
    ]
    found: dict[Value, HoldReason] = dict.fromkeys(promotion.declined, HoldReason.DECLINED)
    found |= dict.fromkeys([*promotion.merged, *withdrew], HoldReason.WITHDRAWN)
    for value, reason in sorted(found.items()):
        if value not in has:
            yield {"field": value.path, "value": value.value, "reason": reason.value}


# The commits between what the clusters of an environment have and the head of the branch.
#
# They are those of the branch itself: of a pull request, its merge alone. A cluster of which the newest plan
# changes nothing, or nothing more, has all that was planned. Calls to git do not grow with clusters: one for
# each distinct commit that clusters have, and one for each commit that is shown.

SHOWN = 50
"""So many commits are shown, with their files."""
PULLED = 20
"""Of so many commits that clusters pull, those of most clusters, it is read how many follow."""
NAMED = 20
"""So many clusters, and so many files of a commit, are named."""
TITLE = 200


def log_view(environment: str, ports: Ports) -> schema.Log | None:
    """Return what lies between an environment and the head; None for one without a cluster."""
    names = [summary.name for summary in ports.state.summaries() if summary.place.environment == environment]
    if not names:
        return None
    pulled, newest = dict[str, list[str]](), ports.state.fleet().commit
    items = items_of(ports.state.plan(newest))
    unverified = set[str]()
    for record in ports.state.clusters_named(names):
        commit = _pulled(record, items.get(record.name), newest, ports.config.source)
        pulled.setdefault(commit, []).append(record.name)
        unverified |= {record.name} if record.observed_generation < record.generation else set()
    most = sorted(pulled, key=lambda commit: (-len(pulled[commit]), commit))
    head = ports.git_host.read_head(ports.config.branch).commit
    follow = {commit: commits_after(commit, head, ports.git_host) for commit in filter(None, most[:PULLED])}
    longest = max((found for found in follow.values() if found), key=len, default=())
    return {
        "fleet": ports.config.fleet,
        "environment": environment,
        "branch": ports.config.branch,
        "head": head,
        "pulled": [
            {
                "commit": commit,
                "behind": None if (after := follow.get(commit)) is None else len(after),
                "clusterCount": len(pulled[commit]),
                "unverifiedCount": len(unverified.intersection(pulled[commit])),
                "clusters": sorted(pulled[commit])[:NAMED],
            }
            for commit in most
        ],
        "commits": [_commit(change, ports) for change in longest[:SHOWN]],
        "more": len(longest[SHOWN:]),
    }


def _pulled(record: ClusterRecord, item: Item | None, newest: str, source: FleetSource) -> str:
    """Return the commit that a cluster has, "" where Flux follows its source by itself, or another one."""
    pin = Pin.of(record.document)
    if pin is None:
        flux = record.document["spec"]["flux"]
        return (flux.get("commit") or "") if source.is_at(flux["repository"]) else ""
    if pin.source:
        return ""
    if record.trial and not record.trial.ended:
        return record.trial.commit
    accepted = item is not None and item.uid == record.uid and item.generation <= record.generation
    moves = item is not None and not item.lags and (item.hold is None or item.keeps_version)
    return newest if accepted and moves else pin.commit


def _commit(change: BranchCommit, ports: Ports) -> schema.LogCommit:
    files = ports.git_host.files_between(change.commit, change.parents[0])
    title = cut(change.message.strip().partition("\n")[0], TITLE)
    return projected(schema.LogCommit, change, title=title, fileCount=len(files), files=files[:NAMED])
