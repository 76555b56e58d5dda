"""What the steps see in Azure, in words: whose a resource is, what is going on there, and what failed."""

from __future__ import annotations

from shared.fleet.aks.ownership import Owner
from shared.fleet.aks.writes import Write, is_final, is_stopped
from shared.fleet.json_tree import Json
from shared.jobs.errors import Interrupted, InvalidManifest, NotOwned, NotYetVisible, from_operation
from shared.jobs.outcomes import Fail, Outcome, Retry, Wait
from shared.jobs.recipes import Step
from shared.jobs.record import ClusterRecord
from shared.ports import Ports

BAD = ("Failed", "Canceled")
LAG_SECONDS = 20.0
"""How late Azure Resource Manager may show what is new."""
_DOING = {"Creating": "creating", "Deleting": "deleting", "Upgrading": "upgrading"}


def look_again(what: str) -> Retry:
    """Return the second look at what is not shown; no tries end with it, as with a wait."""
    error = NotYetVisible(f"Azure does not show {what}; looking once more", retry_after=LAG_SECONDS)
    return Retry(error)


def owner_of(record: ClusterRecord, ports: Ports) -> Owner:
    """Return the marks of what belongs to this cluster."""
    config = ports.config
    return Owner(config.fleet, config.repository, record.name, config.previous_repository)


def others_in_group(record: ClusterRecord, ports: Ports) -> list[str]:
    """Return the other clusters that live, or are to live, in the same resource group.

    One that is deleted and has come to the group itself needs it no more: of two that come there at the
    same moment, each would leave it to the other.
    """
    mine, past = group_of(record), (Step.DELETE_RESOURCE_GROUP, Step.FORGET)
    return [
        other.name
        for other in ports.state.clusters()
        if other.name != record.name
        and group_of(other) == mine
        and not (other.deleting and other.job.step in past)
    ]


def group_of(record: ClusterRecord) -> str:
    """Return the key of the resource group in which a cluster lives, or is to live."""
    place = record.desired.id
    return f"{place.subscription}|{place.resource_group}".lower()


def leaves(record: ClusterRecord, ports: Ports) -> str:
    """Return the cluster of ours that may delete the resource group just now, "" when none does.

    Whoever deletes a group notes it before it looks for others, and whoever is new in one has its row before
    it looks for notes. So one of both sees the other, however they are mixed.
    """
    for leaver in ports.state.group_delete_intents(group_of(record)):
        other = ports.state.cluster(leaver.partition(":")[0])
        if other is not None and group_delete_intent(other) == leaver and _at_its_group(other):
            return other.name
    return ""


def _at_its_group(record: ClusterRecord) -> bool:
    return record.deleting and record.job.active and record.job.step is Step.DELETE_RESOURCE_GROUP


def group_delete_intent(record: ClusterRecord) -> str:
    """Return what is noted of a cluster that deletes its resource group: this life of its name."""
    return f"{record.name}:{record.uid}"


def poll(ports: Ports) -> float:
    """Return the seconds until the next look at Azure, spread so that clusters do not march in step."""
    return ports.config.poll_seconds * (0.9 + 0.2 * ports.random())


def state_of(resource: Json) -> str:
    """Return ARM's provisioningState, "" where there is none."""
    return str((resource.get("properties") or {}).get("provisioningState") or "")


def etag_of(existing: Json | None) -> str | None:
    """Return the version that was looked at, None where there is nothing yet."""
    return str(existing["eTag"]) if existing is not None and existing.get("eTag") else None


def profiles_of(existing: Json) -> list[Json]:
    """Return the node pools of a cluster."""
    return list(existing["properties"].get("agentPoolProfiles") or ())


def not_ours(existing: Json, record: ClusterRecord, ports: Ports) -> Outcome | None:
    """Refuse a cluster that does not carry our tags, unless it is on its way out."""
    owner = owner_of(record, ports)
    if owner.owns(existing):
        return None
    if state_of(existing) == "Deleting":
        return others_go(record, ports)
    told = (
        f"the cluster {record.name} is not touched: it is not this fleet's: {owner.describe_tags(existing)}"
    )
    way_out = "" if owner.is_others(existing) else "; the annotation roadstead.dev/adopt takes a cluster over"
    return Fail(NotOwned(f"{told}{way_out}"))


def others_go(record: ClusterRecord, ports: Ports) -> Wait:
    """Return the wait for the end of a cluster that is not ours."""
    return Wait(poll(ports), f"Azure is deleting a cluster {record.name} that is not this fleet's")


def not_ready(existing: Json, record: ClusterRecord, ports: Ports) -> Outcome | None:
    """Return what keeps anybody from writing to the cluster now, None when nothing does."""
    properties = existing["properties"]
    if is_stopped(existing):
        return stopped(ports)
    doing = busy(properties)
    if doing:
        return Wait(poll(ports), doing)
    if state_of(existing) in BAD and record.job.wrote:
        return _why_failed(properties, record)
    return None


def stopped(ports: Ports) -> Wait:
    """Return the wait of a cluster that somebody has stopped."""
    return Wait(
        poll(ports) * 4,
        "the cluster is stopped; start it, Azure allows nothing else",
        person="Start the cluster, as with `az aks start`; or remove its folder, which deletes it.",
        open_ended=True,
    )


def _why_failed(properties: Json, record: ClusterRecord) -> Outcome:
    """Return why the cluster failed; AKS may call it failed over a pool, and say why only there."""
    for pool in properties.get("agentPoolProfiles") or ():
        if pool.get("provisioningState") in BAD and pool.get("status") and not properties.get("status"):
            return failure(pool, f"the node pool {pool['name']}", record)
    return failure(properties, f"the cluster {record.name}", record)


def busy(properties: Json) -> str:
    """Say what Azure is doing, "" for nothing; every state but the settled ones is an operation under way."""
    state = str(properties.get("provisioningState") or "")
    if not is_final(state):
        return f"Azure is {_DOING.get(state, 'updating')} the cluster"
    for pool in properties.get("agentPoolProfiles") or ():
        state = str(pool.get("provisioningState") or "")
        if not is_final(state):
            return f"Azure is {_DOING.get(state, 'updating')} the node pool {pool['name']}"
    return ""


def failure(properties: Json, what: str, record: ClusterRecord) -> Outcome:
    """Return the failure of the last write, as Azure keeps it in ``properties.status``."""
    state = str(properties.get("provisioningState"))
    detail = (properties.get("status") or {}).get("provisioningError") or {}
    inner = detail.get("error") or detail
    silent = "the operation was cancelled" if state == "Canceled" else "Azure could not provision it"
    told = f"{what}: {inner.get('message') or silent}"
    error = from_operation(state, str(inner.get("code") or state), told, request_id=record.job.request_id)
    return Retry(error) if isinstance(error, Interrupted) else Fail(error)


def fields(write: Write) -> str:
    """Name what is written, as ": tags.cost, sku.tier"."""
    shown = ", ".join(write.paths[:5]) + (", ..." if len(write.paths) > 5 else "")
    return f": {shown}" if shown else ""


def not_kept(what: str, write: Write) -> Fail:
    """Stop writing what Azure takes and does not keep: a policy, or a value that it changes."""
    told = f"Azure accepted the last write to {what}, but it still differs from the manifest{fields(write)}"
    return Fail(InvalidManifest(f"{told}; something (a policy?) changes it back, so it is not written again"))
