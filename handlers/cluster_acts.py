"""The audited acts on clusters: on one of the fleet, on some, or on one that is to come."""

from __future__ import annotations

from collections.abc import Iterable

from handlers import bodies
from handlers.act_route import ActCall, ActRoute, denial, of_cluster, of_clusters
from shared.app.api import schema
from shared.app.api.access import Role
from shared.app.api.acts import WITHOUT_REASON, azure, cluster, pulls, requests, suspensions, tries
from shared.app.api.acts.approval import approve
from shared.app.api.acts.request_limits import ClusterRequest
from shared.app.api.acts.times import OrderKind, extend, order_sleep
from shared.app.api.audit import AuditedAct
from shared.app.http_result import HttpResult, rejected
from shared.cluster.history import LIVE


def _override_refusal(call: ActCall) -> HttpResult | None:
    """Refuse a replay that overrides a freeze to all but an Approver with a reason."""
    denied = denial(call, Role.APPROVER, of_cluster) if call.body.override else None
    if denied is not None:
        return denied
    return rejected(400, WITHOUT_REASON) if call.body.override and not call.reason.strip() else None


def _on_cluster(action: str, call: ActCall, *parts: str) -> AuditedAct:
    """Return the request for an act on the cluster of the route, or on ``parts`` of it."""
    return AuditedAct(action, "/".join((call.path["name"], *parts)), (call.path["name"],))


def _on_clusters(action: str, names: Iterable[str], target: str = "") -> AuditedAct:
    return AuditedAct(action, target or ", ".join(names) or "all", tuple(names))


def _of_sleep(kind: OrderKind) -> ActRoute:
    """Return an order about the sleep of a cluster; only one that keeps it awake needs its end."""
    return ActRoute(
        kind.value,
        f"clusters/{{name}}/{kind}",
        Role.OPERATOR,
        schema.SleepReceipt,
        audit=lambda call: _on_cluster(kind.value, call),
        act=lambda call: order_sleep(
            kind, call.path["name"], call.body.until, call.by, call.ports, call.reason
        ),
        body=bodies.PostponeBody if kind is OrderKind.POSTPONE else bodies.UntilBody,
        needs_reason=True,
        concerns=of_cluster,
    )


