"""Which clusters a rule of ``fleet.yaml`` is for."""

from __future__ import annotations

from pydantic import Field

from shared.fleet.manifests.base import ClusterName, Labels, Location, Manifest, ObjectName


class Selector(Manifest):
    """Which clusters it is for: those that match every field that is set."""

    environments: tuple[ObjectName, ...] = ()
    """The environments of the clusters."""
    locations: tuple[Location, ...] = ()
    """The Azure regions of the clusters."""
    labels: Labels = Field(default_factory=dict)
    """The labels that a cluster must have in metadata.labels."""
    clusters: tuple[ClusterName, ...] = ()
    """The names of the clusters."""
