"""The pull requests that operators ask for: promotions by hand, and rollbacks of node pools.

What is wrong with one is answered at once. That of a promotion is opened by a message, which evaluates it
again; a merged rollback is carried out by the worker, which reads Azure's conditions again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from shared.app.access.azure_state import profiles_of
from shared.app.access.context import StepContext
from shared.app.access.rate_limiter import RateLimited, RateLimiter
from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, known_cluster, proposing
from shared.app.http_result import meant
from shared.app.outbox import send
from shared.app.proposals.evaluation import evaluate
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import open_asked, pull_text
from shared.app.proposals.promote import refusal
from shared.app.pull_requests.markdown import code, prose, table
from shared.azure.node_pools.replacement import serving
from shared.azure.node_pools.rollback import (
    WITHIN,
    RecentVersions,
    asked_for,
    nothing_listed,
    recently_used,
    unmet,
    versions_of,
)
from shared.azure.ownership import rollback_tag
from shared.cluster.divergence.drift import ROLLBACKS
from shared.cluster.queues.message_parts import PromotionOrder
from shared.cluster.queues.messages import PromotionRequest
from shared.cluster.record import ClusterRecord
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.model.node_pool import NodePool
from shared.language.resolve.repository_layout import cluster_path
from shared.language.yaml.editing import NotEditable, with_value
from shared.masking import cut
from shared.ports import Ports, Pull, PullText
from shared.ports.azure import GetCluster, GetPoolUpgradeProfile
from shared.promotions import Promotable


@answers(202)
def promote(
    source: str, target: str, what: Sequence[str], by: str, ports: Ports, reason: str = ""
) -> schema.PromotionReceipt:
    """Queue the pull request; ``what`` is empty for everything that differs."""
    if source == target or not {*what} <= {*Promotable}:
        raise Refusal(400, f"from and to are two environments, and what is some of {', '.join(Promotable)}")
    chosen = tuple(map(Promotable, dict.fromkeys(what)))
    found = evaluate(source, target, chosen or tuple(Promotable), Head(ports.state.fleet(), ports))
    problem = refusal(found, named=bool(chosen))
    if problem:
        known = {summary.place.environment for summary in ports.state.summaries()} - {""}
        hints = (meant(name, known) for name in (source, target) if name not in known)
        raise Refusal(409, problem + "".join(hints))
    asked = PromotionOrder(source=source, target=target, what=chosen, by=by, at=ports.clock(), reason=reason)
    send(PromotionRequest(promotion=asked), ports)
    return {
        "queued": "promotion",
        "source": source,
        "target": target,
        "values": [{"field": proof.value.path, "value": proof.value.value} for proof in found.proofs],
        "clusters": list(found.takers),
        "by": by,
    }


@answers(201)
def roll_back(name: str, pool: str, by: str, ports: Ports, reason: str = "") -> schema.RollbackReceipt:
    """Open the pull request that rolls a node pool of a cluster back by one step."""
    record = known_cluster(name, ports.state.cluster(name), ports)
    head = Head(ports.state.fleet(), ports)
    try:
        with proposing():
            asked = _asked(record, pool, head, ports, by=by, reason=reason)
            pull = open_rollback(asked, head, ports)
    except RateLimited as limited:
        raise Refusal(503, str(limited)) from limited
    return {
        "cluster": name,
        "pool": pool,
        "running": _shown(asked.before),
        "target": _shown(asked.target),
        "lastUsed": asked.target.moment,
        "pullRequest": pull.url,
        "by": asked.by,
    }


@dataclass(frozen=True)
class _ServedPool:
    """A pool of the manifest, and the one in Azure that serves it."""

    desired: Desired
    pool: NodePool
    manifest: str
    cluster: Json
    profile: Json


def _asked(
    record: ClusterRecord, pool: str, head: Head, ports: Ports, *, by: str, reason: str
) -> RollbackRequest:
    azure = RateLimiter(None, ports).over(ports).azure
    found = _found(record, pool, head, ports)
    answer = azure.call(GetPoolUpgradeProfile(record.desired.id, str(found.profile["name"])))
    listed = recently_used(answer)
    if not listed:
        nothing = nothing_listed(pool)
        _refuse(f"{nothing.problem}; {nothing.remedy}")
    target = listed[0]
    failing = unmet(
        pool,
        target,
        listed,
        found.cluster,
        found.profile,
        oldest_image=found.desired.spec.min_node_image_version or "",
        now=ports.clock(),
    )
    if failing:
        _refuse(". ".join(f"{requirement.problem}: {requirement.remedy}" for requirement in failing))
    if asked_for(found.pool) == target:
        _refuse(f"git asks for this rollback already: roadstead why {record.name} says what it waits for")
    content = _edited(record.name, found, target, head)
    return RollbackRequest(record.name, pool, versions_of(found.profile), target, content, by, reason)


def _found(record: ClusterRecord, pool: str, head: Head, ports: Ports) -> _ServedPool:
    if record.desired.is_attached:
        _refuse(f"{record.name} is attached: Roadstead does not manage its node pools")
    manifest = head.manifest(record.name)
    desired = (
        head.resolve(record.name, manifest) if manifest is not None else "the newest commit has no manifest"
    )
    if manifest is None or isinstance(desired, str):
        _refuse(f"the manifest of {record.name} cannot be changed: {desired}")
    wanted = next((candidate for candidate in desired.spec.node_pools if candidate.name == pool), None)
    if wanted is None:
        names = ", ".join(candidate.name for candidate in desired.spec.node_pools)
        _refuse(f"{record.name} has no node pool {cut(pool, 63)}; it has {names}")
    owner = StepContext.of(record, ports).owner
    live = RateLimiter(None, ports).over(ports).azure.call(GetCluster(record.desired.id))
    if live is None or not owner.owns(live):
        _refuse(f"Azure does not show the cluster {record.name} as this fleet's")
    mine = serving(profiles_of(live), owner).get(pool, ())
    if len(mine) != 1:
        state = "is being replaced" if mine else "does not exist in Azure"
        _refuse(f"the node pool {pool} of {record.name} {state}")
    return _ServedPool(desired, wanted, manifest, live, mine[0])


def _edited(name: str, found: _ServedPool, target: RecentVersions, head: Head) -> str:
    """Return the manifest with the rollback; every other character of it stays."""
    at = ["spec", "nodePools", f"[{found.pool.name}]"]
    asked = {"nodeImageVersion": target.image, "lastUsed": target.moment}
    try:
        text = with_value(found.manifest, [*at, "orchestratorVersion"], target.kubernetes)
        text = with_value(text, [*at, "rollback"], asked)
    except NotEditable as error:
        _refuse(f"the manifest of {name} cannot be changed by itself ({error}): write it by hand")
    after = head.resolve(name, text)
    if isinstance(after, str):
        _refuse(f"the manifest of {name} would be invalid: {after}")
    pools = {pool.name: pool for pool in after.spec.node_pools}
    if asked_for(pools[found.pool.name]) != target:
        _refuse(f"another file sets the versions of the pool {found.pool.name}")
    return text


def _shown(versions: RecentVersions) -> schema.PoolVersionsView:
    return {"orchestratorVersion": versions.kubernetes, "nodeImageVersion": versions.image}


def _refuse(why: str) -> NoReturn:
    raise Refusal(409, why)


# The pull request of a rollback: a branch for each upgrade that is undone.


@dataclass(frozen=True)
class RollbackRequest:
    """A rollback that may be proposed: ``before`` is what the pool runs, ``content`` the new manifest."""

    cluster: str
    pool: str
    before: RecentVersions
    target: RecentVersions
    content: str
    by: str
    reason: str = ""

    @property
    def title(self) -> str:
        """The first line of the commit and of the pull request."""
        return f"Roll back {self.cluster}/{self.pool} to Kubernetes {self.target.kubernetes}"


def open_rollback(asked: RollbackRequest, head: Head, ports: Ports) -> Pull:
    """Open the pull request, or return the one that is open; raise Conflict for a branch of somebody else."""
    of_upgrade = f"{asked.cluster}/{asked.pool}-{rollback_tag(asked.target.last_used)}"
    branch = f"{ROLLBACKS}{ports.config.fleet}/{of_upgrade}"
    return open_asked(branch, {cluster_path(asked.cluster): asked.content}, _text(asked), head, ports)


def _text(asked: RollbackRequest) -> PullText:
    before, target = asked.before, asked.target
    rows = [
        (code("Kubernetes"), code(before.kubernetes), code(target.kubernetes)),
        (code("node image"), code(before.image), code(target.image)),
    ]
    why = f" Reason: {prose(asked.reason)}" if asked.reason else ""
    pool = code(f"{asked.cluster}/{asked.pool}")
    until = f"{target.last_used + WITHIN:%Y-%m-%d %H:%M} UTC"
    parts = [
        f"{prose(asked.by)} asked to roll the node pool {pool} back to what it ran before its upgrade.{why}",
        table(("what", "runs", "rolls back to"), rows),
        f"- **Merge** this before {until}: Azure rolls back within seven days. The worker reads the "
        "conditions again right before it starts, and holds if one is not met any more.\n"
        "- AKS replaces every node of the pool, and takes the security patches of the newer versions away. "
        "Correct the cause, then upgrade again: raise orchestratorVersion and remove rollback.\n"
        "- **Close** it to change nothing.",
    ]
    return pull_text(asked.title, parts)
