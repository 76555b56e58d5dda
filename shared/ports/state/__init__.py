"""What Roadstead stores: repositories over the port of tables, and State, which combines them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from shared.cluster.failures.errors import Unreadable
from shared.cluster.forms import UnreadableRecord
from shared.ports.process import Together, in_threads
from shared.ports.state.app import (
    ACT,
    ACTS,
    BUCKETS,
    DEAD_LETTER,
    DEAD_LETTERS,
    DELIVERIES,
    LONG_AGO,
    NOTIFICATION,
    TIMER,
    Acts,
    DeadLetter,
    DeadLetters,
    Deliveries,
    Notifications,
    TimerRun,
    Timers,
)
from shared.ports.state.clusters import CLUSTERS, EVENTS, FLEETS, RECORD, Clusters
from shared.ports.state.exported import ExportedRows
from shared.ports.state.fleet import (
    FLEET,
    AppIdentity,
    BranchRead,
    Expectations,
    FleetRecord,
    FleetRecords,
    FleetRules,
    Handover,
    Override,
    Source,
)
from shared.ports.state.plans import BLOBS, PLAN, PLANS, PlanBrief, PlanRecord, Plans, PullPlanRecord
from shared.ports.state.promotions import (
    PROMOTION,
    PROPOSAL,
    ROLLOUT,
    LiftedHold,
    OmittedField,
    Promotion,
    Promotions,
    Proposal,
    Proposals,
    Rollouts,
)
from shared.ports.state.readiness import EXAMINATION, READINESS, Examinations, Readinesses, ReadinessRecord
from shared.ports.state.reading import RecordKind
from shared.ports.state.subscriptions import (
    CHANGES,
    COSTS,
    USED,
    WEEK,
    Costs,
    ListedClusters,
    Listing,
    Orphan,
    SubscriptionCosts,
    SweepRecord,
    Sweeps,
    WeekOfCosts,
    sweep_key,
)
from shared.ports.tables import Condition, Table

__all__ = [
    "TABLES",
    "AppIdentity",
    "BranchRead",
    "Clusters",
    "DeadLetter",
    "Deliveries",
    "Expectations",
    "FleetRecord",
    "FleetRules",
    "Handover",
    "LiftedHold",
    "ListedClusters",
    "Listing",
    "OmittedField",
    "Orphan",
    "Override",
    "PlanBrief",
    "PlanRecord",
    "Promotion",
    "Proposal",
    "PullPlanRecord",
    "ReadinessRecord",
    "Source",
    "State",
    "SubscriptionCosts",
    "SweepRecord",
    "TimerRun",
    "WeekOfCosts",
]

TABLES = (EVENTS, BLOBS, DEAD_LETTERS, BUCKETS, PLANS, CLUSTERS, FLEETS, ACTS, DELIVERIES)
_SKEW = timedelta(seconds=10)
"""How much earlier a record may have been written that shows later: each partition has a clock of its own."""
_READ_WHERE_CHANGED: Sequence[tuple[RecordKind[Any], tuple[Condition, ...]]] = (
    *(
        (kind, ())
        for kind in (
            RECORD,
            ACT,
            DEAD_LETTER,
            PROMOTION,
            PROPOSAL,
            ROLLOUT,
            NOTIFICATION,
            TIMER,
            CHANGES,
            READINESS,
            EXAMINATION,
            COSTS,
            WEEK,
            USED,
        )
    ),
    (PLAN, (("open", "eq", True),)),
)


class State(
    Clusters,
    Plans,
    FleetRecords,
    Acts,
    Deliveries,
    DeadLetters,
    Timers,
    Notifications,
    Sweeps,
    Readinesses,
    Examinations,
    Costs,
    ExportedRows,
    Proposals,
    Promotions,
    Rollouts,
):
    """The stored state of one fleet. It never contains a secret."""

    def __init__(self, tables: Mapping[str, Table], fleet: str, together: Together = in_threads) -> None:
        super().__init__(tables, fleet, together)
        self._looked: dict[str, datetime] = {}

    def fleet_and_sweep(self) -> tuple[FleetRecord, SweepRecord]:
        """Return the records of the fleet and of its sweeps, by one read of both; raise Unreadable."""
        first, last = self._fleet, sweep_key(self._fleet)
        found = self._entities(FLEET, ("RowKey", "ge", first), ("RowKey", "le", last))
        entities = {entity["RowKey"]: entity for entity in found}
        own = entities.get(first)
        fleet = FleetRecord() if own is None else self._reader.value(FLEET, own)
        return fleet, self._sweep_in(entities.get(last))

    def unreadable(self) -> Sequence[UnreadableRecord]:
        """Return the records that cannot be read now.

        Of events, and of plans that have ended, those that this process has met. A second call reads what has
        changed since.
        """
        for kind, conditions in _READ_WHERE_CHANGED:
            since = self._looked.get(kind.name, LONG_AGO)
            for entity in self._entities(kind, ("Timestamp", "ge", since - _SKEW), *conditions):
                self._reader.look(kind, entity)
                since = max(since, entity.written)
            self._looked[kind.name] = since
        for read in (self.fleet, self.sweep, self.notifier_record, self.fingerprints):
            with suppress(Unreadable):
                read()
        return self._reader.still_unreadable()
