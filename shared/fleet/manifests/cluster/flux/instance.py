"""Flux as the Flux Operator installs it: the names and rules of ``fluxcd.controlplane.io/v1``, FluxInstance.

See fluxcd.control-plane.io/operator/fluxinstance. What Flux pulls is not here: that is the rest of ``flux``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, StrictBool, StrictStr, model_validator

from shared.fleet.manifests.base import Manifest, rule
from shared.fleet.manifests.cluster.flux.kustomization import Patch
from shared.fleet.manifests.cluster.flux.source import FluxName, Text

OPERATOR = "operator"
"""The way in which Flux comes to a cluster where the operator installs it."""
Controller = Literal[
    "source-controller",
    "kustomize-controller",
    "helm-controller",
    "notification-controller",
    "image-reflector-controller",
    "image-automation-controller",
    "source-watcher",
]
_NEEDED: tuple[Controller, ...] = ("source-controller", "kustomize-controller")
_USUAL: tuple[Controller, ...] = (*_NEEDED, "helm-controller", "notification-controller")


class Distribution(Manifest):
    """Which Flux the operator installs, and from where."""

    version: Annotated[
        StrictStr,
        rule(r"[0-9xX*.<>=~^, v+A-Za-z-]{1,100}", 'a version or a range of versions such as "2.8.x"'),
    ]
    """The version of Flux, 2.6 or later, or a range of which the operator takes the newest that it knows."""
    registry: Text = "ghcr.io/fluxcd"
    """Where the images of the controllers are."""
    variant: (
        Literal["upstream-alpine", "enterprise-alpine", "enterprise-distroless", "enterprise-distroless-fips"]
        | None
    ) = None
    """The images of a registry that mirrors others."""
    image_pull_secret: FluxName | None = None
    """The Secret in flux-system for the images, of the type kubernetes.io/dockerconfigjson."""
    artifact: Annotated[StrictStr, rule(r"oci://\S{1,500}", "an address such as oci://HOST/NAME")] | None = (
        None
    )
    """Where the operator takes manifests newer than its own from; without it, it has those of its image."""
    artifact_pull_secret: FluxName | None = None
    """The Secret in flux-system for the artifact, of the type kubernetes.io/dockerconfigjson."""


class InstanceCluster(Manifest):
    """How the operator configures the controllers for the cluster."""

    size: Literal["small", "medium", "large"] | None = None
    """How many objects the controllers reconcile at a time, and their limits."""
    domain: Text | None = None
    """The domain of the services of the cluster; cluster.local by default."""
    network_policy: StrictBool | None = None
    """Whether only the namespace flux-system reaches the controllers; true by default."""
    object_level_workload_identity: StrictBool | None = None
    """Whether sources may have a serviceAccountName of their own, with provider: azure."""


class InstanceStorage(Manifest):
    """A volume in which source-controller keeps what it fetched."""

    storage_class: Annotated[Text, Field(alias="class")]
    """The class of the volume."""
    size: Annotated[StrictStr, rule(r"[1-9][0-9]*(Mi|Gi|Ti)", "a size such as 10Gi")]
    """Its size."""


class InstanceKustomize(Manifest):
    """Changes to the manifests of Flux."""

    patches: Annotated[tuple[Patch, ...], Field(max_length=50)] = ()
    """Strategic merge patches and JSON patches."""


class FluxInstance(Manifest):
    """The Flux that the Flux Operator installs: the spec of its FluxInstance, without what Flux pulls."""

    instead: ClassVar[Mapping[str, str]] = {
        "sync": "what Flux pulls is the rest of flux: repository, sources and kustomizations"
    }

    distribution: Distribution
    components: tuple[Controller, ...] = _USUAL
    """The controllers of Flux."""
    cluster: InstanceCluster | None = None
    storage: InstanceStorage | None = None
    kustomize: InstanceKustomize | None = None

    @model_validator(mode="after")
    def _has_what_roadstead_needs(self) -> Self:
        lacking = [name for name in _NEEDED if name not in self.components]
        if lacking:
            raise ValueError(f"components: Roadstead needs {' and '.join(lacking)}; add it")
        if len(set(self.components)) < len(self.components):
            raise ValueError("components has an entry twice; names must differ")
        return self
