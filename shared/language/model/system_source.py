"""Where a team's workloads come from: any source of Flux, signed in by nothing but what the team has.

A source with ``provider: azure`` and without an account of its own is pulled as the identity of Flux itself
(fluxcd.io/flux/installation/configuration/workload-identity), which is the platform's. So a system names an
identity of the team, and Flux pulls as the account of the system.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from shared.language.model.arm_types import Guid
from shared.language.model.base import Manifest, ObjectName, RepositoryPath
from shared.language.model.cluster.flux_source import (
    BUCKET,
    Commit,
    Digest,
    Duration,
    FirstSource,
    FluxName,
    FluxRepository,
    Follow,
    Ref,
    Text,
    moves_along,
)

_PINS = frozenset({"tag", "semver", "commit", "digest"})
"""What an environment replaces as a whole when it has one of them, or a branch."""


class SystemIdentity(Manifest):
    """The team's own identity of Azure. A federated credential lets the system's ServiceAccount act as it."""

    client_id: Guid
    """The client id of a user-assigned identity, which is not that of the platform's Flux."""
    tenant_id: Guid
    """The tenant of Microsoft Entra ID that has the identity; Flux reads it from the ServiceAccount."""


class EnvironmentSource(Manifest):
    """What the clusters of one environment pull instead."""

    repository: FluxRepository | None = None
    """The git repository, the artifact, or the blob endpoint."""
    branch: Ref | None = None
    """The branch of the repository. With this, or one of the next four, the tag, semver, commit and digest
    that the system has for all environments do not count."""
    tag: Ref | None = None
    """A tag of the git repository or of the artifact."""
    semver: Text | None = None
    """A range of versions of which the newest tag counts."""
    commit: Commit | None = None
    """One commit of the branch."""
    digest: Digest | None = None
    """The digest of the artifact."""
    bucket_name: Text | None = None
    """The container of the storage account."""
    prefix: Text | None = None
    """The beginning of the names of the blobs that count."""
    follow: Follow | None = None
    """What moves what Flux pulls."""
    path: RepositoryPath | None = None
    """The folder in it."""
    workload_identity: SystemIdentity | None = None


class SystemSecret(Manifest):
    """A Secret in the first namespace of the system."""

    name: FluxName
    """The name of the Secret."""


class PulledSource(FirstSource):
    """Where the team's workloads come from: all that signs Flux in is in the team's first namespace."""

    branch: Ref = "main"
    """The branch of a git repository."""
    provider: Literal["azure", "github"] | None = None
    """Who signs Flux in: azure as the team's workloadIdentity, github as the GitHub App of secretRef. Without
    it and secretRef, the source is read anonymously: Roadstead gives its own credentials to no team."""
    secret_ref: SystemSecret | None = None
    """The Secret with the credentials for the source, which somebody else creates."""
    workload_identity: SystemIdentity | None = None
    follow: Follow | None = None
    """What moves what Flux pulls: with rollout, a cluster pulls a commit that Roadstead gives it in stages;
    with branch, or without this, Flux pulls each commit at once. With rollout, the app has to be able to read
    the repository."""
    path: RepositoryPath = "./"
    """The folder in it."""
    interval: Duration = "10m"
    """How often Flux applies the folder again; it looks for something new every minute."""

    @model_validator(mode="after")
    def _signs_in_as_the_team(self) -> Self:
        """Refuse what would sign Flux in as itself: without an account it acts as the platform's identity."""
        identity, secret = self.workload_identity is not None, self.secret_ref is not None
        moves_along(self.follow, self)
        if self.provider != "azure":
            if identity:
                raise ValueError("workloadIdentity goes with provider: azure; add that, or remove it")
            return self
        if self.kind == BUCKET:
            if identity == secret:
                raise ValueError(
                    "provider: azure of a container needs workloadIdentity or secretRef; keep one"
                )
            return self
        if not identity:
            raise ValueError(
                "provider: azure needs workloadIdentity, the team's own identity: without it Flux would act "
                "as the platform's"
            )
        if secret:
            raise ValueError("workloadIdentity and secretRef exclude each other; keep one")
        return self


class TeamSource(PulledSource):
    """Where the team's workloads come from, with what differs by environment."""

    environments: dict[ObjectName, EnvironmentSource] = Field(default_factory=dict)
    """By environment, what its clusters pull instead."""

    def of(self, environment: str) -> Mapping[str, Any]:
        """Return what the clusters of an environment pull, in the form of the manifest."""
        source = self.model_dump(by_alias=True, exclude_none=True, exclude={"environments"})
        own = self.environments.get(environment)
        given = own.model_dump(by_alias=True, exclude_none=True) if own is not None else {}
        if {"branch", *_PINS} & given.keys():
            source = {name: value for name, value in source.items() if name not in _PINS}
        return source | given

    def place_in(self, environment: str) -> tuple[str, ...]:
        """Return where the identity of an environment is written: here, or among its own values."""
        own = self.environments.get(environment)
        return ("environments", environment) if own and own.workload_identity else ()

    def identity_in(self, environment: str) -> SystemIdentity | None:
        """Return the identity as which Flux pulls on the clusters of an environment."""
        place = self.place_in(environment)
        return self.environments[environment].workload_identity if place else self.workload_identity

    @model_validator(mode="after")
    def _is_whole_in_every_environment(self) -> Self:
        for name in self.environments:
            try:
                PulledSource.model_validate(self.of(name))
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                text = str(first["msg"]).removeprefix("Value error, ")
                raise ValueError(f"environments.{name}: {text}") from None
        return self
