"""Flux as Microsoft's extension: its documents in Azure, and what Azure shows of them. Pure.

Names and meanings are those of the models of azure-mgmt-kubernetesconfiguration-extensions (2025-03-01) and
-fluxconfigurations (2025-04-01). A configuration is one source with its Kustomizations. On the cluster, the
source has the name of the configuration, and a Kustomization that name, a hyphen and its own
(learn.microsoft.com/azure/azure-arc/kubernetes/conceptual-gitops-flux2).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from shared.json_tree import Json
from shared.kubernetes.flux_objects import FACTS, KUSTOMIZATION, NAMESPACE, SOURCE, GitCredentials
from shared.kubernetes.flux_readiness import FluxFailure, Progressing, Readiness, Ready, Suspended, message_of
from shared.kubernetes.health import ObjectReport, time_of
from shared.kubernetes.inside import PREFIX
from shared.kubernetes.sync_objects import git_ref, has_app_credentials
from shared.language.desired import Desired
from shared.language.model.cluster.flux import EXTENSION, Flux, FluxExtension
from shared.language.model.cluster.flux_source import BUCKET, GIT, MAIN, OCI, FluxSource, seconds_of
from shared.language.model.cluster.kustomization import Kustomization, PostBuild
from shared.resource_ids import ObjectRef

EXTENSION_TYPE = "microsoft.flux"
"""The type of the extension."""
_AZURE_NAMES = {"azure": "Azure", "github": "GitHub", "generic": "Generic"}
_OPTIONAL = (
    *("repositoryRef", "localAuthRef", "provider", "useWorkloadIdentity", "serviceAccountName"),
    *("layerSelector", "retryIntervalInSeconds", "insecure"),
)
"""What a body has only where git names it, and Azure shows as nothing where a body leaves it out. Of these,
git never has ``insecure``, with which a source is pulled without TLS."""
_ENUMS = ("extensionType", "provider", "releaseTrain", "scope", "sourceKind")


def extension_body(flux: Flux, live: Json | None) -> dict[str, Any]:
    """Return the extension; settings of an existing one that git does not name stay."""
    wanted = flux.extension or FluxExtension()
    properties: dict[str, Any] = {
        "extensionType": EXTENSION_TYPE,
        "autoUpgradeMinorVersion": wanted.version is None,
        "scope": {"cluster": {"releaseNamespace": NAMESPACE}},
        "configurationSettings": {**_settings(live), **wanted.configuration_settings},
    }
    if wanted.version is not None:
        properties["version"] = wanted.version
    if wanted.release_train is not None:
        properties["releaseTrain"] = wanted.release_train
    # Azure uses the identity to let the extension's agents report; one that exists keeps its own.
    identity = (live or {}).get("identity") or {"type": "SystemAssigned"}
    return {"identity": {"type": identity.get("type", "SystemAssigned")}, "properties": properties}


def _settings(live: Json | None) -> dict[str, str]:
    return dict(((live or {}).get("properties") or {}).get("configurationSettings") or {})


def configuration_bodies(
    desired: Desired, fleet: str, facts: Mapping[str, str] | None
) -> dict[str, dict[str, Any]]:
    """Return the configurations by name, the one of the first source first.

    ``facts`` are those of the cluster: a Kustomization that takes variables from their ConfigMap gets them as
    its own, because nobody applies that ConfigMap.
    """
    flux = desired.spec.flux
    bodies: dict[str, dict[str, Any]] = {}
    for source in (desired.main_source(fleet), *flux.sources):
        bodies[source.name] = _body(*_section(source), _source(source))
    others = [kustomization for kustomization in flux.kustomizations if kustomization.name != MAIN]
    for kustomization in (flux.first, *others):
        owner = bodies[kustomization.source or MAIN]["properties"]
        owner["kustomizations"][kustomization.name] = _kustomization(kustomization, facts or {})
    return bodies


def configuration_names(document: Json) -> frozenset[str]:
    """Return the names of the configurations of a cluster's stored form, none without the extension."""
    flux = document["spec"]["flux"]
    if flux.get("install") != EXTENSION:
        return frozenset()
    return frozenset({MAIN, *(source["name"] for source in flux.get("sources") or ())})


def configurations_to_remove(before: Json, after: Json, pending: Collection[str]) -> tuple[str, ...]:
    """Return the configurations that ``after`` no longer has: of ``before``, and those not removed yet."""
    return tuple(sorted((configuration_names(before) | {*pending}) - configuration_names(after)))


def uses_app_credentials(flux: Flux, credentials: GitCredentials | None) -> bool:
    """Return whether the first source is pulled with the git credentials of the app."""
    return credentials is not None and has_app_credentials(flux) and credentials.serve(flux.repository)


