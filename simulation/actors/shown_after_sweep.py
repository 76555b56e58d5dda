"""What the API shows of a cluster once a sweep has run to its end, compared with git and Azure.

Everything is quiet: no job runs, and nobody changes anything. The fields are those in which people change
clusters by hand; what else is shown must be a value that Azure has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from localcloud.azure.world.arm_keys import key_of
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.parts import ClusterPage
from shared.app.api.views.clusters import cluster_detail
from shared.app.api.views.drift import drift_of_cluster, drift_view
from shared.azure.changes.writes import is_stopped
from shared.cluster.failures.errors import ClusterContested
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from simulation.desired_state import EXEMPT, DesiredCluster
from simulation.history import FleetHistory
from simulation.oracle import Oracle, is_going, serves
from simulation.rule import untrue

EVERYTHING = ClusterPage(limit=1000)
_Values = tuple[str, str]
"""Those of git and of Azure, as JSON; "" for none."""


class ShownAfterSweep:
    """Compares the conditions and the drift of clusters; ``histories`` are those of the apps."""

    def __init__(self, oracle: Oracle, histories: Mapping[MemoryCloud, FleetHistory]) -> None:
        self._oracle, self._histories = oracle, histories

    def compare(self, cloud: MemoryCloud, since: datetime) -> None:
        """Compare what is shown of every idle cluster of a fleet; ``since`` is the sweep's time.

        Where a job has started since, the next sweep may be the one that says whether the cluster is in sync.
        """
        records = {record.name: record for record in cloud.state.clusters()}
        listed = {cluster["name"]: cluster for cluster in drift_view(cloud.ports, EVERYTHING)["clusters"]}
        for name, record in records.items():
            drift = drift_of_cluster(name, cloud.ports)
            own = drift["clusters"] if drift is not None else []
            if own != [drifted for drifted in (listed.get(name),) if drifted is not None]:
                raise untrue(cloud, f"the drift of {name} is {own}, and that of the fleet has something else")
            if record.idle and record.finding != ClusterContested.__name__:  # it is not ours
                fields = {
                    field["path"]: (field["git"], field["live"])
                    for drifted in own
                    for field in drifted["fields"]
                }
                self._compare(cloud, record, fields, since)

    def _compare(
        self, cloud: MemoryCloud, record: ClusterRecord, shown: Mapping[str, _Values], since: datetime
    ) -> None:
        name, live = record.name, self._oracle.live(key_of(record.desired.id))
        runs = live is not None and not is_going(live) and not is_stopped(live)
        status = conditions_of(cloud, name)
        if not runs:
            if status.get("Ready") != "False" or status.get("InSync") != "False":
                raise untrue(cloud, f"{name} is missing or stopped, and its conditions are {status}")
            return
        if live is None or record.phase is not Phase.READY or is_operated(live):
            return
        if status.get("Ready") != "True":
            raise untrue(cloud, f"{name} is Ready, and its conditions are {status}")
        if status.get("InSync") == "Unknown" and record.job.started >= since:
            return
        if status.get("InSync") != str(not shown):
            raise untrue(cloud, f"{name}: InSync is {status['InSync']}, and what differs is {[*shown]}")
        asked = self._histories[cloud].desired(record.commit).clusters.get(name)
        if asked is not None:
            self._fields(cloud, asked, live, shown)

    def _fields(
        self, cloud: MemoryCloud, asked: DesiredCluster, live: Json, shown: Mapping[str, _Values]
    ) -> None:
        """Compare the fields that are shown with those that differ."""
        truth = values_of(asked, live)
        for path, (git, has) in truth.items():
            ignored = asked.name in EXEMPT and path == "tags.cost"
            differs = git != has and not ignored
            if differs and shown.get(path) != (git, has):
                what = f"{path} is {git} in git and {has} in Azure"
                raise untrue(cloud, f"{asked.name}: {what}, and {shown.get(path)} is shown")
            if not differs and path in shown:
                raise untrue(cloud, f"{asked.name}: {path} is shown as {shown[path]}, and is not drift")
        for pool in asked.pools:
            git, has = shown.get(f"nodePools[{pool.name}]", ("", "none is shown"))
            if f"nodePools[{pool.name}].count" in truth:
                continue
            if has or json.loads(git)["vmSize"] != pool.size:
                raise untrue(cloud, f"{asked.name}: the pool {pool.name} is missing, and {git} {has}")
        for path, values in shown.items():
            if path.startswith("tags.") and path not in truth:
                has = _text(live["tags"].get(path.removeprefix("tags.")))
                if values != ("", has):
                    raise untrue(cloud, f"{asked.name}: {path} is {has} in Azure, and {values} is shown")
            elif values[0] == values[1]:
                raise untrue(cloud, f"{asked.name}: {path} is shown as {values}")


def conditions_of(cloud: MemoryCloud, name: str) -> Mapping[str, str]:
    """Return the status of each condition of a cluster, as the API shows it."""
    detail = cluster_detail(name, cloud.ports)
    if detail is None or "conditions" not in detail:
        raise untrue(cloud, f"{name} has a record, and the API shows no conditions of it")
    return {condition["type"]: condition["status"] for condition in detail["conditions"]}


def is_operated(live: Json) -> bool:
    """Return whether an operation runs on a cluster or one of its node pools, or has failed."""
    parts = (live["properties"], *live["properties"]["agentPoolProfiles"])
    return any(part["provisioningState"] != "Succeeded" for part in parts)


def values_of(asked: DesiredCluster, live: Json) -> Mapping[str, _Values]:
    """Return, for the tag and the counts that git has, both values; a missing pool has no count."""
    values: dict[str, _Values] = {}
    if asked.tag:
        values["tags.cost"] = _text(asked.tag), _text(live["tags"].get("cost"))
    for pool in asked.pools:
        serving = [
            document for document in live["properties"]["agentPoolProfiles"] if serves(document) == pool.name
        ]
        if serving:
            values[f"nodePools[{pool.name}].count"] = _text(pool.count), _text(serving[0]["count"])
    return values


def _text(value: object) -> str:
    return "" if value is None else json.dumps(value)
