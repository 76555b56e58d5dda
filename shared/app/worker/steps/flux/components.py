"""Access, and the components of Flux: as the repository pins them, applied, and rolled out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from shared.app.access.context import StepContext
from shared.app.worker.steps.flux.applied import (
    ApplyResult,
    LiveObjects,
    add_to_inventory,
    apply_differing,
    apply_over,
    remove,
    save_inventory,
)
from shared.app.worker.steps.flux.pinned import instance_wait, pinned_components
from shared.cluster.failures.advice import after_refusal
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest
from shared.cluster.job import WaitKind, WaitSubject
from shared.cluster.outcomes import Done, Fail, Outcome, Wait
from shared.frozen import replace
from shared.json_tree import Json, digest_of
from shared.kubernetes import flux_instance, flux_objects
from shared.kubernetes.field_ownership import MANAGER, appliers, is_applied_by_us
from shared.kubernetes.flux_objects import (
    INVENTORY,
    in_order_of_removal,
    is_applied,
    listed_in,
    ref_of,
    removable,
)
from shared.kubernetes.health import DeploymentRollout, unfinished
from shared.ports import KubernetesApi
from shared.resource_ids import ObjectRef
from shared.sentences import many

# The CustomResourceDefinitions of Flux: applied, established, and their objects in a version that stays.

SPREAD_SECONDS = 10.0
"""How long the API servers of one cluster may take to store objects in the version of a new definition."""


def apply_definitions(
    manifests: Sequence[Json], found: LiveObjects, api: KubernetesApi
) -> ApplyResult | Wait:
    """Apply the definitions; migrate their objects where versions go, and return the wait for that."""
    applied = ApplyResult()
    for manifest in manifests:
        live = found.get(ref_of(manifest))
        if live is not None and flux_instance.dropped_versions(manifest, live):
            wait = _migrate(manifest, live, api)
            if wait:
                return wait
            live = api.get(ref_of(manifest))
        applied += apply_over(live, manifest, api)
    return applied


def established(manifests: Sequence[Json], found: LiveObjects, api: KubernetesApi) -> Wait | None:
    """Return the wait for definitions that the API server does not serve, None when it serves all."""
    pending = [ref for ref in map(ref_of, manifests) if not _established(found.get(ref))]
    now = LiveObjects(pending, api)
    for ref in pending:
        if not _established(now.get(ref)):
            return Wait(2, f"the API server does not serve {ref.name} yet")
    return None


def _migrate(manifest: Json, live: Json, api: KubernetesApi) -> Wait | None:
    """Store every object of a definition in the new storage version, so that the old versions can go.

    What somebody else writes or deletes meanwhile is stored in the new version, or no longer exists.
    """
    version, name = flux_instance.storage_version(manifest), manifest["metadata"]["name"]
    bridge = flux_instance.bridge(manifest, live)
    if not is_applied(bridge, live):
        api.apply(bridge)
        return Wait(SPREAD_SECONDS, f"the API server is about to store {name} in the version {version}")
    for stored in api.list(*flux_instance.kind_in(manifest, version)):
        with suppress(Conflict, Dependency):
            api.replace(stored)
    api.replace(flux_instance.migrated(live, version), status=True)
    return None


def _established(live: Json | None) -> bool:
    conditions = ((live or {}).get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


DEFINITION = "CustomResourceDefinition"
INERT = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "NetworkPolicy", "ResourceQuota", "Service")
"""Kinds of Flux's components that run nothing and need no definition."""
SHOWN = 3


def ensure_components(context: StepContext) -> Outcome:
    """Apply the components where they differ, wait until their Deployments run, then remove former ones.

    While they roll out, only the Deployments are read.
    """
    try:
        manifests = pinned_components(context)
    except flux_objects.ComponentsError as error:
        return Fail(InvalidManifest(f"{context.desired.spec.flux.components}: {error}"))
    api = context.kubernetes()
    live = live_of(manifests, api)
    note, deployments = "", _deployments(manifests, live) if _rolling_out(context) else None
    if deployments is None:
        applied = install(manifests, live, api)
        if isinstance(applied, Wait):
            return applied
        note, deployments = applied, _deployments(manifests, LiveObjects([], api)) or []
    rollouts = unfinished(deployments)
    if rollouts:
        return rollout_wait(context, rollouts)
    waiting = instance_wait(context, api)
    if waiting is not None:
        return _rolled_out_later(context, waiting)
    return Done("; ".join(filter(None, (note, remove_former(manifests, api)))))


def _rolled_out_later(context: StepContext, waiting: Outcome) -> Outcome:
    """Return the wait for the operator so that the next run of the step applies nothing again."""
    if not isinstance(waiting, Wait):
        return waiting
    before = context.job.step.waiting_on
    since = before.since if before is not None else context.ports.clock()
    return replace(waiting, waiting_on=WaitSubject(WaitKind.ROLLOUT, _key(context), since))


