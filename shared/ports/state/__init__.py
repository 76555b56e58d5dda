"""What Roadstead stores: one small protocol for each kind of record, and State, which combines them."""

from __future__ import annotations

from typing import Protocol

from shared.ports.state.acts import Acts
from shared.ports.state.all_records import AllRecords
from shared.ports.state.buckets import Buckets
from shared.ports.state.clusters import Clusters, GroupMember
from shared.ports.state.dead_letters import DeadLetter, DeadLetters
from shared.ports.state.deliveries import Deliveries
from shared.ports.state.events import Events
from shared.ports.state.fleet import (
    AppIdentity,
    BranchRead,
    Expectations,
    FleetRecord,
    FleetRules,
    Handover,
    HeadReads,
    Override,
    Source,
)
from shared.ports.state.manifests import Manifests
from shared.ports.state.notices import Notices
from shared.ports.state.plans import PlanRecord, Plans
from shared.ports.state.promotions import Lifted, Promotion, Promotions
from shared.ports.state.proposals import LeftOut, Proposal, Proposals
from shared.ports.state.rollouts import Rollouts
from shared.ports.state.sweeps import Listing, Orphan, PathsCheck, SweepRecord, Sweeps
from shared.ports.state.timers import TimerRun, Timers

__all__ = [
    "Acts",
    "AllRecords",
    "AppIdentity",
    "BranchRead",
    "Buckets",
    "Clusters",
    "DeadLetter",
    "DeadLetters",
    "Deliveries",
    "Events",
    "Expectations",
    "FleetRecord",
    "FleetRules",
    "GroupMember",
    "Handover",
    "HeadReads",
    "LeftOut",
    "Lifted",
    "Listing",
    "Manifests",
    "Notices",
    "Orphan",
    "Override",
    "PathsCheck",
    "PlanRecord",
    "Plans",
    "Promotion",
    "Promotions",
    "Proposal",
    "Proposals",
    "Rollouts",
    "Source",
    "State",
    "SweepRecord",
    "Sweeps",
    "TimerRun",
    "Timers",
]


class _OfFleet(Plans, Manifests, Acts, Sweeps, Proposals, Promotions, Rollouts, Timers, Protocol):
    """What is stored of the fleet as a whole."""


class State(Clusters, Events, Buckets, Deliveries, DeadLetters, Notices, AllRecords, _OfFleet, Protocol):
    """The stored state of one fleet. It never contains a secret."""
