"""The clusters that differ from git, as the last sweep found them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from shared.app.api import schema
from shared.app.api.parts import ClusterPage, compared_at
from shared.app.api.projection import exact, iso, projected
from shared.app.proposals.remembered import proposes
from shared.cluster.divergence.drift import DriftedField
from shared.cluster.findings.conditions import found_of, is_exempt
from shared.cluster.findings.health import HealthCondition, faults_of, problem_of, unread_of
from shared.cluster.record import ClusterRecord, finding_of_sweep
from shared.cluster.reporting.summary import ClusterSummary
from shared.language.model.cluster.drift import DriftAction
from shared.plan.holds import Closure
from shared.ports import Ports
from shared.ports.state import Listing, Proposal

REASONS, FINDINGS = 3, 20


def drift_view(ports: Ports, page: ClusterPage) -> schema.DriftView:
    """Return a page of the clusters that differ; no other record is read as a whole."""
    summaries = ports.state.summaries(details=True)
    names = [summary.name for summary in summaries if summary.divergence.drifted or _is_found(summary)]
    shown = [name for name in names if name > page.after][: page.limit]
    records = ports.state.clusters_named(shown)
    proposals = {proposal.cluster: proposal for proposal in ports.state.proposals()} if shown else {}
    sweep = ports.state.sweep()
    listed = [listing.at for listing in sweep.listings] or [None]
    clusters = [
        _cluster(record, proposals.get(record.name), compared_at(record, sweep))
        for record in records
        if _differs(record)
    ]
    found = [summary.name for summary in summaries if _is_found_inside(summary)]
    return {
        "clusters": clusters,
        "count": len(names),
        "inside": [*_inside(ports.state.clusters_named(found[:FINDINGS]))],
        "insideCount": len(found),
        "outside": sum(summary.place.attached for summary in summaries),
        "activityLog": _unread(sweep.listings),
        "proposals": sweep.proposals,
        "comparedAt": None if None in listed else exact(min(filter(None, listed))),
        "accepted": [*_accepted(records)],
        "next": page.next(shown),
    }


def drift_of_cluster(name: str, ports: Ports) -> schema.DriftView | None:
    """Return the drift of one cluster; None when the fleet has no such cluster."""
    record = ports.state.cluster(name)
    if record is None:
        return None
    own, sweep = record.desired.id.subscription.lower(), ports.state.sweep()
    compared = compared_at(record, sweep)
    clusters = [_cluster(record, ports.state.proposal(name), compared)] if _differs(record) else []
    return {
        "clusters": clusters,
        "count": len(clusters),
        "inside": (inside := [*_inside([record])]),
        "insideCount": len(inside),
        "outside": int(record.desired.is_attached),
        "activityLog": _unread([listing for listing in sweep.listings if listing.subscription == own]),
        "proposals": sweep.proposals,
        "comparedAt": exact(compared) if compared else None,
        "accepted": [*_accepted([record])],
        "next": None,
    }


def _unread(listings: Sequence[Listing]) -> str:
    """Return why the activity log of some subscriptions was not read, once for each reason."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for listing in listings:
        if listing.activity:
            found[listing.activity].append(listing.subscription)
    sentences = []
    for reason, subscriptions in found.items():
        more = f" and {len(subscriptions) - 1} more" if len(subscriptions) > 1 else ""
        sentences.append(f"{reason} of {subscriptions[0]}{more}")
    return "; ".join(sentences[:REASONS])


def _is_found_inside(summary: ClusterSummary) -> bool:
    """Return whether a check found something inside a cluster, or could not read it."""
    return any(not summary.details.conditions.get(kind, True) for kind in HealthCondition)


def _inside(records: Iterable[ClusterRecord]) -> Iterator[schema.InsideFinding]:
    for record in records:
        condition = next(faults_of(record), None) or unread_of(record)
        if condition is not None:
            finding = problem_of(record) or f"not known: {condition.message}"
            yield {"name": record.name, "finding": finding, "at": iso(condition.verified)}


def _is_found(summary: ClusterSummary) -> bool:
    """Return whether a sweep found something of a whole cluster that no exemption ignores."""
    return bool(summary.sweep.found or finding_of_sweep(summary.finding)) and not summary.sweep.exempt_until


def _differs(record: ClusterRecord) -> bool:
    return record.divergence.drift is not None or (bool(found_of(record)) and not is_exempt(record))


def _cluster(
    record: ClusterRecord, proposal: Proposal | None, compared: datetime | None
) -> schema.DriftedCluster:
    drift, held = record.divergence.drift, None if record.job.active else record.divergence.held
    return projected(
        schema.DriftedCluster,
        record,
        drift,
        fields=[_field(field, record, proposal) for field in drift.fields] if drift else [],
        needsApproval=drift.correction if drift and drift.to_approve else "",
        finding="" if is_exempt(record) else found_of(record),
        held=_held(held) if held else None,
        comparedAt=compared,
    )


def _held(held: Closure) -> schema.HeldCorrection:
    return projected(schema.HeldCorrection, held, since=iso(held.since) or "", because=held.reason)


def _accepted(records: Iterable[ClusterRecord]) -> Iterator[schema.AcceptedFieldView]:
    for record in records:
        verified = record.observation.verified
        for field in verified.accepted if verified else ():
            yield projected(schema.AcceptedFieldView, field, name=record.name)


def _field(field: DriftedField, record: ClusterRecord, proposal: Proposal | None) -> schema.DriftedFieldView:
    verified = record.observation.verified
    return projected(
        schema.DriftedFieldView,
        field,
        note="; ".join(filter(None, (field.never_back, field.note, _not_proposed(field, proposal)))),
        changedBy=field.by,
        pullRequest=proposal.url if proposal and proposes(proposal, field) else "",
        acceptable=bool(verified and verified.names_of(field)),
    )


def _not_proposed(field: DriftedField, proposal: Proposal | None) -> str:
    """Return why no pull request has a field that is to be proposed, "" where one has."""
    if field.action is not DriftAction.PROPOSE or proposal is None:
        return ""
    reasons = (omitted.reason for omitted in proposal.left_out if omitted.path == field.path)
    return next(reasons, proposal.problem)
