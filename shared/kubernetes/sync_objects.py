"""What Flux pulls and applies on a cluster, and what it reports, as objects.

Names and defaults of the first source and Kustomization are those of ``flux bootstrap``: both are called
flux-system, Flux fetches the source every minute, reconciles the Kustomization every ten minutes, and prunes
what git no longer has. The others are in the same namespace, under their names in the manifest.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from shared.json_tree import Json
from shared.kubernetes.field_ownership import owned_annotation
from shared.kubernetes.flux_lockdown import PLATFORM_ACCOUNT, SOURCE_ACCOUNT, is_locked_down, keeps_identity
from shared.kubernetes.flux_objects import (
    CREDENTIALS,
    DIGEST,
    FACTS,
    KUSTOMIZATION,
    NAMESPACE,
    SOURCE,
    GitCredentials,
    stamped,
)
from shared.kubernetes.flux_readiness import REQUESTED_AT
from shared.language.desired import Desired
from shared.language.model.cluster.flux import Flux
from shared.language.model.cluster.flux_source import GIT, MAIN, OCI, FluxSource
from shared.language.model.cluster.kustomization import Kustomization
from shared.resource_ids import ObjectRef

# What has Flux report to Roadstead: a Provider and an Alert of its notification-controller. Pure.
#
# Their fields are those of ``notification.toolkit.fluxcd.io/v1beta3``. A Provider of the type ``generic-
# hmac`` posts each event as JSON, and signs the body with the key ``token`` of its Secret.

_API = "notification.toolkit.fluxcd.io/v1beta3"
PROVIDER = ObjectRef(_API, "Provider", "roadstead", NAMESPACE)
ALERT = ObjectRef(_API, "Alert", "roadstead", NAMESPACE)
REPORTING = ("GitRepository", "OCIRepository", "Bucket", "Kustomization", "HelmRelease")
"""The kinds whose events are reported, of all names in the namespace of Flux."""
PATH = "/api/flux/"
"""Where the app receives the events of a cluster, before its name."""


def event_objects(desired: Desired, app_url: str) -> tuple[dict[str, Any], ...]:
    """Return the Provider and the Alert, none where the manifest does not switch events on."""
    events = desired.spec.flux.events
    if events is None:
        return ()
    provider = {
        "type": "generic-hmac",
        "address": f"{app_url}{PATH}{desired.name}",
        "secretRef": {"name": events.secret_ref.name},
    }
    alert = {
        "providerRef": {"name": PROVIDER.name},
        "eventSeverity": "info",
        "eventSources": [{"kind": kind, "name": "*"} for kind in REPORTING],
    }
    return _event_object(PROVIDER, provider), _event_object(ALERT, alert)


def _event_object(ref: ObjectRef, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": ref.name, "namespace": ref.namespace}
    return stamped({"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": spec})


SOURCE_API, KUSTOMIZE_API = SOURCE.api_version, KUSTOMIZATION.api_version
SOURCE_KINDS = ("GitRepository", "OCIRepository", "Bucket")
_SOURCE_FIELDS = ("url", "ref", "endpoint", "bucketName", "prefix", "path", "sourceRef")
"""The fields of a sync object that determine which manifests Flux applies, and so which ones it prunes."""


def sync_objects(
    desired: Desired,
    fleet: str,
    credentials: GitCredentials | None,
    *,
    facts: Mapping[str, str] | None = None,
    request: str = "",
) -> tuple[dict[str, Any], ...]:
    """Return the Secret (if there are credentials for the source), the facts, sources and Kustomizations.

    Sources come before the Kustomizations that use them. A pin is a branch of the ``fleet``. ``facts`` are
    those of the cluster, None to leave their ConfigMap out. ``request`` asks Flux to reconcile what it pulls
    and applies now; another value asks again.
    """
    flux = desired.spec.flux
    objects: list[dict[str, Any]] = []
    with_secret = credentials is not None and has_app_credentials(flux) and credentials.serve(flux.repository)
    if with_secret and credentials is not None:
        objects.append(_secret(credentials))
    if facts is not None:
        objects.append(facts_object(facts))
    main = desired.main_source(fleet)
    of_app = {"secretRef": {"name": NAMESPACE}} if with_secret else {}
    named = keeps_identity(desired)
    objects.append(_object(source_ref(main), _pulled(main, named) | of_app, request))
    objects += [_object(source_ref(source), _pulled(source, named), request) for source in flux.sources]
    objects += [_object(ref, spec, request) for ref, spec in kustomizations(desired)]
    return tuple(objects)


def kustomizations(desired: Desired) -> Iterator[tuple[ObjectRef, dict[str, Any]]]:
    """Yield the Kustomizations of a cluster, each with its spec; the first one comes first."""
    flux, locked, named = desired.spec.flux, is_locked_down(desired), keeps_identity(desired)
    kinds = {MAIN: flux.kind, **{source.name: source.kind for source in flux.sources}}
    others = [kustomization for kustomization in flux.kustomizations if kustomization.name != MAIN]
    for kustomization in (flux.first, *others):
        ref = ObjectRef(KUSTOMIZE_API, KUSTOMIZATION.kind, kustomization.name, NAMESPACE)
        spec = _kustomization(kustomization, kinds)
        if locked:
            spec.setdefault("serviceAccountName", PLATFORM_ACCOUNT)
        if named and "decryption" in spec:
            spec["decryption"].setdefault("serviceAccountName", PLATFORM_ACCOUNT)
        yield ref, spec


def as_requested_before(manifest: Json, live: Json | None) -> dict[str, Any]:
    """Return a sync object without a request of its own: with the one that an earlier job of ours left.

    The digest of such an object is over that request, which somebody may have replaced since. So it is taken
    from the cluster too, and the fields decide whether anything differs.
    """
    metadata = manifest["metadata"]
    kept = {name: owned_annotation(live, name) for name in (DIGEST, REQUESTED_AT)} if live else {}
    ours = {name: value for name, value in kept.items() if value is not None}
    annotations = {**(metadata.get("annotations") or {}), **ours}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def has_app_credentials(flux: Flux) -> bool:
    """Return whether Flux pulls the first source with the git credentials of the app, if these serve it."""
    return flux.kind == GIT and flux.provider is None and flux.secret_ref is None


def source_ref(source: FluxSource) -> ObjectRef:
    """Return the reference of a source's object."""
    return ObjectRef(SOURCE_API, source.kind, source.name, NAMESPACE)


