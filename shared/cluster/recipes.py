"""The recipes: ordered steps, each an "ensure". Their functions are in ``shared/app/worker/steps``."""

from __future__ import annotations

from enum import StrEnum


class Recipe(StrEnum):
    """What a job brings about. One recipe serves creation and change, because every step is an ensure.

    A cluster that exists outside Roadstead is attached and released: nothing of it is in Azure.
    """

    PROVISION = "provision"
    DELETE = "delete"
    ATTACH = "attach"
    RELEASE = "release"
    SLEEP = "sleep"
    """Stops a cluster, waits as long as it is to sleep, and starts it. No other job need be at work then."""

    @property
    def removes(self) -> bool:
        """Whether the job ends with the record: its cluster is deleted, or released."""
        return self is _DELETE or self is _RELEASE


_DELETE, _RELEASE = Recipe.DELETE, Recipe.RELEASE
"""Looked up once: a plan asks for every cluster several times."""


class Step(StrEnum):
    """A step, as stored and shown."""

    RESOURCE_GROUP = "resource-group"
    CLUSTER = "cluster"
    NODE_POOLS = "node-pools"
    MAINTENANCE = "maintenance-windows"
    IDENTITY_ACCESS = "identity-access"
    POLICIES = "policies"
    ACCESS = "access"
    BOOTSTRAP_SECRETS = "bootstrap-secrets"
    FLUX_COMPONENTS = "flux-components"
    FLUX_SYNC = "flux-sync"
    SYSTEMS = "systems"
    VERIFY = "verify"
    TOMBSTONE = "tombstone"
    DELETE_CLUSTER = "delete-cluster"
    DELETE_IDENTITY_ACCESS = "delete-identity-access"
    DELETE_POLICIES = "delete-policies"
    DELETE_RESOURCE_GROUP = "delete-resource-group"
    RELEASE = "release"
    SLEEP = "sleep"
    WAKE = "wake"
    FINALIZE = "finalize"


STEPS: dict[Recipe, tuple[Step, ...]] = {
    Recipe.PROVISION: (
        Step.RESOURCE_GROUP,
        Step.CLUSTER,
        Step.NODE_POOLS,
        Step.MAINTENANCE,
        Step.IDENTITY_ACCESS,
        Step.POLICIES,
        Step.ACCESS,
        Step.BOOTSTRAP_SECRETS,
        Step.FLUX_COMPONENTS,
        Step.FLUX_SYNC,
        Step.SYSTEMS,
        Step.VERIFY,
    ),
    Recipe.DELETE: (
        Step.TOMBSTONE,
        Step.DELETE_CLUSTER,
        Step.DELETE_IDENTITY_ACCESS,
        Step.DELETE_POLICIES,
        Step.DELETE_RESOURCE_GROUP,
        Step.FINALIZE,
    ),
    Recipe.ATTACH: (
        Step.ACCESS,
        Step.BOOTSTRAP_SECRETS,
        Step.FLUX_COMPONENTS,
        Step.FLUX_SYNC,
        Step.SYSTEMS,
        Step.VERIFY,
    ),
    Recipe.RELEASE: (Step.TOMBSTONE, Step.RELEASE, Step.FINALIZE),
    Recipe.SLEEP: (Step.SLEEP, Step.WAKE, Step.VERIFY),
}

CONDITIONS: dict[Step, str] = {
    Step.RESOURCE_GROUP: "ResourceGroupReady",
    Step.CLUSTER: "ClusterReady",
    Step.NODE_POOLS: "NodePoolsReady",
    Step.MAINTENANCE: "MaintenanceWindowsSet",
    Step.IDENTITY_ACCESS: "IdentityAccessSet",
    Step.POLICIES: "PoliciesAssigned",
    Step.ACCESS: "AccessReady",
    Step.BOOTSTRAP_SECRETS: "SecretsApplied",
    Step.FLUX_COMPONENTS: "FluxInstalled",
    Step.FLUX_SYNC: "FluxSynced",
    Step.SYSTEMS: "SystemsApplied",
    Step.VERIFY: "Ready",
    Step.TOMBSTONE: "Tombstoned",
    Step.DELETE_CLUSTER: "ClusterDeleted",
    Step.DELETE_IDENTITY_ACCESS: "IdentityAccessDeleted",
    Step.DELETE_POLICIES: "PoliciesDeleted",
    Step.DELETE_RESOURCE_GROUP: "ResourceGroupDeleted",
    Step.RELEASE: "Released",
    Step.SLEEP: "SleepEnded",
    Step.WAKE: "Awake",
    Step.FINALIZE: "Finalized",
}

IN_THE_CLUSTER = frozenset(
    {
        Step.ACCESS,
        Step.BOOTSTRAP_SECRETS,
        Step.FLUX_COMPONENTS,
        Step.FLUX_SYNC,
        Step.SYSTEMS,
        Step.VERIFY,
    }
)
"""The steps that work through the Kubernetes API of the cluster."""

DEADLINES: dict[Step, float] = {
    Step.CLUSTER: 3600,
    Step.NODE_POOLS: 3600,
    Step.SLEEP: 3600,
    Step.WAKE: 1800,
    Step.DELETE_CLUSTER: 3600,
    Step.DELETE_RESOURCE_GROUP: 3600,
}
DEADLINE = 900.0
"""Seconds without progress after which a waiting step becomes Stalled: reported as a failure, yet continued.
AKS documents that a creation takes minutes, and 20 were observed; an hour means that something is wrong."""


def next_step(recipe: Recipe, step: Step) -> Step | None:
    """Return the step after this one, None after the last."""
    steps = STEPS[recipe]
    index = steps.index(step) + 1
    return steps[index] if index < len(steps) else None


def deadline(step: Step) -> float:
    """Return the seconds without progress after which a step becomes Stalled."""
    return DEADLINES.get(step, DEADLINE)
