"""The proposal of one cluster: its branch and its pull request are brought to what differs now.

What is saved always says which commits of the branch are ours, before the branch points to them. So a crash
at any line, or a second app, never makes a commit of ours look like one of somebody else, nor the other way.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from shared.fleet.aks.ownership import Owner
from shared.fleet.drift.differences import drift_of
from shared.fleet.drift.policy import Decided
from shared.fleet.drift.proposal import Proposed, propose
from shared.fleet.json_tree import Json
from shared.fleet.resolve.repository_layout import cluster_path
from shared.jobs.drift import DriftedField, digest_of_proposal, drift_from
from shared.jobs.failures.errors import Retryable
from shared.jobs.record import ClusterRecord
from shared.logs import about_record
from shared.pipeline.proposals.head import Head, parents_of
from shared.pipeline.proposals.remembered import branch_of, proposable, seen, value_of, wanted, with_commit
from shared.pipeline.proposals.texts import OVER, commit_message, over_text, pull_text
from shared.pipeline.sweep.conclusions import decided_of
from shared.pipeline.worker.rate_limiter import RateLimiter
from shared.pipeline.worker.steps.context import StepContext
from shared.ports import NewCommit, Ports, Pull
from shared.ports.azure import GetCluster
from shared.ports.state import LeftOut, Proposal

log = logging.getLogger(__name__)

NO_MANIFEST = "the newest commit has no manifest of the cluster"
SOMEBODY_PUSHED = "somebody else has pushed to the branch {}: it is left as it is, and so is its pull request"


class NoRoom(Exception):
    """Enough pull requests were opened; a later sweep opens this one."""


class NotShown(Exception):
    """Azure does not show a cluster now."""


@dataclass(frozen=True)
class _Turn:
    """What is known of a cluster and of its pull request; ``room``: another one may be opened."""

    proposal: Proposal
    pull: Pull | None
    digest: str
    room: bool
    head: Head
    ports: Ports

    @property
    def branch(self) -> str:
        """The branch of the proposal."""
        return branch_of(self.ports.config.fleet, self.proposal.cluster)


def settle(proposal: Proposal, digest: str, *, room: bool, head: Head, ports: Ports) -> None:
    """Do what a cluster's drift asks for, of which ``digest`` is stored, "" for none.

    Raise NoRoom where that is a new pull request and there is no room for one, and NotShown.
    """
    pull = ports.pulls.pull(proposal.number) if proposal.number else None
    turn = _Turn(seen(proposal, pull), pull, digest, room, head, ports)
    record = ports.state.cluster(proposal.cluster)
    if not digest or record is None:
        _end(turn, forget=record is None)
        return
    if not record.idle:
        return
    azure = RateLimiter(None, ports).over(ports).azure
    try:
        existing = azure.call(GetCluster(record.desired.id))
    except Retryable as error:
        raise NotShown(f"{record.name} cannot be read in Azure: {error.kind}: {error}") from error
    now, owner = ports.clock(), StepContext.of(record, ports).owner
    decided = decided_of(record, existing, owner, now) if existing is not None else None
    if existing is None or decided is None:
        return  # a sweep says what becomes of it
    drift = drift_from(decided, record.drift, now)
    found = proposable(record.drift, drift) if record.drift and drift else None
    if found is None or digest_of_proposal(record.drift) != digest:
        with about_record(record):
            log.info("%s: Azure shows something else than the last sweep saw", record.name)
        return
    _propose(turn, *found, decided, _Live(record, owner, existing))


@dataclass(frozen=True)
class _Live:
    """A cluster as Azure shows it."""

    record: ClusterRecord
    owner: Owner
    existing: Json

    @property
    def name(self) -> str:
        return self.record.name


def _propose(
    turn: _Turn,
    fields: Sequence[DriftedField],
    secret: tuple[LeftOut, ...],
    decided: Sequence[Decided],
    live: _Live,
) -> None:
    new, declined = wanted(turn.proposal, fields)
    left_out = (*secret, *declined)
    found = _manifest(turn, new, decided, live) if new else Proposed("")
    left_out += tuple(LeftOut(path, reason) for path, reason in found.left_out.items())
    taken = [each for each in new if each.path in {one.path for one in found.fields}]
    if not taken:
        _end(turn, left_out=left_out)
        return
    branch, text = turn.branch, pull_text(live.name, taken, left_out)
    values = tuple(map(value_of, taken))
    proposal, ports = turn.proposal, turn.ports
    opened = turn.pull is not None and turn.pull.open
    if not (opened and proposal.values == values):
        tip = ports.proposing.tip(branch)
        if tip is not None and tip not in proposal.commits:
            problem = SOMEBODY_PUSHED.format(branch)
            _save(turn, replace(proposal, digest=turn.digest, left_out=left_out, problem=problem))
            return
        if not opened and not turn.room:
            raise NoRoom
        message = commit_message(live.name, taken)
        content = found.content.encode()
        parents = parents_of(tip, turn.head.commit, turn.ports)
        commit = ports.proposing.add_commit(NewCommit(cluster_path(live.name), content, message, parents))
        asked = proposal.opened if opened else ports.clock()
        proposal = _save(turn, replace(with_commit(proposal, commit), opened=asked))
        if tip is None:
            ports.proposing.create_branch(branch, commit)
        else:
            ports.proposing.advance_branch(branch, commit)
    if turn.pull is not None and opened:
        pull = turn.pull
        ports.proposing.edit_pull(pull.number, text)
    else:
        pull = ports.proposing.open_pull(branch, ports.config.branch, text)
    shown = replace(proposal, number=pull.number, url=pull.url, values=values, left_out=left_out)
    _save(turn, replace(shown, digest=turn.digest, problem="", closing=False))


def _manifest(
    turn: _Turn, fields: Sequence[DriftedField], decided: Sequence[Decided], live: _Live
) -> Proposed:
    """Return the manifest of the newest commit with the values of Azure."""
    manifest = turn.head.manifest(live.name)
    if manifest is None:
        return Proposed("", left_out=dict.fromkeys((each.path for each in fields), NO_MANIFEST))
    verified = live.record.verified
    known = verified.unmanaged if verified else None
    paths = {each.path for each in fields}
    return propose(
        manifest,
        [each.difference for each in decided if each.path in paths],
        partial(turn.head.resolve, live.name),
        lambda desired: drift_of(desired, live.owner, live.existing, known),
    )


def _end(turn: _Turn, *, left_out: tuple[LeftOut, ...] = (), forget: bool = False) -> None:
    """Close the pull request of what is proposed no longer, and delete the branch if it is ours alone."""
    proposal, ports, branch = turn.proposal, turn.ports, turn.branch
    tip = ports.proposing.tip(branch) if proposal.commits else None
    kept = tip is not None and tip not in proposal.commits
    if turn.pull is not None and turn.pull.open:
        again = proposal.closing
        proposal = _save(turn, replace(proposal, closing=True))
        if not (again and ports.pulls.comment(turn.pull.number, OVER)):
            ports.pulls.write_comment(turn.pull.number, over_text(kept=kept), over=None)
        ports.proposing.close_pull(turn.pull.number)
        proposal = replace(proposal, values=())
    declined = turn.pull is not None and not (turn.pull.open or turn.pull.merged)
    if declined and turn.digest:  # somebody may still reopen it
        _save(turn, replace(proposal, digest=turn.digest, left_out=left_out, problem=""))
        return
    if tip is not None and not kept:
        ports.proposing.delete_branch(branch)
    problem = f"somebody else has pushed to the branch {branch}: it stays" if kept else ""
    proposal = replace(proposal, digest=turn.digest, commits=(), closing=False, left_out=left_out)
    if forget or not (turn.digest or proposal.declined or problem):
        if proposal.etag:
            ports.state.remove_proposal(proposal)
        return
    _save(turn, replace(proposal, problem=problem))


def _save(turn: _Turn, proposal: Proposal) -> Proposal:
    return turn.ports.state.save_proposal(replace(proposal, commit=turn.head.fleet.commit))
