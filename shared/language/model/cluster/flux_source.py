"""The sources that Flux pulls on a cluster: the names and rules of ``source.toolkit.fluxcd.io/v1``.

See fluxcd.io/flux/components/source.
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StrictStr, ValidationError, model_validator

from shared.language.model.base import Manifest, rule, shown, stated_rule
from shared.language.model.git_addresses import git_url, only_a_repository

MAIN = "flux-system"
"""The name of the first source and of the first Kustomization, as ``flux bootstrap`` names them."""
GIT, OCI, BUCKET = "GitRepository", "OCIRepository", "Bucket"

FluxName = Annotated[
    StrictStr,
    rule(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "1 to 63 lowercase letters, digits and hyphens, with a letter or digit at both ends",
    ),
]
Duration = Annotated[
    StrictStr, rule(r"([0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h))+", 'a duration such as "30s", "10m" or "1h30m"')
]
Text = Annotated[StrictStr, Field(min_length=1, max_length=1000)]
Ref = Annotated[
    StrictStr,
    rule(
        r"(?!(refs|heads|remotes|origin)/|[0-9a-f]{40}$|@$|HEAD$|[-./])(?!.*(\.\.|//|/\.|@\{|\.lock(/|$)|[./]$))"
        r"[^\s~^:?*\[\\]{1,250}",
        "the name of a branch or a tag as git takes it, without refs/heads/ or origin/, such as main",
    ),
]
_VERSION = r"[<>=!~^]{0,2} ?v?([0-9]+|[xX*])(\.([0-9]+|[xX*])){0,2}([-+][0-9A-Za-z.+-]+)?"
Semver = Annotated[
    StrictStr,
    rule(
        rf"{_VERSION}(( *\|\| *| *, *| +- +| +){_VERSION}){{0,9}}",
        "a range of versions such as 1.x or >=1.2 <2",
    ),
]
"""github.com/Masterminds/semver, "Checking Version Constraints", which Flux uses."""
Digest = Annotated[StrictStr, rule(r"sha256:[0-9a-f]{64}", "a digest: sha256: and 64 hexadecimal digits")]
Commit = Annotated[StrictStr, rule(r"[0-9a-f]{40}|[0-9a-f]{64}", "a whole commit: 40 hexadecimal digits")]


_UNITS: Mapping[str, Fraction] = {
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}


def seconds_of(duration: str) -> Fraction:
    """Return a duration such as "1h30m" in seconds."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)", duration)
    return sum((Fraction(number) * _UNITS[unit] for number, unit in parts), Fraction(0))


def _source_url(url: str) -> str:
    only_a_repository(url)
    if url.startswith(("https://", "ssh://")) and "@" in url.removeprefix("ssh://git@"):
        raise ValueError(f"must have no user and no token in it, got {shown(url)}; secretRef names a Secret")
    if not re.fullmatch(r"(https|ssh|oci)://[^\s/?#]+(/[^\s?#]*)?", url):
        what = "an address such as https://github.com/OWNER/NAME, ssh://git@HOST/PATH or oci://HOST/NAME"
        raise ValueError(f"must be {what}, got {shown(url)}")
    if not _SSH_PORT.match(url):
        raise ValueError(f"must have a number after the colon, or a / in its place, got {shown(url)}")
    tagged = re.fullmatch(r"oci://[^/]+/[^:@]+(:(?P<tag>[^:@/]+)|@(?P<digest>.+))", url)
    if tagged:
        field = "tag" if tagged["tag"] else "digest"
        value = tagged["tag"] or tagged["digest"]
        raise ValueError(f"must have no {field} in it; write {url[: -len(value) - 1]}, and {field}: {value}")
    return url


_SSH_PORT = re.compile(r"(https|oci)://|ssh://[^/:]+(:[0-9]{1,5})?(/|$)")
SourceUrl = Annotated[
    StrictStr,
    AfterValidator(_source_url),
    stated_rule("an https:// or ssh:// address of a git repository, or an oci:// address of an artifact"),
]


