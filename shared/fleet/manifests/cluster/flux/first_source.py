"""What Flux pulls first on a cluster, and for a system: a source whose address says its kind."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictStr, ValidationError, model_validator

from shared.fleet.manifests.base import Manifest
from shared.fleet.manifests.cluster.flux.source import (
    BUCKET,
    GIT,
    MAIN,
    OCI,
    Commit,
    Digest,
    FluxRepository,
    FluxSource,
    Ref,
    Text,
    has_path,
)

_OF_SOURCE = {
    *("tag", "semver", "commit", "digest", "bucket_name", "prefix"),
    *("provider", "secret_ref", "service_account_name"),
}
"""The fields that have the names of any source."""


class FirstSource(Manifest):
    """A git repository, an artifact, or a container: the address and ``bucketName`` say which."""

    repository: FluxRepository
    """What Flux pulls: a git repository (https:// or ssh://), an artifact in a registry (oci://), or, with
    bucketName, the blob endpoint of a storage account."""
    branch: Annotated[StrictStr, Field(min_length=1)] = "main"
    """The branch of a git repository."""
    tag: Ref | None = None
    """A tag of the git repository, in place of the branch, or of the artifact; latest by default."""
    semver: Text | None = None
    """A range of versions of which the newest tag counts, in place of the branch or the tag."""
    commit: Commit | None = None
    """One commit of the branch."""
    digest: Digest | None = None
    """The digest of the artifact, in place of a tag."""
    bucket_name: Text | None = None
    """The container of the storage account."""
    prefix: Text | None = None
    """The beginning of the names of the blobs that count."""
    provider: Literal["azure", "github"] | None = None
    """Who signs Flux in, as provider of a source; without it, the git credentials of the app."""

    @property
    def kind(self) -> str:
        """The kind of the source."""
        if self.repository.startswith("oci://"):
            return OCI
        return GIT if self.bucket_name is None else BUCKET

    @property
    def main(self) -> FluxSource:
        """The source as one of Flux's, under the name of the first one."""
        kind = self.kind
        place: dict[str, Any] = {"url": self.repository}
        if kind == GIT:
            place["branch"] = self.branch
        if kind == BUCKET:
            place = {"endpoint": self.repository}
        given = self.model_dump(by_alias=True, exclude_none=True, include=_OF_SOURCE)
        return FluxSource.model_validate({"name": MAIN, "kind": kind, **place, **given})

    @model_validator(mode="after")
    def _first_source_fits(self) -> Self:
        try:
            self.main  # noqa: B018
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = "repository: " if first["loc"] else ""
            text = str(first["msg"]).removeprefix("Value error, ").replace("url:", "repository:")
            raise ValueError(f"{place}{text}") from None
        if self.bucket_name is None and self.kind == GIT and not has_path(self.repository):
            raise ValueError(
                "repository: must be an address such as https://github.com/OWNER/NAME; the blob endpoint of "
                "a storage account needs bucketName"
            )
        return self
