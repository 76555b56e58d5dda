"""What the files are compared with, live: the clusters as Azure shows them now, which the app reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cli.fleet_api.client import Api
from shared.app.api import schema
from shared.azure.changes.writes import is_stopped
from shared.azure.differences import Difference, drift_of
from shared.azure.node_pools.body import keys_to_remove
from shared.azure.ownership import Owner
from shared.azure.running_versions import lowered_versions
from shared.json_tree import Json
from shared.language.desired import Desired

_PROVISIONING = "Provisioning"


@dataclass(frozen=True)
class LiveComparison:
    """A cluster: in which fields Azure differs from the files, or why that is not known.

    ``exists`` is whether Azure has it. A cluster without ``differences`` is as the files have it, unless
    ``problem`` says why it could not be read, or ``waits`` why there is nothing to compare yet.
    """

    name: str
    phase: str
    exists: bool
    differences: Sequence[Difference] = ()
    problem: str = ""
    waits: str = ""


def compare_live(
    clusters: Sequence[Desired], documents: Mapping[str, Mapping[str, Any]], api: Api
) -> Iterator[LiveComparison]:
    """Yield how each cluster is in Azure now; ``documents`` are the clusters as recorded."""
    desired = {cluster.name: cluster for cluster in clusters}
    names = list(desired)
    for first in range(0, len(names), schema.LIVE_CLUSTERS):
        part = ",".join(names[first : first + schema.LIVE_CLUSTERS])
        view = api.read(schema.Live, "live", clusters=part)
        for found in view["clusters"]:
            yield _compared(desired[found["name"]], documents[found["name"]], found, view)


def _compared(
    desired: Desired, document: Mapping[str, Any], found: schema.LiveCluster, view: schema.Live
) -> LiveComparison:
    name, live = found["name"], found["live"]
    if found["problem"]:
        return LiveComparison(name, found["phase"], exists=True, problem=found["problem"])
    if live is None:
        waits = "it is not created yet" if found["phase"] == _PROVISIONING else ""
        return LiveComparison(name, found["phase"], exists=False, waits=waits)
    owner = Owner(view["fleet"], view["repository"], name, view["previousRepository"])
    if not owner.owns(live):
        problem = f"its tags are not this fleet's: {owner.describe_tags(live)}"
        return LiveComparison(name, found["phase"], exists=True, problem=problem)
    if waits := _waits(live):
        return LiveComparison(name, found["phase"], exists=True, waits=waits)
    wanted = desired.document()
    compared = replace(
        desired,
        removed_keys=keys_to_remove(document, wanted, {}),
        lowered=lowered_versions(document["spec"], wanted["spec"], found["lowered"]),
    )
    drift = drift_of(compared, owner, live, found["unmanaged"])
    return LiveComparison(name, found["phase"], exists=True, differences=drift)


def _waits(live: Json) -> str:
    """Return why a cluster is not to be compared yet, "" for one that is."""
    if live["properties"].get("provisioningState") == "Creating":
        return "Azure is creating it"
    return "it is stopped in Azure" if is_stopped(live) else ""
