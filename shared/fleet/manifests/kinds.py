"""The kinds of a fleet repository, each with apiVersion, kind, metadata and spec."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, StrictStr

from shared.fleet.manifests.base import ClusterName, Manifest
from shared.fleet.manifests.cluster import ClusterSpec

API_VERSION = "roadstead.dev/v1alpha1"


class Metadata(Manifest):
    """Who the object is; labels and annotations as in Kubernetes."""

    name: ClusterName
    labels: dict[StrictStr, StrictStr] = Field(default_factory=dict)
    annotations: dict[StrictStr, StrictStr] = Field(default_factory=dict)


class DeleteBudget(Manifest):
    """How many clusters one plan may delete; more than that holds all its deletes."""

    count: Annotated[StrictInt, Field(ge=0, le=10_000)] = 1


class Guards(Manifest):
    """What a commit may not do unasked."""

    delete_budget: DeleteBudget = DeleteBudget()


class FleetSpec(Manifest):
    """Defaults for every cluster, and guards. ``defaults`` is any part of a cluster's spec."""

    defaults: dict[StrictStr, Any] = Field(default_factory=dict)
    guards: Guards = Guards()


class Fleet(Manifest):
    """``fleet.yaml``."""

    api_version: Literal["roadstead.dev/v1alpha1"]
    kind: Literal["Fleet"]
    metadata: Metadata
    spec: FleetSpec = FleetSpec()


class Cluster(Manifest):
    """``clusters/<name>/cluster.yaml``, with the fleet's defaults laid under its spec."""

    api_version: Literal["roadstead.dev/v1alpha1"]
    kind: Literal["Cluster"]
    metadata: Metadata
    spec: ClusterSpec
