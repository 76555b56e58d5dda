"""The view of each cluster in the list of its fleet, as the API has it."""

from __future__ import annotations

from datetime import datetime

from shared.app.api import schema
from shared.app.api.views.clusters import cluster_view
from shared.cluster.record import ClusterRecord
from shared.plan.plan import Item
from shared.ports.state import SweepRecord


class ViewCache:
    """Reads a view again when anything but the time of the day has changed since it was read.

    The rules of a list are about names, phases and plans, in which there is no time; whatever prints a list
    reads all of it.
    """

    def __init__(self) -> None:
        self._read: dict[
            str, tuple[ClusterRecord, Item | None, SweepRecord, datetime, schema.ClusterSummaryView]
        ]
        self._read = {}

    def __call__(
        self, record: ClusterRecord, item: Item | None, sweep: SweepRecord, now: datetime
    ) -> schema.ClusterSummaryView:
        """Return the view of a cluster; records, plans and sweeps are never changed in place."""
        last = self._read.get(record.name)
        if last is not None:
            is_same = last[0] is record and last[1] == item and last[2] is sweep
            if is_same and last[3].date() == now.date():
                return last[4]
        view = cluster_view(record, item, sweep, now)
        self._read[record.name] = record, item, sweep, now, view
        return view
