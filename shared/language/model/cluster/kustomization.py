"""The folders that Flux applies on a cluster: the names and rules of ``kustomize.toolkit.fluxcd.io/v1``.

See fluxcd.io/flux/components/kustomize.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictStr, model_validator

from shared.language.model.base import FolderPath, Manifest, shown
from shared.language.model.cluster.flux_source import MAIN, Duration, FluxName, SecretReference, Text

_VARIABLE = re.compile(r"[_A-Za-z][_A-Za-z0-9]*")


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(
            f"must be the name of a variable: letters, digits and _, not beginning with a digit, "
            f"got {shown(name)}"
        )
    return name


class KustomizationDependency(Manifest):
    """A Kustomization that has to be Ready before."""

    name: FluxName
    """Its name in spec.flux.kustomizations, or flux-system."""


class HealthCheck(Manifest):
    """An object that has to be healthy before the Kustomization is Ready."""

    api_version: Text
    """Its API, such as apps/v1."""
    kind: Text
    """Its kind, such as Deployment."""
    name: Text
    """Its name."""
    namespace: FluxName | None = None
    """Its namespace."""


class PatchTarget(Manifest):
    """The objects that are patched: those that match all fields."""

    group: Text | None = None
    """The group of the API."""
    version: Text | None = None
    """The version of the API."""
    kind: Text | None = None
    """The kind."""
    name: Text | None = None
    """The name, or a regular expression for it."""
    namespace: Text | None = None
    """The namespace, or a regular expression for it."""
    label_selector: Text | None = None
    """Labels, such as app=web."""
    annotation_selector: Text | None = None
    """Annotations, as labelSelector."""


class Patch(Manifest):
    """A strategic merge patch or a JSON patch over objects."""

    patch: Annotated[StrictStr, Field(min_length=1, max_length=20_000)]
    """The patch, in YAML."""
    target: PatchTarget | None = None


class Decryption(Manifest):
    """How Flux decrypts the Secrets of the folder."""

    provider: Literal["sops"] = "sops"
    """SOPS, with an age key or with Azure Key Vault."""
    secret_ref: SecretReference | None = None
    service_account_name: FluxName | None = None
    """The ServiceAccount in flux-system whose workload identity opens Azure Key Vault."""


class SubstituteFrom(Manifest):
    """A ConfigMap or Secret in flux-system whose keys are variables."""

    kind: Literal["ConfigMap", "Secret"]
    """Its kind."""
    name: FluxName
    """Its name; the ConfigMap cluster-facts has the facts of the cluster."""
    optional: StrictBool = False
    """It may be missing."""


class PostBuild(Manifest):
    """Variables that Flux fills in where manifests have ${name}."""

    substitute: dict[Annotated[StrictStr, AfterValidator(_variable)], StrictStr] = Field(default_factory=dict)
    """Variables with their values; no secret belongs here."""
    substitute_from: Annotated[tuple[SubstituteFrom, ...], Field(max_length=20)] = ()
    """Where more variables come from; of several with one name, the later counts."""


class Kustomization(Manifest):
    """A folder that Flux applies, after those that it depends on."""

    name: FluxName
    """The name of the Kustomization; those of the layers are merged by it. flux-system is the first one,
    whose source and path are those of spec.flux."""
    source: FluxName | None = None
    """The source, by its name in spec.flux.sources; flux-system by default."""
    path: FolderPath | None = None
    """The folder in the source; its root by default."""
    depends_on: Annotated[tuple[KustomizationDependency, ...], Field(max_length=50)] = ()
    """The Kustomizations that have to be Ready before."""
    interval: Duration = "10m0s"
    """How often Flux applies the folder again."""
    retry_interval: Duration | None = None
    """How soon after a failure; as interval by default."""
    timeout: Duration | None = None
    """How long one application, with its health checks, may take; as interval by default."""
    prune: StrictBool = True
    """Flux deletes what the folder no longer has."""
    wait: StrictBool | None = None
    """The Kustomization is Ready when everything that it applied is healthy."""
    force: StrictBool | None = None
    """Flux creates objects again where a change is not possible."""
    deletion_policy: Literal["MirrorPrune", "Delete", "WaitForTermination", "Orphan"] | None = None
    """What Flux does with what it applied when the Kustomization is deleted; MirrorPrune, as prune says, by
    default."""
    target_namespace: FluxName | None = None
    """The namespace of everything that is applied."""
    service_account_name: FluxName | None = None
    """The ServiceAccount in flux-system that Flux impersonates."""
    health_checks: Annotated[tuple[HealthCheck, ...], Field(max_length=50)] = ()
    """What has to be healthy before the Kustomization is Ready; not with wait."""
    patches: Annotated[tuple[Patch, ...], Field(max_length=50)] = ()
    """Changes to what the folder has."""
    decryption: Decryption | None = None
    post_build: PostBuild | None = None

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if self.wait and self.health_checks:
            raise ValueError(
                "wait: true checks everything, so Flux ignores healthChecks; keep one of the two"
            )
        if self.name == MAIN and (self.source or self.path):
            both = "source: write repository" if self.source else "path: write it"
            raise ValueError(f"{both} directly below spec.flux; this entry only changes its other fields")
        return self
