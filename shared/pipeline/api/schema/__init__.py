"""The objects of the HTTP API, version v1alpha, as the server writes them and the command reads them.

Times are ISO 8601 in UTC. Lists of clusters come in pages: ``next`` is the ``after`` of the next page, None
on the last one. These modules import nothing else, so that the command starts quickly.
"""

from __future__ import annotations

from shared.pipeline.api.schema.acts import (
    ApprovalReceipt,
    DeadLetter,
    DeadLetters,
    DismissReceipt,
    Imported,
    RefreshReceipt,
    ReplayReceipt,
    SourceReceipt,
    SyncReceipt,
    TakeoverReceipt,
)
from shared.pipeline.api.schema.clusters import (
    DELETED,
    NOT_CREATED,
    Act,
    Cluster,
    ClusterSummary,
    Condition,
    Event,
    Events,
    Failure,
    FleetProblem,
    MissingCluster,
    PlanPart,
    Retirement,
    Why,
)
from shared.pipeline.api.schema.drift import Drift, DriftedCluster, DriftedField
from shared.pipeline.api.schema.fleet import (
    Audit,
    Counts,
    FailingChannel,
    Fleet,
    Gap,
    Gaps,
    Orphan,
    Sweep,
    SweepProblem,
)
from shared.pipeline.api.schema.health import Health, Readiness, ServiceHealth, TimerHealth
from shared.pipeline.api.schema.live import Live, LiveCluster
from shared.pipeline.api.schema.notifications import Route, RouteReceipt, Routes
from shared.pipeline.api.schema.plans import (
    Approval,
    Change,
    Plan,
    PlanItem,
    Plans,
    PlanSummary,
    Progress,
    Recorded,
    RecordedCluster,
)
from shared.pipeline.api.schema.tree import NodePool, ObjectGroup, Tree, UnhealthyObject

__all__ = [
    "DELETED",
    "NOT_CREATED",
    "Act",
    "Approval",
    "ApprovalReceipt",
    "Audit",
    "Change",
    "Cluster",
    "ClusterSummary",
    "Condition",
    "Counts",
    "DeadLetter",
    "DeadLetters",
    "DismissReceipt",
    "Drift",
    "DriftedCluster",
    "DriftedField",
    "Event",
    "Events",
    "FailingChannel",
    "Failure",
    "Fleet",
    "FleetProblem",
    "Gap",
    "Gaps",
    "Health",
    "Imported",
    "Live",
    "LiveCluster",
    "MissingCluster",
    "NodePool",
    "ObjectGroup",
    "Orphan",
    "Plan",
    "PlanItem",
    "PlanPart",
    "PlanSummary",
    "Plans",
    "Progress",
    "Readiness",
    "Recorded",
    "RecordedCluster",
    "RefreshReceipt",
    "ReplayReceipt",
    "Retirement",
    "Route",
    "RouteReceipt",
    "Routes",
    "ServiceHealth",
    "SourceReceipt",
    "Sweep",
    "SweepProblem",
    "SyncReceipt",
    "TakeoverReceipt",
    "TimerHealth",
    "Tree",
    "UnhealthyObject",
    "Why",
]
