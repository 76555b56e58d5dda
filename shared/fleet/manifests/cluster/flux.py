"""What Flux pulls and applies on a cluster: sources and Kustomizations, with the names of Flux's API.

Names, patterns and rules are those of the definitions of Flux: ``source.toolkit.fluxcd.io/v1`` and
``kustomize.toolkit.fluxcd.io/v1`` (fluxcd.io/flux/components).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictStr, model_validator

from shared.fleet.manifests.base import GitUrl, Manifest, RepositoryPath, rule, shown, stated_rule

MAIN = "flux-system"
"""The name of the first source and of the first Kustomization, as ``flux bootstrap`` names them."""
EVENT_KEY = "token"
"""The key of a Secret with which a Provider of the type generic-hmac signs."""
GIT, OCI, BUCKET = "GitRepository", "OCIRepository", "Bucket"

FluxName = Annotated[
    StrictStr,
    rule(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "1 to 63 lowercase letters, digits and hyphens, with a letter or digit at both ends",
    ),
]
Duration = Annotated[
    StrictStr, rule(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+", 'a duration such as "30s", "10m" or "1h30m"')
]
_VARIABLE = re.compile(r"[_A-Za-z][_A-Za-z0-9]*")
Text = Annotated[StrictStr, Field(min_length=1, max_length=1000)]
Ref = Annotated[StrictStr, rule(r"[^\s~^:?*\[\\]{1,250}", "the name of a branch or a tag")]
Commit = Annotated[StrictStr, rule(r"[0-9a-f]{40}|[0-9a-f]{64}", "a whole commit: 40 hexadecimal digits")]


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(
            f"must be the name of a variable: letters, digits and _, not beginning with a digit, "
            f"got {shown(name)}"
        )
    return name


def _source_url(url: str) -> str:
    if url.startswith(("https://", "ssh://")) and "@" in url.removeprefix("ssh://git@"):
        raise ValueError(f"must have no user and no token in it, got {shown(url)}; secretRef names a Secret")
    if not re.fullmatch(r"(https|ssh|oci)://[^\s/?#]+(/[^\s?#]*)?", url):
        what = "an address such as https://github.com/OWNER/NAME, ssh://git@HOST/PATH or oci://HOST/NAME"
        raise ValueError(f"must be {what}, got {shown(url)}")
    return url


SourceUrl = Annotated[
    StrictStr,
    AfterValidator(_source_url),
    stated_rule("an https:// or ssh:// address of a git repository, or an oci:// address of an artifact"),
]


class SecretReference(Manifest):
    """A Secret in the namespace flux-system of the cluster."""

    name: FluxName
    """The name of the Secret."""


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
    semver: Text | None = None
    """The range of versions of which the newest tag counts, such as "1.x"."""
    commit: Commit | None = None
    """The commit of a GitRepository; with branch, one of that branch."""
    digest: (
        Annotated[StrictStr, rule(r"sha256:[0-9a-f]{64}", "a digest: sha256: and 64 hexadecimal digits")]
        | None
    ) = None
    """The digest of an OCIRepository."""
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
        if self.service_account_name and self.provider != "azure":
            raise ValueError("serviceAccountName goes with provider: azure; add that, or remove it")
        if self.provider == "github" and self.secret_ref is None:
            raise ValueError("provider: github needs secretRef: the Secret with the key of the GitHub App")
        if self.url is not None and self.url.startswith("ssh://") and self.secret_ref is None:
            raise ValueError("url: ssh:// needs secretRef: the Secret with the keys identity and known_hosts")
        return self


def only_one(model: Manifest, names: Sequence[str]) -> None:
    """Raise ValueError where a model has more than one of these fields."""
    both = [name for name in names if getattr(model, name, None) is not None]
    if len(both) > 1:
        raise ValueError(f"{' and '.join(both)} exclude each other; keep one")


_PYTHON = {"bucketName": "bucket_name"}
_FIELDS_OF: Mapping[str, Sequence[str]] = {
    "url": (GIT, OCI),
    "branch": (GIT,),
    "tag": (GIT, OCI),
    "semver": (GIT, OCI),
    "commit": (GIT,),
    "digest": (OCI,),
    "endpoint": (BUCKET,),
    "bucketName": (BUCKET,),
    "prefix": (BUCKET,),
}
_REQUIRED: Mapping[str, Sequence[str]] = {GIT: ("url",), OCI: ("url",), BUCKET: ("endpoint", "bucketName")}
_SCHEMES: Mapping[str, tuple[str, ...]] = {GIT: ("https://", "ssh://"), OCI: ("oci://",), BUCKET: ()}


class Dependency(Manifest):
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
    path: RepositoryPath | None = None
    """The folder in the source; its root by default."""
    depends_on: Annotated[tuple[Dependency, ...], Field(max_length=50)] = ()
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


class FluxEvents(Manifest):
    """How Flux reports what it does: its notification-controller posts signed events to the app."""

    secret_ref: SecretReference
    """The Secret in flux-system whose key ``token`` signs the events, for this cluster alone: an entry of
    bootstrapSecrets, so that the app reads the same key in the vault."""


class Flux(Manifest):
    """What Flux pulls, and the Flux to install: ``components`` is a file of this repository."""

    repository: GitUrl
    """The git repository that Flux pulls."""
    branch: Annotated[StrictStr, Field(min_length=1)] = "main"
    """Its branch."""
    tag: Ref | None = None
    """A tag of it, in place of the branch."""
    semver: Text | None = None
    """A range of versions of which the newest tag counts, in place of the branch."""
    commit: Commit | None = None
    """One commit of the branch."""
    provider: Literal["azure", "github"] | None = None
    """Who signs Flux in, as provider of a source; without it, the git credentials of the app."""
    secret_ref: SecretReference | None = None
    service_account_name: FluxName | None = None
    """The ServiceAccount in flux-system whose workload identity signs Flux in, with provider: azure."""
    path: RepositoryPath
    """The folder in it that Flux applies to the cluster."""
    components: RepositoryPath = "flux/gotk-components.yaml"
    """The file of this repository with the Flux to install: write it with flux install --export."""
    sources: Annotated[tuple[FluxSource, ...], Field(max_length=50)] = ()
    """More sources, by name."""
    kustomizations: Annotated[tuple[Kustomization, ...], Field(max_length=100)] = ()
    """More folders that Flux applies, by name."""
    lockdown: StrictBool = True
    """Whether Flux is locked down for several tenants on a cluster that has systems."""
    events: FluxEvents | None = None
    """Whether Flux reports to Roadstead what it does; by default Roadstead only reads it."""

    @property
    def first(self) -> Kustomization:
        """The Kustomization of ``path``, with what an entry of its name changes."""
        return next(
            (one for one in self.kustomizations if one.name == MAIN),
            Kustomization.model_validate({"name": MAIN}),
        ).model_copy(update={"path": self.path})

    @property
    def follows_branch(self) -> bool:
        """Whether Flux pulls the head of the branch."""
        return self.tag is None and self.semver is None and self.commit is None

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        only_one(self, ("tag", "semver", "commit"))
        if self.service_account_name and self.provider != "azure":
            raise ValueError("serviceAccountName goes with provider: azure; add that, or remove it")
        if self.provider == "github" and self.secret_ref is None:
            raise ValueError("provider: github needs secretRef: the Secret with the key of the GitHub App")
        sources = [source.name for source in self.sources]
        _differ("sources", sources)
        if MAIN in sources:
            raise ValueError(f"sources: {MAIN} is the source of spec.flux.repository; choose another name")
        names = [one.name for one in self.kustomizations]
        _differ("kustomizations", names)
        for one in self.kustomizations:
            if one.source is not None and one.source not in (MAIN, *sources):
                raise ValueError(
                    f"kustomizations[{one.name}].source: there is no source {one.source}; "
                    f"{_known([MAIN, *sources])}"
                )
            for needed in one.depends_on:
                if needed.name not in (MAIN, *names):
                    raise ValueError(
                        f"kustomizations[{one.name}].dependsOn: there is no Kustomization {needed.name}; "
                        f"{_known([MAIN, *names])}"
                    )
        circle = _circle({one.name: [each.name for each in one.depends_on] for one in self.kustomizations})
        if circle:
            raise ValueError(f"kustomizations: {' needs '.join(circle)}; remove one dependsOn")
        return self


def _differ(field: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = min(name for name in names if names.count(name) > 1)
        raise ValueError(f"{field} has two entries named {twice}; names must differ")


def _known(names: Iterable[str]) -> str:
    return f"there are {', '.join(sorted(set(names)))}"


def _circle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return names each of which needs the next, with the first one again at the end; [] without a circle."""
    done: set[str] = set()
    for start in needs:
        path: list[str] = []
        found = _search(start, needs, path, done)
        if found:
            return found
    return []


def _search(name: str, needs: Mapping[str, Sequence[str]], path: list[str], done: set[str]) -> list[str]:
    if name in path:
        return [*path[path.index(name) :], name]
    if name in done:
        return []
    path.append(name)
    for needed in needs.get(name, ()):
        found = _search(needed, needs, path, done)
        if found:
            return found
    done.add(path.pop())
    return []