def source_difference(manifest: Json, unpinned: Json, live: Json | None) -> list[str]:
    """Return the fields in which an existing sync object selects other manifests than ours would.

    Flux would prune what the old source has and the new one lacks. ``unpinned`` is ours without a pin: to pin
    what has followed the branch is no difference.
    """
    if live is None:
        return []
    wanted, plain, existing = manifest["spec"], unpinned["spec"], dict(live.get("spec") or {})
    if "path" in existing:
        existing["path"] = flux_path(existing["path"])
    names = (
        key
        for key in _SOURCE_FIELDS
        if key in wanted and existing.get(key) not in (wanted[key], plain.get(key))
    )
    return [f"Flux {manifest['kind']} {manifest['metadata']['name']}: spec.{name}" for name in names]


def source_spec(source: FluxSource) -> dict[str, Any]:
    """Return a source as Flux's API writes it."""
    spec = _given(
        source,
        *("interval", "url", "endpoint", "bucket_name", "prefix"),
        *("provider", "secret_ref", "service_account_name", "ignore", "layer_selector"),
    )
    if source.kind == GIT:
        spec["ref"] = git_ref(source)
    elif source.kind == OCI:
        ref = _given(source, "tag", "semver", "digest")
        spec |= {"ref": ref} if ref else {}
    return spec


def _pulled(source: FluxSource, named: bool) -> dict[str, Any]:
    """Return a source of the platform; ``named``: it has to name the account as which Flux pulls it."""
    spec = source_spec(source)
    if named and spec.get("provider") == "azure":
        spec.setdefault("serviceAccountName", SOURCE_ACCOUNT)
    return spec


def git_ref(source: FluxSource) -> dict[str, str]:
    """Return what of a repository is pulled: a tag and a range of versions replace the branch."""
    if source.tag is not None:
        return {"tag": source.tag}
    if source.semver is not None:
        return {"semver": source.semver}
    branch = {"branch": source.branch or "main"}
    return branch | ({"commit": source.commit} if source.commit is not None else {})


def _kustomization(kustomization: Kustomization, kinds: Mapping[str, str]) -> dict[str, Any]:
    spec = _given(
        kustomization,
        *("interval", "retry_interval", "timeout", "prune", "wait", "force", "deletion_policy"),
        *("target_namespace", "service_account_name", "decryption"),
        *("depends_on", "health_checks", "patches"),
    )
    if kustomization.post_build is not None:
        spec["postBuild"] = _given(kustomization.post_build, "substitute", "substitute_from")
    source = kustomization.source or MAIN
    spec["path"] = flux_path(kustomization.path or "./")
    spec["sourceRef"] = {"kind": kinds[source], "name": source}
    return spec


def _given(model: Any, *fields: str) -> dict[str, Any]:
    """Return fields of a model as Flux writes them, without those that are not set, or empty."""
    dumped = model.model_dump(by_alias=True, mode="json", exclude_none=True, include=set(fields))
    return {key: value for key, value in dumped.items() if value not in ([], {})}


def flux_path(path: str) -> str:
    """Return a folder as Flux writes it."""
    return path if path.startswith("./") else f"./{path}"


def _object(ref: ObjectRef, spec: Json, request: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": ref.name, "namespace": ref.namespace}
    if request:
        metadata["annotations"] = {REQUESTED_AT: request}
    return stamped({"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": spec})


def facts_object(facts: Mapping[str, str]) -> dict[str, Any]:
    """Return the ConfigMap with the facts of a cluster."""
    metadata = {"name": FACTS.name, "namespace": FACTS.namespace}
    return stamped({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(facts)})


def _secret(credentials: GitCredentials) -> dict[str, Any]:
    values = (credentials.username, credentials.password)
    data = {
        key: base64.b64encode(value.encode()).decode() for key, value in zip(CREDENTIALS, values, strict=True)
    }
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAMESPACE, "namespace": NAMESPACE},
        "type": "Opaque",
        "data": data,
    }
    return stamped(manifest)
