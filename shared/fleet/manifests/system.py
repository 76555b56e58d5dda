"""A team's tenant: its clusters, namespaces, repository and quota."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, StrictStr, model_validator

from shared.fleet.manifests.base import (
    OWN_PREFIX,
    GitUrl,
    LabelKey,
    LabelValue,
    Manifest,
    ObjectName,
    RepositoryPath,
    rule,
)

_RESERVED = ("default", "flux-system")


Namespace = Annotated[
    ObjectName,
    rule(
        rf"(?!(kube-.*|{'|'.join(_RESERVED)})\Z).*",
        f"a namespace of the team's own, not {', '.join(_RESERVED)} or kube-*",
    ),
]
Quantity = Annotated[
    StrictStr,
    rule(r"[0-9]+(\.[0-9]+)?(m|[kMGTPE]i?)?", 'a Kubernetes quantity such as "4", "500m" or "16Gi"'),
]


ENVIRONMENT_LABEL, CLASS_LABEL = f"{OWN_PREFIX}environment", f"{OWN_PREFIX}class"


def _known_label(key: str) -> str:
    if key.startswith(OWN_PREFIX) and key not in (ENVIRONMENT_LABEL, CLASS_LABEL):
        raise ValueError(f"there is no such label; clusters have {ENVIRONMENT_LABEL} and {CLASS_LABEL}")
    return key


class ClusterSelector(Manifest):
    """The clusters of the system: those that it names, and those with all these labels."""

    names: tuple[ObjectName, ...] = ()
    """Clusters by their names."""
    match_labels: dict[Annotated[LabelKey, AfterValidator(_known_label)], LabelValue] = Field(
        default_factory=dict
    )
    """Clusters with all these labels. Besides the labels in its metadata, each cluster has
    roadstead.dev/environment and roadstead.dev/class with the names in its own file."""

    @model_validator(mode="after")
    def _selects(self) -> Self:
        if not self.names and not self.match_labels:
            raise ValueError("selects nothing; write names, matchLabels or both")
        return self


class GitSource(Manifest):
    """The repository that the team's workloads come from."""

    repository: GitUrl
    """The git repository."""
    branch: Annotated[StrictStr, Field(min_length=1)] = "main"
    """The branch of the repository."""
    path: RepositoryPath = "./"
    """The folder in the repository."""


class Quota(Manifest):
    """The most that the tenant may request on one cluster."""

    cpu: Quantity | None = None
    """Processors that the tenant's pods may request."""
    memory: Quantity | None = None
    """Memory that the tenant's pods may request."""


class SystemSpec(Manifest):
    """A team's tenant."""

    owners: Annotated[tuple[Annotated[StrictStr, Field(min_length=1)], ...], Field(min_length=1)]
    """Who is responsible for the tenant."""
    clusters: ClusterSelector
    namespaces: Annotated[tuple[Namespace, ...], Field(min_length=1)]
    """The tenant's namespaces; on each cluster a namespace belongs to one system."""
    source: GitSource
    quota: Quota = Quota()