def with_user(body: Json, credentials: GitCredentials) -> dict[str, Any]:
    """Return a configuration with the user name of the credentials, which Azure shows."""
    properties = body["properties"]
    repository = {**properties["gitRepository"], "httpsUser": credentials.username}
    return {**body, "properties": {**properties, "gitRepository": repository}}


def with_key(body: Json, credentials: GitCredentials) -> dict[str, Any]:
    """Return a configuration with the secret of the credentials, which Azure never shows. Do not store it."""
    key = base64.b64encode(credentials.password.encode()).decode()
    return {
        **body,
        "properties": {**body["properties"], "configurationProtectedSettings": {"httpsKey": key}},
    }


def changed_fields(body: Json, live: Json, *, facts: bool = True) -> list[str]:
    """Return the fields in which Azure shows another configuration, or extension, than ``body``.

    Azure fills in what a body leaves out, but what git can take back (``_OPTIONAL``). Without ``facts``,
    variables with the facts of the cluster do not count: they follow with the next job.
    """
    wanted, found = dict(body["properties"]), dict(live.get("properties") or {})
    applied, shown = wanted.pop("kustomizations", {}), found.pop("kustomizations", None) or {}
    paths = list(_differing(wanted, found, ""))
    paths += [f"kustomizations[{name}]" for name in applied.keys() ^ shown.keys()]
    for name in applied.keys() & shown.keys():
        ours, other = dict(applied[name]), shown[name] or {}
        post_build, at = ours.pop("postBuild", None), f"kustomizations[{name}]"
        paths += _differing(ours, other, at)
        if _variables(post_build, facts=facts) != _variables(other.get("postBuild"), facts=facts):
            paths.append(f"{at}.postBuild")
    return sorted(paths)


def _differing(wanted: Json, found: Json, at: str) -> Iterator[str]:
    yield from (".".join(filter(None, (at, key))) for key in _OPTIONAL if _is_left_over(key, wanted, found))
    for key, value in wanted.items():
        path, other = ".".join(filter(None, (at, key))), found.get(key)
        if key == "repositoryRef":  # what somebody adds to it counts for more than a branch
            if value != {name: document for name, document in (other or {}).items() if document is not None}:
                yield path
        elif isinstance(value, Mapping):
            yield from _differing(value, other or {}, path)
        elif _plain(key, value) != _plain(key, other):
            yield path


def _is_left_over(key: str, wanted: Json, found: Json) -> bool:
    return key not in wanted and _plain(key, found.get(key)) not in (None, "generic")


def _plain(key: str, value: Any) -> Any:
    """Return a value as it counts: Azure shows null for what is empty, and writes its enums as it likes."""
    return value.lower() if key in _ENUMS and isinstance(value, str) else value or None


def _variables(post_build: Json | None, *, facts: bool) -> tuple[dict[str, str], list[Json]]:
    given = post_build or {}
    names = given.get("substitute") or {}
    counted = {name: value for name, value in names.items() if facts or not name.startswith(PREFIX)}
    fields, sources = ("kind", "name", "optional"), given.get("substituteFrom") or ()
    return counted, [{field: source.get(field) or False for field in fields} for source in sources]


def _body(kind: str, section: str, source: Json) -> dict[str, Any]:
    return {
        "properties": {
            "scope": "cluster",
            "namespace": NAMESPACE,
            "sourceKind": kind,
            "suspend": False,
            section: source,
            "kustomizations": {},
        }
    }


def _section(source: FluxSource) -> tuple[str, str]:
    """Return the kind of a source in Azure, and the property with it."""
    if source.kind == GIT:
        return GIT, "gitRepository"
    if source.kind == OCI:
        return OCI, "ociRepository"
    return ("AzureBlob", "azureBlob") if source.provider == "azure" else (BUCKET, "bucket")


def _source(source: FluxSource) -> dict[str, Any]:
    interval = {"syncIntervalInSeconds": int(seconds_of(source.interval))}
    secret = source.secret_ref.name if source.secret_ref else None
    if source.kind == GIT:
        ref = git_ref(source)
        return {"url": source.url, "repositoryRef": ref, **interval, **_signed_in(source.provider, secret)}
    local = {"localAuthRef": secret} if secret else {}
    if source.kind == OCI:
        given = {"tag": source.tag, "semver": source.semver, "digest": source.digest}
        ref = {name: value for name, value in given.items() if value is not None}
        azure = {"useWorkloadIdentity": True} if source.provider == "azure" else {}
        account = {"serviceAccountName": source.service_account_name} if source.service_account_name else {}
        selector = source.layer_selector
        layer = {"layerSelector": selector.model_dump(by_alias=True, exclude_none=True)} if selector else {}
        return {
            "url": source.url,
            **({"repositoryRef": ref} if ref else {}),
            **interval,
            **local,
            **azure,
            **account,
            **layer,
        }
    container = "containerName" if source.provider == "azure" else "bucketName"
    return {"url": source.endpoint, container: source.bucket_name, **interval, **local}


