"""What is remembered of a cluster's proposal, and what its pull request adds to that. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from shared.app.proposals.own_pull import declined_after
from shared.cluster.divergence.drift import BRANCHES, Drift, DriftedField
from shared.cluster.reporting.summary import ClusterSummary
from shared.frozen import replace
from shared.json_tree import digest_of
from shared.language.model.cluster.drift import DriftAction
from shared.masking import MASKED
from shared.ports import Pull
from shared.ports.state import OmittedField, Proposal

NEW_AT_ONCE = 10
"""So many pull requests are opened between the beginnings of two sweeps."""
DECLINED = "declined: its pull request was closed without a merge; reopen that to propose this value again"
SENSITIVE = "the value may contain a secret"


def branch_of(fleet: str, cluster: str) -> str:
    """Return the branch of a cluster's proposal; two fleets may have one repository."""
    return f"{BRANCHES}{fleet}/{cluster}"


def due(
    summaries: Mapping[str, ClusterSummary], known: Mapping[str, Proposal], commit: str, pull: int = 0
) -> list[str]:
    """Return the clusters about whose proposal something is to be done.

    ``commit`` is the one that was planned last: a newer one may take what an older manifest could not.
    ``pull`` is the number of a pull request that somebody closed or reopened, 0 for none. A cluster on which
    a job works has to wait: what differs after the job is not known yet. Of one whose job failed or is
    suspended nothing is proposed, so that its pull request is closed.
    """
    found = []
    for name in sorted(
        {*known, *(summary.name for summary in summaries.values() if summary.divergence.proposed)}
    ):
        summary, proposal = summaries.get(name), known.get(name)
        if summary is not None and not summary.sweep.at_rest:
            continue
        digest = summary.divergence.proposed if summary else None
        if (
            proposal is None
            or proposal.digest != digest
            or (pull and proposal.number == pull)
            or _may_be_over(proposal, commit)
        ):
            found.append(name)
    return found


def _may_be_over(proposal: Proposal, commit: str) -> bool:
    """Return whether another commit may have ended why something is not proposed."""
    by_git = any(omitted.reason not in (DECLINED, SENSITIVE) for omitted in proposal.left_out)
    return proposal.commit != commit and (by_git or bool(proposal.problem))


def opened_since(known: Iterable[Proposal], at: datetime | None) -> int:
    """Return how many pull requests were opened since a time."""
    return sum(1 for proposal in known if proposal.opened and (at is None or proposal.opened >= at))


def value_of(field: DriftedField) -> str:
    """Return a digest of a field that differs, with both values."""
    return digest_of([field.path, field.git, field.live])


def proposes(proposal: Proposal, field: DriftedField) -> bool:
    """Return whether the newest pull request has a field, and nobody declined that as far as it is known."""
    value = value_of(field)
    return value in proposal.values and value not in proposal.declined


def seen(proposal: Proposal, pull: Pull | None) -> Proposal:
    """Return a proposal with what the host shows of its pull request, None for one that does not exist."""
    if pull is None:
        return replace(proposal, values=())
    after = replace(proposal, declined=declined_after(proposal.declined, proposal.values, pull))
    return replace(after, values=()) if pull.merged else after


def proposable(stored: Drift, now: Drift) -> tuple[list[DriftedField], tuple[OmittedField, ...]] | None:
    """Return the fields to propose as Azure has them now; None where that is not what a sweep stored."""
    known = {field.path: field for field in _proposed(stored)}
    found, secret = [], []
    for field in _proposed(now):
        before = known.pop(field.path, None)
        if before is None:
            return None
        if MASKED in f"{before.git}{before.live}":
            secret.append(OmittedField(field.path, SENSITIVE))
        elif (before.git, before.live) == (field.git, field.live):
            found.append(field)
        else:
            return None
    return None if known else (found, tuple(secret))


def _proposed(drift: Drift) -> list[DriftedField]:
    return [field for field in drift.fields if field.action is DriftAction.PROPOSE]


def wanted(
    proposal: Proposal, fields: Sequence[DriftedField]
) -> tuple[list[DriftedField], tuple[OmittedField, ...]]:
    """Return the fields to propose, and why the others are not proposed."""
    new = [field for field in fields if value_of(field) not in proposal.declined]
    return new, tuple(OmittedField(field.path, DECLINED) for field in fields if field not in new)
