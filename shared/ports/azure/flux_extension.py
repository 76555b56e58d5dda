"""The operations on Flux as Microsoft's extension: the extension of a cluster, and what it pulls and applies.

These are resources of Microsoft.KubernetesConfiguration below the cluster. They have no ETags, and end with
the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.azure.rate_limits import ARM_DELETE, ARM_READ, ARM_WRITE
from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.ports.azure.calls import AzureCall
from shared.ports.azure.clusters import Unconditional
from shared.resource_ids import ClusterId


class _BelowCluster:
    """The libraries of extensions name a cluster with its provider and its type."""

    target: ClusterId

    @property
    def place(self) -> tuple[str, ...]:
        """The cluster, as these libraries take it."""
        return self.target.resource_group, "Microsoft.ContainerService", "managedClusters", self.target.name


@dataclass(frozen=True)
class _WriteBelow(_BelowCluster, Unconditional):
    """A write of what these libraries have below a cluster."""


@dataclass(frozen=True)
class GetExtension(_BelowCluster, AzureCall[Json | None]):
    """Return an extension of the cluster, or None; ``properties.provisioningState`` says how far it is."""

    service, sdk, limits = "extensions", "extensions.get", (ARM_READ,)
    absent_is_fine = True
    needs = ("name", "properties")
    target: ClusterId
    extension: str


@dataclass(frozen=True)
class PutExtension(_WriteBelow):
    """Start to install an extension, or to change it."""

    service, sdk, limits = "extensions", "extensions.begin_create", (ARM_WRITE,)
    target: ClusterId
    extension: str
    body: Json


@dataclass(frozen=True)
class ListFluxConfigurations(_BelowCluster, AzureCall[Mapping[str, Json]]):
    """Return the configurations of the cluster by name, each with the statuses of its objects."""

    service, sdk, limits = "fluxconfigurations", "flux_configurations.list", (ARM_READ,)
    needs = ("name", "properties")
    target: ClusterId

    def result(self, answer: Sequence[Json]) -> Mapping[str, Json]:
        """Return the configurations by name."""
        return {str(configuration["name"]): configuration for configuration in answer}


@dataclass(frozen=True)
class PutFluxConfiguration(_WriteBelow):
    """Start to create or replace a configuration; its body may hold a credential, and is never shown."""

    service, sdk, limits = "fluxconfigurations", "flux_configurations.begin_create_or_update", (ARM_WRITE,)
    target: ClusterId
    configuration: str
    body: Json = field(repr=False)


@dataclass(frozen=True)
class DeleteFluxConfiguration(_WriteBelow):
    """Start to delete a configuration; the extension deletes what it applied, as its ``prune`` says."""

    service, sdk, limits = "fluxconfigurations", "flux_configurations.begin_delete", (ARM_DELETE,)
    absent_is_fine = True
    target: ClusterId
    configuration: str
