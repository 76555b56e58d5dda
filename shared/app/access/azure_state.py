"""What the steps read in Azure: who owns a resource, which operation runs, and what failed."""

from __future__ import annotations

from collections.abc import Sequence

from shared.app.access.context import StepContext
from shared.azure.changes.writes import PlannedWrite, is_final, running_version
from shared.azure.cluster_body import control_plane
from shared.azure.node_pools.replacement import serving
from shared.azure.ownership import Owner
from shared.azure.running_versions import AppliedRevision, PoolVersions, RunningVersions
from shared.cluster.failures.azure_failures import operation_failure
from shared.cluster.failures.errors import InvalidManifest, NotYetVisible
from shared.cluster.outcomes import Fail, Outcome, Restart, Retry, Wait
from shared.json_tree import Json
from shared.kubernetes_versions import numbers

FAILED_STATES = ("Failed", "Canceled")
MISSING = "the cluster no longer exists in Azure, and no commit asks for that"
_DOING = {
    "Creating": "creating",
    "Deleting": "deleting",
    "Upgrading": "upgrading",
    "Stopping": "stopping",
    "Starting": "starting",
}


def vanished(context: StepContext) -> Restart:
    """Return the restart of a job whose cluster existed a step before."""
    return Restart(f"the cluster {context.record.name} no longer exists in Azure")


def recheck(context: StepContext, what: str) -> Retry:
    """Return the retry that reads a resource a second time; like a wait, it uses up no attempt."""
    return read_once_more(context, f"Azure does not show {what}; reading once more")


def read_once_more(context: StepContext, why: str) -> Retry:
    """Return the retry that comes when Azure shows what it did before this read."""
    return Retry(NotYetVisible(why, retry_after=context.ports.config.timing.lag_seconds))


def state_of(resource: Json) -> str:
    """Return ARM's provisioningState, "" where there is none."""
    return str((resource.get("properties") or {}).get("provisioningState") or "")


def resource_uid(live: Json) -> str:
    """Return AKS's id of this life of a cluster: one that is created again under its name has another.

    "" where Azure shows none. Source: ManagedCluster.properties.resourceUID of the AKS REST API.
    """
    return str((live.get("properties") or {}).get("resourceUID") or "")


def etag_of(live: Json | None) -> str | None:
    """Return the version that was read, None where there is nothing yet."""
    return str(live["eTag"]) if live is not None and live.get("eTag") else None


def without_version(context: StepContext, live: Json, what: str) -> Outcome | None:
    """Return the second read of a resource without an ETag, None when it may be written.

    Clouds with an older API version show none. A write without a condition then relies on a read of some
    seconds ago: it can overwrite what somebody changed since, but not create or take over a cluster.
    """
    if etag_of(live) or context.job.step.rechecking:
        return None
    problem = f"Azure shows no version (eTag) of {what}"
    again = "reading once more before it is written without a condition"
    return read_once_more(context, f"{problem}; {again}")


def not_taken_over(live: Json, what: str) -> Wait | None:
    """Return the wait of a resource that cannot be adopted safely, because nothing protects the write."""
    if etag_of(live):
        return None
    danger = "so another fleet could take it over at the same time"
    return Wait.for_person(
        f"{what} is observed, not written to: Azure shows no version (eTag) of it, {danger}",
        "Set AKS_API_VERSION to a version whose clusters have an eTag.",
    )


def profiles_of(live: Json) -> list[Json]:
    """Return the node pools of a cluster."""
    return list(live["properties"].get("agentPoolProfiles") or ())


def foreign_delete(context: StepContext) -> Wait:
    """Return the wait for the delete of a cluster that is not ours."""
    name = context.record.name
    return Wait(context.poll_seconds, f"Azure is deleting a cluster {name} that is not this fleet's")


