"""Opens, updates and closes the pull requests that propose drift: one for each cluster at most.

A message compares what the records say of drift with what the proposals say of pull requests, and works on
those clusters alone whose two digests differ: it makes no call to the host when nothing has changed. All
messages are of one session. What the host refuses is no failure: the next sweep asks again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from shared.app.access.rate_limiter import RateLimited
from shared.app.outbox import send
from shared.app.pause import AGAIN_SECONDS, pause_now
from shared.app.proposals.cluster import NoRoom, NotShown, settle
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import seconds_until_again
from shared.app.proposals.remembered import NEW_AT_ONCE, due, opened_since
from shared.app.records import again
from shared.app.repository import require_name
from shared.cluster.failures.errors import (
    OtherRepository,
    ReconcileError,
    Stale,
    Terminal,
    Unauthorized,
    Unavailable,
    Unreadable,
    Withheld,
)
from shared.cluster.queues.messages import ProposeRequest
from shared.logs import about
from shared.ports import Ports
from shared.ports.state import Proposal
from shared.sentences import some_of

log = logging.getLogger(__name__)

SECONDS = 120.0
"""After so long another message continues: less than half of ``functionTimeout``."""
NAMED = 3


def handle(request: ProposeRequest, ports: Ports) -> None:
    """Bring the pull requests about drift up to date; postpone that while a service does not answer."""
    if pause_now(ports):
        send(request, ports, after=AGAIN_SECONDS)
        return
    try:
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
    known, summaries = (
        {proposal.cluster: proposal for proposal in stored},
        {summary.name: summary for summary in listed},
    )
    unknown = stored.unreadable_names | listed.unreadable_names  # of these, nothing is opened or closed
    names = [name for name in due(summaries, known, fleet.commit, request.pull) if name not in unknown]
    if names:
        require_name(fleet, ports)
    since = ports.state.sweep().started if names else None
    head, waiting, unread, strange = Head(fleet, ports), 0, "", list[str]()
    room = opened_since(known.values(), since) < NEW_AT_ONCE
    last = request.beyond
    for name in names:
        digest = summaries[name].divergence.proposed if name in summaries else ""
        proposal = known.get(name) or Proposal(name)
        if digest and not (room or proposal.number):
            waiting += 1  # of thousands, each would be read in Azure and on the host
            continue
        if name <= request.beyond:
            continue
        if last != request.beyond and ports.elapsed() > end:
            send(ProposeRequest(pull=request.pull, beyond=last, attempt=request.attempt), ports)
            break
        last = name
        try:
            settle(proposal, digest, room=room, head=head, ports=ports)
        except NoRoom:
            waiting += 1
            continue
        except NotShown as error:
            unread = unread or str(error)
            continue
        except Stale:
            with about(cluster=name):
                log.info("%s: its proposal was written meanwhile", name)
        except (OtherRepository, Withheld):  # of all clusters, and until the host serves our repository again
            raise
        except Terminal as error:
            with about(cluster=name):
                log.warning("%s: nothing is proposed: %s: %s", name, error.kind, error)
            saved = ports.state.proposal(name) or Proposal(name)
            problem = f"{error.kind}: {error}"
            ports.state.save_proposal(replace(saved, digest=digest, problem=problem, commit=fleet.commit))
        except Unreadable as error:
            with about(cluster=name):
                log.warning("%s: nothing is proposed: %s", name, error)
            continue
        except (RateLimited, ReconcileError):
            raise
        except Exception:  # one cluster that is not understood keeps no other one from its pull request
            with about(cluster=name):
                log.exception("%s: nothing is proposed", name)
            strange.append(name)
            continue
        known.pop(name, None)
        changed = ports.state.proposal(name)
        known |= {name: changed} if changed else {}
        room = opened_since(known.values(), since) < NEW_AT_ONCE
    if unread:
        raise Unavailable(unread)
    return "; ".join(filter(None, (_waits(waiting), _not_understood(strange))))


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
