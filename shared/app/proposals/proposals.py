"""Opens, updates and closes the pull requests that propose drift: one for each cluster at most.

A message compares what the records say of drift with what the proposals say of pull requests, and works on
those clusters alone whose two digests differ: it makes no call to the host when nothing has changed. All
messages are of one session. What the host refuses is no failure: the next sweep asks again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from shared.app.access.context import StepContext
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.outbox import seconds_until_again, send
from shared.app.own_repository import require_name
from shared.app.pause import AGAIN_SECONDS, pause_now
from shared.app.proposals.ends import settle_ends
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import File, OwnBranch, SomebodyPushed
from shared.app.proposals.remembered import (
    NEW_AT_ONCE,
    branch_of,
    due,
    opened_since,
    proposable,
    seen,
    value_of,
    wanted,
)
from shared.app.proposals.texts import commit_message, over_text, proposal_text
from shared.app.records import again
from shared.app.sweep.corrections import decided_of
from shared.azure.differences import Difference, drift_of
from shared.azure.drift.proposal import Compare, DriftProposal, propose
from shared.cluster.divergence.drift import DriftedField, digest_of_proposal, drift_from
from shared.cluster.failures.errors import (
    OtherRepository,
    ReconcileError,
    Retryable,
    Stale,
    Terminal,
    Unauthorized,
    Unavailable,
    Unreadable,
    Withheld,
)
from shared.cluster.queues.messages import ProposeRequest
from shared.frozen import dataclass, replace
from shared.language.desired import Desired
from shared.language.resolve.repository_layout import cluster_path
from shared.logs import about, about_record
from shared.ports import Ports, Pull
from shared.ports.azure import GetCluster
from shared.ports.state import OmittedField, Proposal
from shared.sentences import some_of

# The proposal of one cluster: its branch and its pull request are brought to what differs now.

NO_MANIFEST = "the newest commit has no manifest of the cluster"


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
    def branch(self) -> OwnBranch[Proposal]:
        """The branch of the proposal."""
        return OwnBranch(branch_of(self.ports.config.fleet, self.proposal.cluster), self.ports, self.save)

    def save(self, proposal: Proposal) -> Proposal:
        """Save a proposal, and return it as saved."""
        return self.ports.state.save_proposal(replace(proposal, commit=self.head.fleet.commit))


def settle(proposal: Proposal, digest: str, *, room: bool, head: Head, ports: Ports) -> None:
    """Do what a cluster's drift asks for, of which ``digest`` is stored, "" for none."""
    pull = ports.git_host.pull(proposal.number) if proposal.number else None
    turn = _Turn(seen(proposal, pull), pull, digest, room, head, ports)
    record = ports.state.cluster(proposal.cluster)
    if not digest or record is None:
        _end(turn, forget=record is None)
        return
    if not record.idle:
        return
    azure = RateLimiter(None, ports).over(ports).azure
    try:
        live = azure.call(GetCluster(record.desired.id))
    except Retryable as error:
        raise NotShown(f"{record.name} cannot be read in Azure: {error.kind}: {error}") from error
    now, owner = ports.clock(), StepContext.of(record, ports).owner
    decided = decided_of(record, live, owner, now) if live is not None else None
    if live is None or decided is None:
        return  # a sweep says what becomes of it
    drift = drift_from(decided, record.divergence.drift, now)
    found = proposable(record.divergence.drift, drift) if record.divergence.drift and drift else None
    if found is None or digest_of_proposal(record.divergence.drift) != digest:
        with about_record(record):
            log.info("%s: Azure shows something else than the last sweep saw", record.name)
        return
    verified, lowered = record.observation.verified, record.divergence.lowered
    known = verified.unmanaged if verified else None

    def compare(written: Desired) -> Sequence[Difference]:
        return drift_of(replace(written, lowered=lowered), owner, live, known)

    _propose(turn, *found, [decision.difference for decision in decided], compare)