def _signed_in(provider: str | None, secret: str | None) -> dict[str, str]:
    local = {"localAuthRef": secret} if secret else {}
    return local | ({"provider": _AZURE_NAMES[provider]} if provider else {})


def _kustomization(kustomization: Kustomization, facts: Mapping[str, str]) -> dict[str, Any]:
    interval = int(seconds_of(kustomization.interval))
    path = kustomization.path or "./"
    body: dict[str, Any] = {
        "path": path if path.startswith("./") else f"./{path}",
        "dependsOn": [needed.name for needed in kustomization.depends_on],
        "syncIntervalInSeconds": interval,
        "timeoutInSeconds": int(seconds_of(kustomization.timeout)) if kustomization.timeout else interval,
        "prune": kustomization.prune,
        "force": bool(kustomization.force),
        "wait": bool(kustomization.wait),
    }
    if kustomization.retry_interval is not None:
        body["retryIntervalInSeconds"] = int(seconds_of(kustomization.retry_interval))
    if kustomization.post_build is not None:  # also an empty one has Flux replace variables
        body["postBuild"] = _post_build(kustomization.post_build, facts)
    return body


def _post_build(given: PostBuild, facts: Mapping[str, str]) -> dict[str, Any]:
    """Return the variables; those of ``substitute`` count for more, as they do for Flux."""
    of_facts = FACTS.kind, FACTS.name
    named = [(ref.kind, ref.name) for ref in given.substitute_from]
    substitute = {**(facts if of_facts in named else {}), **given.substitute}
    others = [
        {"kind": ref.kind, "name": ref.name, "optional": ref.optional}
        for ref in given.substitute_from
        if (ref.kind, ref.name) != of_facts
    ]
    return {"substitute": substitute} | ({"substituteFrom": others} if others else {})


# What Azure shows of a configuration of the Flux extension: its objects, and how far each one is. Pure.
#
# The extension's agents report the objects that a configuration created, and those that these created in
# turn, with the conditions that Flux gave them (``ObjectStatusDefinition`` of azure-rest-api-specs,
# fluxConfigurations 2025-04-01). ``systemData.lastModifiedAt`` is when somebody wrote the configuration
# last, and ``statusUpdatedAt`` when the agents reported last, both by Azure's clock.

UNREPORTED = Progressing("the agents of the extension have not reported it yet")
_APIS: Mapping[str, str] = {
    **dict.fromkeys(("GitRepository", "OCIRepository", "Bucket"), SOURCE.api_version),
    KUSTOMIZATION.kind: KUSTOMIZATION.api_version,
    "HelmRelease": "helm.toolkit.fluxcd.io/v2",
}
_REVISION = re.compile(r"revision:? '?([^\s']+)", re.IGNORECASE)
"""Where the conditions of Flux have the revision that a source stored, or that a Kustomization applied."""


def reported(live: Json) -> list[ObjectReport]:
    """Return the objects that Azure shows of a configuration."""
    statuses = (live.get("properties") or {}).get("statuses") or ()
    return [_reported(status) for status in statuses if status]


def _reported(status: Json) -> ObjectReport:
    kind = str(status.get("kind") or "")
    ref = ObjectRef(_APIS.get(kind, ""), kind, str(status.get("name")), str(status.get("namespace") or ""))
    conditions = status.get("statusConditions") or ()
    ready: Json = next((condition for condition in conditions if condition.get("type") == "Ready"), {})
    return ObjectReport(ref, _state(status, ready), time_of(ready.get("lastTransitionTime")))


def _state(status: Json, ready: Json) -> Readiness:
    reason, message = str(ready.get("reason") or ""), message_of(ready)
    match status.get("complianceState"):
        case "Compliant":
            found = _REVISION.search(message)
            return Ready(found[1] if found else "")
        case "Suspended":
            return Suspended()
        case "Non-Compliant":
            return FluxFailure(reason, message)
    return Progressing(f"{reason}: {message}") if ready else UNREPORTED


def synced_revision(live: Json) -> str:
    """Return what the source of a configuration fetched, "" for nothing yet."""
    return str((live.get("properties") or {}).get("sourceSyncedCommitId") or "")


def reported_revision(live: Json) -> str:
    """Return what the first Kustomization of the main configuration applied, "" where its state names none.

    Azure has it in the message of a Kustomization that is Ready alone.
    """
    main = KUSTOMIZATION.kind, f"{MAIN}-{MAIN}"
    states = (found.state for found in reported(live) if (found.ref.kind, found.ref.name) == main)
    return next((state.revision for state in states if isinstance(state, Ready)), "")


def is_outdated(live: Json) -> bool:
    """Return whether the agents have not reported since somebody wrote the configuration."""
    updated = (live.get("properties") or {}).get("statusUpdatedAt")
    modified = (live.get("systemData") or {}).get("lastModifiedAt")
    return not updated or time_of(updated) < time_of(modified)
