"""The recipes: ordered steps, each an "ensure". Their functions are in ``shared/app/worker/steps``."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


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


_USUAL, _HOUR = 900.0, 3600.0
"""AKS documents that a creation takes minutes, and 20 were observed; after an hour something is wrong."""


class Step(StrEnum):
    """A step, as stored and shown.

    ``condition`` is the one that it sets. After ``deadline`` seconds without progress it is Stalled: reported
    as a failure, yet continued. ``inside`` is whether it works through the Kubernetes API of the cluster.
    """

    condition: str
    deadline: float
    inside: bool

    RESOURCE_GROUP = "resource-group", "ResourceGroupReady"
    CLUSTER = "cluster", "ClusterReady", _HOUR
    NODE_POOLS = "node-pools", "NodePoolsReady", _HOUR
    MAINTENANCE = "maintenance-windows", "MaintenanceWindowsSet"
    IDENTITY_ACCESS = "identity-access", "IdentityAccessSet"
    POLICIES = "policies", "PoliciesAssigned"
    ACCESS = "access", "AccessReady", _USUAL, True
    BOOTSTRAP_SECRETS = "bootstrap-secrets", "SecretsApplied", _USUAL, True
    FLUX_COMPONENTS = "flux-components", "FluxInstalled", _USUAL, True
    FLUX_SYNC = "flux-sync", "FluxSynced", _USUAL, True
    SYSTEMS = "systems", "SystemsApplied", _USUAL, True
    VERIFY = "verify", "Ready", _USUAL, True
    TOMBSTONE = "tombstone", "Tombstoned"
    DELETE_CLUSTER = "delete-cluster", "ClusterDeleted", _HOUR
    DELETE_IDENTITY_ACCESS = "delete-identity-access", "IdentityAccessDeleted"
    DELETE_POLICIES = "delete-policies", "PoliciesDeleted"
    DELETE_RESOURCE_GROUP = "delete-resource-group", "ResourceGroupDeleted", _HOUR
    RELEASE = "release", "Released"
    SLEEP = "sleep", "SleepEnded", _HOUR
    WAKE = "wake", "Awake", 1800.0
    FINALIZE = "finalize", "Finalized"

    def __new__(cls, name: str, condition: str, deadline: float = _USUAL, inside: bool = False) -> Self:
        """Take the values of a line."""
        step = str.__new__(cls, name)
        step._value_ = name
        step.condition, step.deadline, step.inside = condition, deadline, inside
        return step


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


def next_step(recipe: Recipe, step: Step) -> Step | None:
    """Return the step after this one, None after the last."""
    steps = STEPS[recipe]
    index = steps.index(step) + 1
    return steps[index] if index < len(steps) else None