def _propose(
    turn: _Turn,
    fields: Sequence[DriftedField],
    secret: tuple[OmittedField, ...],
    differences: Sequence[Difference],
    compare: Compare,
) -> None:
    name = turn.proposal.cluster
    new, declined = wanted(turn.proposal, fields)
    left_out = (*secret, *declined)
    found = _manifest(turn, new, differences, compare) if new else DriftProposal("")
    left_out += tuple(OmittedField(path, reason) for path, reason in found.left_out.items())
    taken = [
        drifted_field for drifted_field in new if drifted_field.path in {field.path for field in found.fields}
    ]
    if not taken:
        _end(turn, left_out=left_out)
        return
    proposal, values = turn.proposal, tuple(map(value_of, taken))
    opened = turn.pull is not None and turn.pull.open
    if not (opened and proposal.values == values):
        if not opened and not turn.room:
            raise NoRoom
        file = File(cluster_path(name), found.content, commit_message(name, taken))
        asked = proposal.opened if opened else turn.ports.clock()
        try:
            proposal = turn.branch.commit(replace(proposal, opened=asked), file, turn.head)
        except SomebodyPushed as error:
            turn.save(replace(proposal, digest=turn.digest, left_out=left_out, problem=str(error)))
            return
    proposal = turn.branch.show(proposal, turn.pull, proposal_text(name, taken, left_out))
    turn.save(replace(proposal, values=values, left_out=left_out, digest=turn.digest, problem=""))


def _manifest(
    turn: _Turn, fields: Sequence[DriftedField], differences: Sequence[Difference], compare: Compare
) -> DriftProposal:
    """Return the manifest of the newest commit with the values of Azure."""
    name = turn.proposal.cluster
    manifest = turn.head.manifest(name)
    if manifest is None:
        return DriftProposal("", left_out=dict.fromkeys((field.path for field in fields), NO_MANIFEST))
    paths = {field.path for field in fields}
    own = [difference for difference in differences if difference.path in paths]
    return propose(manifest, own, partial(turn.head.resolve, name), compare)


def _end(turn: _Turn, *, left_out: tuple[OmittedField, ...] = (), forget: bool = False) -> None:
    """Close the pull request of what is proposed no longer, and delete the branch if it is ours alone."""
    branch, tip = turn.branch, turn.branch.tip(turn.proposal)
    kept = tip is not None and tip not in turn.proposal.commits
    proposal = branch.close(turn.proposal, turn.pull, over_text(kept=kept))
    declined = turn.pull is not None and not (turn.pull.open or turn.pull.merged)
    if declined and turn.digest:  # somebody may still reopen it
        turn.save(replace(proposal, digest=turn.digest, left_out=left_out, problem=""))
        return
    problem = f"somebody else has pushed to the branch {branch.name}: it stays" if kept else ""
    proposal = replace(branch.delete(proposal, tip), digest=turn.digest, commits=(), left_out=left_out)
    if forget or not (turn.digest or proposal.declined or problem):
        if proposal.etag:
            turn.ports.state.remove_proposal(proposal)
        return
    turn.save(replace(proposal, problem=problem))


log = logging.getLogger(__name__)

SECONDS = 120.0
"""After so long another message continues: less than half of ``functionTimeout``."""
NAMED = 3


def handle(request: ProposeRequest, ports: Ports) -> None:
    """Bring the pull requests about drift and lifetimes up to date; postpone that while a service is away."""
    if pause_now(ports):
        send(request, ports, after=AGAIN_SECONDS)
        return
    try:
        settle_ends(request.pull, ports)
        _say(_all(request, ports), ports)
    except Unauthorized as error:
        _say(f"{ports.git_host.name} refuses to open pull requests: {error}", ports)
    except RateLimited as limited:
        wait = max(0.0, (limited.at - ports.clock()).total_seconds())
        send(request.next_attempt(), ports, after=wait)
    except ReconcileError as error:
        seconds = seconds_until_again(error, request, ports)
        log.warning("proposals are not up to date: %s: %s", error.kind, error)
        if seconds is not None:
            send(request.next_attempt(), ports, after=seconds)
            return
        _say(f"pull requests are not up to date: {error.kind}: {error}", ports)