CLUSTER_ACTS = (
    ActRoute(
        "approve",
        "plans/{commit}/approve",
        Role.APPROVER,
        schema.Receipt,
        audit=lambda call: _on_clusters("approve", call.body.clusters, call.path["commit"]),
        act=lambda call: approve(
            call.path["commit"],
            call.body.clusters,
            call.by,
            call.ports,
            reason=call.reason,
            addresses=call.caller.principal.addresses,
        ),
        body=bodies.ApprovalBody,
        concerns=of_clusters,
    ),
    ActRoute(
        "approve_correction",
        "clusters/{name}/approve",
        Role.APPROVER,
        schema.Receipt,
        audit=lambda call: _on_cluster("approve", call, call.body.correction),
        act=lambda call: cluster.approve_correction(
            call.path["name"], call.body.correction, call.by, call.ports, reason=call.reason
        ),
        body=bodies.CorrectionBody,
        concerns=of_cluster,
    ),
    ActRoute(
        "accept",
        "clusters/{name}/accept",
        Role.OPERATOR,
        schema.Receipt,
        audit=lambda call: _on_cluster("accept", call, ", ".join(sorted(call.body.fields))),
        act=lambda call: cluster.accept_differences(
            call.path["name"], call.body.fields, call.by, call.ports, reason=call.reason
        ),
        body=bodies.AcceptanceBody,
        concerns=of_cluster,
    ),
    ActRoute(
        "replay",
        "clusters/{name}/replay",
        Role.OPERATOR,
        schema.Receipt,
        audit=lambda call: _on_cluster("replay-override" if call.body.override else "replay", call),
        act=lambda call: cluster.replay(
            call.path["name"], call.by, call.ports, call.reason, override=call.body.override
        ),
        body=bodies.ReplayBody,
        refusal=_override_refusal,
        concerns=of_cluster,
    ),
    ActRoute(
        "rollback",
        "clusters/{name}/pools/{pool}/rollback",
        Role.OPERATOR,
        schema.RollbackReceipt,
        audit=lambda call: _on_cluster("rollback", call, call.path["pool"]),
        act=lambda call: pulls.roll_back(
            call.path["name"], call.path["pool"], call.by, call.ports, call.reason
        ),
        concerns=of_cluster,
    ),
    ActRoute(
        "try",
        "clusters/{name}/try",
        Role.OPERATOR,
        schema.TryReceipt,
        audit=lambda call: _on_cluster("try", call, str(call.body.pull)),
        act=lambda call: tries.begin_try(
            call.path["name"], call.body.pull, call.body.lasts, call.by, call.ports, call.reason
        ),
        body=bodies.TryBody,
        concerns=of_cluster,
    ),
    ActRoute(
        "request",
        "requests",
        Role.READER,
        schema.ClusterRequestReceipt,
        audit=lambda call: AuditedAct("request", call.body.name, (call.body.name,)),
        act=lambda call: requests.request_cluster(
            ClusterRequest(
                call.body.name,
                call.body.cluster_class,
                call.body.lifetime,
                call.body.environment,
                call.body.location,
                call.reason,
            ),
            call.caller.principal,
            call.ports,
        ),
        body=bodies.ClusterRequestBody,
        needs_reason=True,
    ),
    ActRoute(
        "extend",
        "clusters/{name}/extend",
        Role.OPERATOR,
        schema.LifetimeReceipt,
        audit=lambda call: _on_cluster("hold" if call.body.hold else "extend", call),
        act=lambda call: extend(
            call.path["name"], call.body.lasts, call.by, call.ports, call.reason, hold=call.body.hold
        ),
        body=bodies.LifetimeBody,
        needs_reason=True,
        concerns=of_cluster,
    ),
    ActRoute(
        "end_try",
        "clusters/{name}/try/end",
        Role.OPERATOR,
        schema.Receipt,
        audit=lambda call: _on_cluster("try-end", call, str(call.body.pull)),
        act=lambda call: tries.end_try(call.path["name"], call.body.pull, call.by, call.ports),
        body=bodies.PullBody,
        concerns=of_cluster,
    ),
    *(_of_sleep(kind) for kind in OrderKind),
    ActRoute(
        "takeover",
        "clusters/{name}/takeover",
        Role.APPROVER,
        schema.Receipt,
        audit=lambda call: _on_cluster("takeover", call),
        act=lambda call: cluster.take_over(call.path["name"], call.by, call.ports, call.reason),
        concerns=of_cluster,
    ),
    ActRoute(
        "refresh",
        "refresh",
        Role.OPERATOR,
        schema.RefreshReceipt,
        audit=lambda call: _on_clusters("refresh", call.body.clusters),
        act=lambda call: cluster.refresh(call.body.clusters, call.by, call.ports),
        body=bodies.RefreshBody,
        concerns=of_clusters,
    ),
    ActRoute(
        "read_readiness",
        "readiness",
        Role.OPERATOR,
        schema.RefreshReceipt,
        audit=lambda call: _on_clusters("readiness", call.body.clusters),
        act=lambda call: cluster.read_readiness(call.body.clusters, call.by, call.ports),
        body=bodies.RefreshBody,
        concerns=of_clusters,
    ),
    ActRoute(
        "suspend",
        "suspensions",
        Role.OPERATOR,
        schema.SuspensionReceipt,
        audit=lambda call: _on_clusters("suspend", call.body.clusters),
        act=lambda call: suspensions.suspend(
            call.body.clusters, call.body.lasts, call.body.owner, call.by, call.ports, call.reason
        ),
        body=bodies.SuspensionBody,
        needs_reason=True,
        concerns=of_clusters,
    ),
    ActRoute(
        "import",
        "import",
        Role.OPERATOR,
        schema.Import,
        audit=lambda call: AuditedAct("import", call.body.resource),
        act=lambda call: azure.import_cluster(call.body.resource, call.ports),
        body=bodies.ResourceQuery,
        method="GET",
    ),
    ActRoute(
        "importable",
        "importable",
        Role.OPERATOR,
        schema.Importable,
        audit=lambda call: AuditedAct("import", call.body.subscription),
        act=lambda call: azure.importable(call.body.subscription, call.ports),
        body=bodies.SubscriptionQuery,
        method="GET",
    ),
    ActRoute(
        "live",
        "live",
        Role.OPERATOR,
        schema.Live,
        audit=lambda call: _on_clusters(LIVE, call.body.clusters),
        act=lambda call: azure.read_live(call.body.clusters, call.ports),
        body=bodies.LiveQuery,
        method="GET",
        concerns=of_clusters,
    ),
)