_BLOB_ENDPOINT = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?/?")


def _repository(url: str) -> str:
    only_a_repository(url)
    if url.startswith(("oci://", "ssh://")):
        return _source_url(url)
    if "@" in url or url.startswith(("git:", "http:")):
        why = "http:// would expose them, and secretRef names a Secret with them"
        what = "an https:// or ssh:// address without a password or token in it"
        raise ValueError(f"must be {what}, got {shown(url)}; {why}")
    return url if _BLOB_ENDPOINT.fullmatch(url) else git_url(url)


def has_path(url: str) -> bool:
    """Return whether an address has more than the name of a server."""
    return not _BLOB_ENDPOINT.fullmatch(url)


FluxRepository = Annotated[
    StrictStr,
    AfterValidator(_repository),
    stated_rule(
        "an https:// or ssh:// address of a git repository, an oci:// address of an artifact, or the "
        "https:// address of a storage account"
    ),
]


class SecretReference(Manifest):
    """A Secret in the namespace flux-system of the cluster."""

    name: FluxName
    """The name of the Secret."""


class LayerSelector(Manifest):
    """Which layer of an artifact Flux takes; the first one by default."""

    media_type: Text | None = None
    """The media type of the layer; the first one that has it counts."""
    operation: Literal["extract", "copy"] = "extract"
    """extract unpacks the layer, copy leaves it as it is, as for the chart of a HelmRelease."""


class FluxSource(Manifest):
    """A source that Flux pulls besides the first one."""

    name: FluxName
    """The name of the source; sources of the layers are merged by it."""
    kind: Literal["GitRepository", "OCIRepository", "Bucket"] = "GitRepository"
    """A branch, tag or commit of a git repository, an artifact in a registry, or a container of a storage
    account."""
    url: SourceUrl | None = None
    """The address of a GitRepository (https:// or ssh://) or of an OCIRepository (oci://)."""
    branch: Ref | None = None
    """The branch of a GitRepository; main by default."""
    tag: Ref | None = None
    """The tag of a GitRepository or an OCIRepository."""
    semver: Semver | None = None
    """The range of versions of which the newest tag counts, such as "1.x"."""
    commit: Commit | None = None
    """The commit of a GitRepository; with branch, one of that branch."""
    digest: Digest | None = None
    """The digest of an OCIRepository."""
    layer_selector: LayerSelector | None = None
    endpoint: (
        Annotated[StrictStr, rule(r"(https://)?[A-Za-z0-9.-]+(:[0-9]{1,5})?/?", "the address of a server")]
        | None
    ) = None
    """The blob endpoint of a Bucket's storage account, such as https://ACCOUNT.blob.core.windows.net."""
    bucket_name: Text | None = None
    """The container of a Bucket."""
    prefix: Text | None = None
    """The beginning of the names of the blobs of a Bucket that count."""
    provider: Literal["generic", "azure", "github"] | None = None
    """Who signs Flux in: azure is workload identity, for Azure DevOps, Azure Container Registry and Azure
    Blob Storage; github is a GitHub App, whose key is in the Secret of secretRef."""
    secret_ref: SecretReference | None = None
    service_account_name: FluxName | None = None
    """The ServiceAccount in flux-system whose workload identity signs Flux in, with provider: azure."""
    interval: Duration = "1m0s"
    """How often Flux looks for something new."""
    ignore: Text | None = None
    """The files that are not pulled, as in .gitignore."""

    @model_validator(mode="after")
    def _fields_fit_the_kind(self) -> Self:
        given = {name for name in _FIELDS_OF if getattr(self, _PYTHON.get(name, name)) is not None}
        for name in sorted(given):
            kinds = _FIELDS_OF[name]
            if self.kind not in kinds:
                raise ValueError(f"{name}: only {' and '.join(kinds)} has this; remove it")
        missing = [name for name in _REQUIRED[self.kind] if name not in given]
        if missing:
            raise ValueError(f"kind: {self.kind} needs {' and '.join(missing)}; add it")
        schemes = _SCHEMES[self.kind]
        if self.url is not None and not self.url.startswith(schemes):
            raise ValueError(f"url: of kind: {self.kind} it begins with {' or '.join(schemes)}")
        only_one(self, ("tag", "semver", "commit", "digest"))
        signs_in(self.provider, self.secret_ref, self.service_account_name)
        if self.provider == "github" and self.kind != GIT:
            raise ValueError(f"provider: github signs Flux in to git only, and this is kind: {self.kind}")
        if self.kind == BUCKET and self.secret_ref and self.service_account_name:
            raise ValueError("secretRef and serviceAccountName of a Bucket exclude each other; keep one")
        if self.url is not None and self.url.startswith("ssh://") and self.secret_ref is None:
            raise ValueError("url: ssh:// needs secretRef: the Secret with the keys identity and known_hosts")
        return self