def _all(request: ProposeRequest, ports: Ports) -> str:
    """Work on the proposals that are due; return why some are left, "" where none is.

    A message that continues begins after the cluster that was the last one: what is due may stay so, as while
    Azure works on a cluster.

    Raise Unavailable, after all others, for a cluster that Azure does not show.
    """
    end, fleet = ports.elapsed() + SECONDS, ports.state.fleet()
    stored, listed = ports.state.proposals(), ports.state.summaries()
    known = {proposal.cluster: proposal for proposal in stored}
    summaries = {summary.name: summary for summary in listed}
    unknown = stored.unreadable_names | listed.unreadable_names  # of these, nothing is opened or closed
    names = [name for name in due(summaries, known, fleet.commit, request.pull) if name not in unknown]
    if names:
        require_name(fleet, ports)
    since = ports.state.sweep().started if names else None
    head, left, last = Head(fleet, ports), _Remainder(), request.beyond
    room = opened_since(known.values(), since) < NEW_AT_ONCE
    for name in names:
        digest = summaries[name].divergence.proposed if name in summaries else ""
        proposal = known.get(name) or Proposal(name)
        if digest and not (room or proposal.number):
            left.waiting += 1  # of thousands, each would be read in Azure and on the host
            continue
        if name <= request.beyond:
            continue
        if last != request.beyond and ports.elapsed() > end:
            send(ProposeRequest(pull=request.pull, beyond=last, attempt=request.attempt), ports)
            break
        last = name
        if left.settle(proposal, digest, room=room, head=head, ports=ports):
            known.pop(name, None)
            changed = ports.state.proposal(name)
            known |= {name: changed} if changed else {}
            room = opened_since(known.values(), since) < NEW_AT_ONCE
    if left.unread:
        raise Unavailable(left.unread)
    return "; ".join(filter(None, (_waits(left.waiting), _not_understood(left.strange))))


class _Remainder:
    """What one message could not do: of clusters without room, not shown by Azure, or not understood."""

    def __init__(self) -> None:
        self.waiting = 0
        self.unread = ""
        self.strange = list[str]()

    def settle(self, proposal: Proposal, digest: str, *, room: bool, head: Head, ports: Ports) -> bool:
        """Settle the proposal of one cluster; return whether what is stored of it may have changed.

        A cluster that is not understood keeps no other one from its pull request. Raise what concerns all:
        OtherRepository and Withheld until the host serves our repository again, RateLimited, ReconcileError.
        """
        name = proposal.cluster
        with about(cluster=name):
            try:
                settle(proposal, digest, room=room, head=head, ports=ports)
            except NoRoom:
                self.waiting += 1
                return False
            except NotShown as error:
                self.unread = self.unread or str(error)
                return False
            except Stale:
                log.info("%s: its proposal was written meanwhile", name)
            except (OtherRepository, Withheld):
                raise
            except Terminal as error:
                log.warning("%s: nothing is proposed: %s: %s", name, error.kind, error)
                saved = ports.state.proposal(name) or Proposal(name)
                problem, commit = f"{error.kind}: {error}", head.fleet.commit
                ports.state.save_proposal(replace(saved, digest=digest, problem=problem, commit=commit))
            except Unreadable as error:
                log.warning("%s: nothing is proposed: %s", name, error)
                return False
            except (RateLimited, ReconcileError):
                raise
            except Exception:
                log.exception("%s: nothing is proposed", name)
                self.strange.append(name)
                return False
        return True


def _waits(number: int) -> str:
    if not number:
        return ""
    are = "cluster waits" if number == 1 else "clusters wait"
    return f"{number} {are} for a pull request: a sweep opens {NEW_AT_ONCE}, and the next one opens more"


def _not_understood(names: Sequence[str]) -> str:
    return f"nothing is proposed of {some_of(names, NAMED)}: the log has the details" if names else ""


@again
def _say(problem: str, ports: Ports) -> None:
    """Save why pull requests are not opened that should be, "" for nothing, if that is something new."""
    record = ports.state.sweep()
    if record.proposals != problem:
        ports.state.save_sweep(replace(record, proposals=problem))
