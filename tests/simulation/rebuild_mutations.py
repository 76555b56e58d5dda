"""Mutations of rebuilds: a cluster is deleted that nobody asked to rebuild."""

from __future__ import annotations

import pytest

from shared.language.desired import Desired
from shared.plan import make_plan
from shared.plan.plan import RecordedState
from simulation.actors.kinds import REBUILDS
from tests.simulation.mutations import mutation


def every_other_time_asks_for_a_rebuild(patch: pytest.MonkeyPatch) -> None:
    def asks(cluster: Desired, record: RecordedState) -> bool:
        return bool(cluster.rebuild) and cluster.rebuild != record.rebuilt_for

    patch.setattr(make_plan, "asks_for_rebuild", asks)


REBUILD_MUTATIONS = (mutation(every_other_time_asks_for_a_rebuild, REBUILDS, "unrequested delete"),)