def only_one(model: Manifest, names: Sequence[str]) -> None:
    """Raise ValueError where a model has more than one of these fields."""
    both = [name for name in names if getattr(model, name, None) is not None]
    if len(both) > 1:
        raise ValueError(f"{' and '.join(both)} exclude each other; keep one")


def signs_in(provider: str | None, secret: SecretReference | None, account: str | None) -> None:
    """Raise ValueError where a provider does not go with what signs Flux in."""
    if account and provider != "azure":
        raise ValueError("serviceAccountName goes with provider: azure; add that, or remove it")
    if provider == "github" and secret is None:
        raise ValueError("provider: github needs secretRef: the Secret with the key of the GitHub App")


_PYTHON = {"bucketName": "bucket_name", "layerSelector": "layer_selector"}
_FIELDS_OF: Mapping[str, Sequence[str]] = {
    "url": (GIT, OCI),
    "branch": (GIT,),
    "tag": (GIT, OCI),
    "semver": (GIT, OCI),
    "commit": (GIT,),
    "digest": (OCI,),
    "layerSelector": (OCI,),
    "endpoint": (BUCKET,),
    "bucketName": (BUCKET,),
    "prefix": (BUCKET,),
}
_REQUIRED: Mapping[str, Sequence[str]] = {GIT: ("url",), OCI: ("url",), BUCKET: ("endpoint", "bucketName")}
_SCHEMES: Mapping[str, tuple[str, ...]] = {GIT: ("https://", "ssh://"), OCI: ("oci://",), BUCKET: ()}


FOLLOWS_ROLLOUT, FOLLOWS_BRANCH = "rollout", "branch"
"""Who moves what a cluster pulls: Roadstead, in stages, or Flux by itself."""
Follow = Literal["rollout", "branch"]


# What Flux pulls first on a cluster, and for a system: a source whose address says its kind.

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
    branch: Ref = "main"
    """The branch of a git repository."""
    tag: Ref | None = None
    """A tag of the git repository, in place of the branch, or of the artifact; latest by default."""
    semver: Semver | None = None
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


def moves_along(follow: str | None, source: FirstSource) -> None:
    """Raise ValueError where nothing of a source moves that is to be followed by rollout."""
    if follow != FOLLOWS_ROLLOUT:
        return
    if source.kind == BUCKET:
        raise ValueError(
            "follow: rollout moves along a branch, or the tag of an artifact, and a container has neither; "
            "remove follow"
        )
    along, others = (
        ("branch", ("tag", "semver", "commit")) if source.kind == GIT else ("tag", ("semver", "digest"))
    )
    fixed = next((name for name in others if getattr(source, name)), "")
    if fixed:
        raise ValueError(
            f"follow: rollout moves along {along}, and {fixed} says otherwise; keep one of the two"
        )
