"""Flux as Microsoft's extension: the names and rules of ``Microsoft.KubernetesConfiguration/extensions``.

See learn.microsoft.com/azure/azure-arc/kubernetes/conceptual-gitops-flux2.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StrictStr, model_validator

from shared.fleet.manifests.base import Manifest, rule
from shared.fleet.manifests.cluster.flux.source import Text

EXTENSION = "extension"
"""The way in which Flux comes to a cluster where it is the extension."""


class FluxExtension(Manifest):
    """The version and the settings of the extension; without a version, Azure upgrades it."""

    version: (
        Annotated[StrictStr, rule(r"[0-9]+\.[0-9]+\.[0-9]+", 'a version in quotes, such as "1.19.5"')] | None
    ) = None
    """The version of the extension that stays; it also decides which Flux runs."""
    release_train: Text | None = None
    """The releases that Azure upgrades to, such as Stable or Preview; not with version."""
    configuration_settings: Annotated[dict[Text, StrictStr], Field(max_length=50)] = Field(
        default_factory=dict
    )
    """Settings of the extension, such as multiTenancy.enforce; none is a secret. A setting that git no longer
    names keeps its value."""

    @model_validator(mode="after")
    def _follows_or_stays(self) -> Self:
        if self.version and self.release_train:
            raise ValueError(
                "releaseTrain: Azure upgrades along it, and version prevents that; keep one of the two"
            )
        return self
