"""Approvals of deletes: exactly the set that was planned, by somebody else where that is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, receipt
from shared.app.outbox import send
from shared.cluster.failures.errors import ReconcileError, TooLarge
from shared.cluster.queues.message_parts import Approval
from shared.cluster.queues.messages import PlanRequest
from shared.language.resolve.repository_layout import CLUSTERS
from shared.masking import cut
from shared.ports import GitHost, Ports
from shared.ports.git_host import Addressee
from shared.sentences import some_of

# Approvals by somebody else: who wrote the removal of a cluster, or its rebuild, does not approve it.

CHANGES = 20
"""As many of the newest changes of a manifest are searched for the author of a rebuild."""
MOST = 50
"""How many deletes one approval can have while their authors are read, each with a call to the git host."""


def require_another_author(
    commit: str, deletes: Sequence[str], rebuilds: Collection[str], addresses: frozenset[str], ports: Ports
) -> None:
    """Refuse an approval by somebody who removed one of the clusters."""
    if len(deletes) > MOST:
        raise Refusal(409, f"with APPROVAL_BY_OTHERS an approval has at most {MOST} deletes; remove fewer")
    for name in deletes:
        try:
            authors = _authors(commit, name, ports, rebuilds=name in rebuilds)
        except ReconcileError as error:
            unread = f"the authors of the removal of {name} could not be read: {error}"
            raise Refusal(502, unread) from error
        problem = why_not(name, addresses, authors, ports.git_host)
        if problem:
            raise Refusal(403, problem)


def _authors(commit: str, name: str, ports: Ports, *, rebuilds: bool) -> frozenset[str]:
    """Return who may have written the removal of a cluster; nobody where one of them is unknown.

    The newest change of its folder removes it. A rebuild can be of any change since the spec that runs.
    """
    changes = ports.git_host.changes(commit, f"{CLUSTERS}/{name}", CHANGES if rebuilds else 1)
    if rebuilds:
        record = ports.state.cluster(name)
        runs = record.commit if record else ""
        changes = [*takewhile(lambda change: change.commit != runs, changes)] or changes
    if not all(change.people for change in changes):
        return frozenset()
    return frozenset().union(*(change.people for change in changes))


def why_not_author(
    commit: str, setting: str, addresses: frozenset[str], authors: frozenset[str], host: GitHost
) -> str:
    """Return why a person may not approve a commit, "" if the person may; ``setting`` asks for that."""
    found = {address: host.addressee(address) for address in authors}
    people = {address for address, whose in found.items() if whose is not Addressee.NOBODY}
    if not addresses:
        return f"{setting}: only a person with an address in Entra can approve"
    if addresses & people:
        return f"you are an author of {commit}; somebody else has to approve"
    if not people or Addressee.HIDDEN in found.values():
        return f"{commit} has no address of its author to compare with yours"
    return ""


def why_not(cluster: str, addresses: frozenset[str], authors: frozenset[str], host: GitHost) -> str:
    """Return why a person may not approve the delete of a cluster, "" if the person may.

    ``addresses`` are the person's according to Entra, ``authors`` those of the commits that may have removed
    the cluster. Who cannot be compared may not: an app or a key, and the approver of a hidden author.
    """
    commit = f"the commit that removes {cluster}"
    return why_not_author(commit, "APPROVAL_BY_OTHERS", addresses, authors, host)


NAMES_SHOWN = 20


@answers(202)
def approve(
    commit: str,
    clusters: Iterable[str],
    by: str,
    ports: Ports,
    *,
    reason: str = "",
    addresses: frozenset[str] = frozenset(),
) -> schema.Receipt:
    """Ask the planner to carry out the deletes of a plan, if they are exactly those that need approval.

    ``addresses`` are those of the person who approves, for a fleet in which somebody else has to.

    Only the planner writes plans, so the approval travels in its request, and the planner checks it again.
    """
    requested = frozenset(clusters)
    plan_record = ports.state.plan(commit)
    if plan_record is None:
        raise Refusal(404, f"the commit {cut(commit, 40)} was not planned (give the full id)")
    head = ports.state.fleet().commit
    if commit != head:
        raise Refusal(409, f"{commit[:8]} is no longer the commit that was planned last; {head[:8]} is")
    deletes = sorted(plan_record.plan.deletes_needing_approval)
    if not deletes or sorted(requested) != deletes:
        raise Refusal(409, f"an approval names exactly the deletes that need it: {_first(deletes)}")
    if ports.config.approvals.by_others:
        rebuilds = {item.cluster for item in plan_record.plan.items if item.rebuilds}
        require_another_author(commit, deletes, rebuilds, addresses, ports)
    now = ports.clock()
    approval = Approval(commit=commit, clusters=tuple(deletes), by=by, at=now, reason=reason)
    message_id = f"approved:{commit}:{int(approval.at.timestamp())}"
    request = PlanRequest(again=True, reason="approved", approval=approval)
    try:
        send(request, ports, message_id=message_id)
    except TooLarge as error:
        too_many = f"{len(deletes)} deletes are too many for one approval; commit them in parts"
        raise Refusal(413, too_many) from error
    return receipt(commit, by)


def _first(names: Sequence[str]) -> str:
    return some_of(names, NAMES_SHOWN) or "none"