def busy(properties: Json) -> str:
    """Describe the operation that runs in Azure, "" for none; every state that is not final is one."""
    state = str(properties.get("provisioningState") or "")
    if not is_final(state):
        return f"Azure is {_DOING.get(state, 'updating')} the cluster"
    for pool in properties.get("agentPoolProfiles") or ():
        state = str(pool.get("provisioningState") or "")
        if not is_final(state):
            return f"Azure is {_DOING.get(state, 'updating')} the node pool {pool['name']}"
    return ""


def failure(context: StepContext, properties: Json, what: str) -> Outcome:
    """Return the failure of the last write, as Azure stores it in ``properties.status``."""
    state, inner = str(properties.get("provisioningState")), provisioning_error(properties)
    default = "the operation was cancelled" if state == "Canceled" else "Azure could not provision it"
    message = f"{what}: {inner.get('message') or default}"
    last = context.job.step.last_write
    told = {**inner, "code": inner.get("code") or state}
    error = operation_failure(state, told, message, request_id=last.request_id if last else "")
    return Retry(error) if error.rewrites else Fail(error)


def provisioning_error(properties: Json) -> Json:
    """Return why the last write to a cluster or a node pool failed, with ``code`` and ``message``, or {}."""
    detail = (properties.get("status") or {}).get("provisioningError") or {}
    inner: Json = detail.get("error") or detail
    return inner


def fields(write: PlannedWrite) -> str:
    """Return the fields of a write as text, such as ": tags.cost, sku.tier"."""
    shown = ", ".join(write.paths[:5]) + (", ..." if len(write.paths) > 5 else "")
    return f": {shown}" if shown else ""


def reverted(what: str, write: PlannedWrite) -> Fail:
    """Return the failure of a write without effect, which a policy or Azure itself has reverted."""
    return reverted_fields(what, write.paths[:5] if len(write.paths) <= 5 else [*write.paths[:5], "..."])


def reverted_fields(what: str, paths: Sequence[str]) -> Fail:
    """Return that failure for the fields that still differ."""
    differs = f"it still differs from the manifest{': ' if paths else ''}{', '.join(paths)}"
    reason = "something (a policy?) changes it back, so it is not written again"
    return Fail(InvalidManifest(f"Azure accepted the last write to {what}, but {differs}; {reason}"))


def running_of(
    live: Json, owner: Owner, flux: AppliedRevision | None, before: RunningVersions | None = None
) -> RunningVersions:
    """Return what runs, as Azure shows the cluster; what Flux has applied is not shown there."""
    served = azure_names(live, owner, before).items()
    renamed = {name: pool for pool, names in served for name in names if name != pool}
    nodes = sum(map(nodes_of, profiles_of(live)))
    pools = {name: _oldest(profiles) for name, profiles in serving(profiles_of(live), owner).items()}
    return RunningVersions(control_plane(live), nodes, flux, renamed, pools)


def _oldest(profiles: Sequence[Json]) -> PoolVersions:
    """Return the oldest versions of the pools that serve a pool of the manifest; "" where one shows none."""
    versions = [running_version(profile, "orchestratorVersion") for profile in profiles]
    images = [str(profile.get("nodeImageVersion") or "") for profile in profiles]
    return PoolVersions(min(versions, key=numbers, default=""), min(images, default=""))


def azure_names(live: Json, owner: Owner, before: RunningVersions | None) -> dict[str, list[str]]:
    """Return the names in Azure of the pools that serve each pool of the manifest, or would serve it.

    Of a replaced pool that somebody deleted, it is the name that ran ``before``.
    """
    pools = serving(profiles_of(live), owner)
    names = {name: [str(profile["name"]) for profile in mine] for name, mine in pools.items()}
    for name, pool in (before.renamed if before else {}).items():
        if pool not in pools:
            names.setdefault(pool, []).append(name)
    return names


def nodes_of(pool: Json) -> int:
    """Return how many nodes a pool has; of single machines Azure counts those of each size."""
    machines = pool.get("virtualMachineNodesStatus") or ()
    return int(pool.get("count") or 0) or sum(int(machine.get("count") or 0) for machine in machines)