def _rolling_out(context: StepContext) -> bool:
    waiting = context.job.step.waiting_on
    return waiting is not None and (waiting.kind, waiting.key) == (WaitKind.ROLLOUT, _key(context))


def _key(context: StepContext) -> str:
    """Return what rolls out: the file, and the FluxInstance where the operator installs Flux."""
    instance = context.desired.spec.flux.instance
    more = f":{digest_of(instance.model_dump(mode='json'))}" if instance is not None else ""
    return f"{context.desired.components}{more}"


def live_of(manifests: Sequence[Json], api: KubernetesApi) -> LiveObjects:
    """Return what the cluster has of the components."""
    return LiveObjects([flux_objects.ref_of(manifest) for manifest in manifests], api)


def install(manifests: Sequence[Json], live: LiveObjects, api: KubernetesApi) -> Wait | str:
    """Apply the components in the order in which they need each other; return what was done, or the wait."""
    applied = apply_differing(
        [manifest for manifest in manifests if manifest["kind"] == "Namespace"], live, api
    )
    add_to_inventory(INVENTORY, removable(manifests), api)
    definitions = [manifest for manifest in manifests if manifest["kind"] == DEFINITION]
    defined = apply_definitions(definitions, live, api)
    if isinstance(defined, Wait):
        return defined
    rest = [manifest for manifest in manifests if not flux_objects.comes_first(manifest)]
    inert = [manifest for manifest in rest if manifest["kind"] in INERT]
    applied += defined + apply_differing(inert, live, api)
    wait = established(definitions, live, api)
    if wait:
        return wait
    applied += apply_differing([document for document in rest if document["kind"] not in INERT], live, api)
    return applied.note("object", " of Flux")


def _deployments(manifests: Sequence[Json], live: LiveObjects) -> list[Json] | None:
    """Return the Deployments of the components as the cluster has them, None when it lacks one."""
    refs = [flux_objects.ref_of(manifest) for manifest in manifests if manifest["kind"] == "Deployment"]
    wanted = {replace(ref, namespace=ref.namespace or "default") for ref in refs}
    places = {ref.namespace: ref for ref in sorted(wanted, key=str)}
    ours = [
        document
        for ref in places.values()
        for document in live.kin(ref)
        if flux_objects.ref_of(document) in wanted
    ]
    return ours if len(ours) == len(wanted) else None


def rollout_wait(context: StepContext, rollouts: Sequence[DeploymentRollout]) -> Wait:
    """Return the wait for Deployments of Flux that do not run their newest version."""
    waiting = context.job.step.waiting_on
    since = waiting.since if waiting is not None else context.ports.clock()
    failed = any(rollout.failed for rollout in rollouts)
    refused = next(filter(None, (after_refusal(rollout.refused) for rollout in rollouts)), "")
    look = f"`kubectl -n {flux_objects.NAMESPACE} describe pods` shows why the pods do not start"
    return Wait(
        context.ports.config.timing.poll_seconds,
        f"Flux rolls out: {'; '.join(map(str, rollouts[:SHOWN]))}",
        waiting_on=WaitSubject(WaitKind.ROLLOUT, _key(context), since),
        action_required=refused
        or (f"{look}; correct {context.desired.spec.flux.components} and push." if failed else ""),
    )


# Access to the Kubernetes API of a cluster.


def ensure_access(context: StepContext) -> Outcome:
    """Connect to the Kubernetes API; its credentials are fetched for this purpose and live in memory only."""
    context.kubernetes().check()
    return Done()


# What an earlier components file had and the present one lacks is removed.


def remove_former(manifests: Sequence[Json], api: KubernetesApi) -> str:
    """Remove what the inventory has and the components lack; return what was done, "" for nothing.

    Only what Roadstead alone applies is removed, no namespace, and no definition of which objects exist.
    """
    wanted, live = removable(manifests), api.get(INVENTORY)
    kept = set[ObjectRef]()

    def has_objects(found: Json) -> str:
        alone = found["kind"] == DEFINITION and appliers(found) == {MANAGER}
        objects = _objects_of(found, api) if alone else 0
        if not objects:
            return ""
        kept.add(ref_of(found))
        exist = f"{many(objects, 'object')} of it exist{'s' * (objects == 1)}"
        return f"{exist}: the next job removes it without them"

    former = map(api.get, in_order_of_removal(listed_in(live or {}) - wanted))
    removal = remove((found for found in former if found and is_applied_by_us(found)), api, has_objects)
    save_inventory(INVENTORY, wanted | kept, live, api)
    return removal.note


def _objects_of(definition: Json, api: KubernetesApi) -> int:
    spec = definition["spec"]
    version = next((version["name"] for version in spec["versions"] if version.get("served")), None)
    return 0 if version is None else len(api.list(f"{spec['group']}/{version}", spec["names"]["kind"]))
