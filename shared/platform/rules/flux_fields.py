"""What Flux's controllers refuse of their objects beyond a schema, and what they do without a word.

Sources: source-controller ``internal/helm/repository`` GetChartVersion and Masterminds/semver
``constraints.go`` (versions), fluxcd/pkg ``git/options.go`` Validate (an ssh address without a key:
fluxcd/flux2-kustomize-helm-example#56), "HelmRepository" and "HelmRelease" of fluxcd.io; fluxcd/pkg
``ssa/manager_apply.go`` and kustomize-controller ``kustomization_controller.go`` (annotations, whose
letter case does not count).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shared.language.resolve.problems import Path, nearest
from shared.platform.changes.objects import (
    HELM,
    IMAGE,
    KUSTOMIZE,
    SOURCE,
    is_open,
    is_release,
    mapping_at,
    objects_in,
    value_at,
)
from shared.platform.inventory import ObjectId
from shared.platform.rules.finding import (
    ClusterPlatform,
    Files,
    Finding,
    full_name,
    is_custom,
    is_kind,
    named,
)
from shared.platform.rules.references import hint_for
from shared.platform.rules.silent_builds import named_files
from shared.platform.schemas.fields import Fault, described
from shared.platform.source.documents import UnreadableFile, documents
from shared.platform.source.tree import folder_of


def _chart_repository(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    spec = mapping_at(manifest, "spec")
    url, is_oci = str(spec.get("url") or ""), spec.get("type") == "oci"
    if url and not (is_open(url) or is_open(spec.get("type"))) and is_oci != url.startswith("oci://"):
        wanted = "an address with oci://" if is_oci else "type: oci, which an address with oci:// needs"
        yield ("spec", "url"), f"no chart is ever read from {url}; write {wanted}"


def _renderers(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    for number, renderer in objects_in(value_at(manifest, "spec.postRenderers")):
        for place, patch in objects_in(value_at(renderer, "kustomize.patches")):
            try:
                documents(str(patch.get("patch") or "").encode())
            except UnreadableFile as error:
                path: Path = ("spec", "postRenderers", number, "kustomize", "patches", place, "patch")
                yield path, f"is no YAML, so helm-controller renders nothing of this release: {error.message}"


def _values(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    values = value_at(manifest, "spec.values")
    if values is not None and not isinstance(values, Mapping) and not is_open(values):
        hint = "; remove the | behind values:" if isinstance(values, str) and ":" in values else ""
        yield ("spec", "values"), f"must be an object, got {described(values)}{hint}"


_PART = r"(?:[0-9]+|[xX*])"
_VERSION = rf"v?{_PART}(?:\.{_PART}){{0,2}}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?"
_OPERATOR = r"(?:=|!=|>=|=>|<=|=<|>|<|~>|~|\^)?"
_TERM = rf"(?:{_VERSION}\s+-\s+{_VERSION}|{_OPERATOR}\s*{_VERSION})"
_RANGE = re.compile(rf"\s*{_TERM}(?:(?:\s*,\s*|\s+){_TERM})*\s*")
_LONGEST = 200


def _of_chart(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    chart = mapping_at(manifest, "spec.chart.spec")
    if value_at(chart, "sourceRef.kind") == "HelmRepository":
        yield from _range(chart.get("version"), ("spec", "chart", "spec", "version"))


def _of_ref(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _range(value_at(manifest, "spec.ref.semver"), ("spec", "ref", "semver"))


def _range(version: Any, path: Path) -> Iterator[Fault]:
    """Yield a text that is no version and no range of versions."""
    if not isinstance(version, str) or not version or is_open(version) or len(version) > _LONGEST:
        return
    if not all(_RANGE.fullmatch(part) for part in version.split("||")):
        yield (
            path,
            f"{version} is no version, such as 1.2.3, and no range of versions, such as 1.x or >=1.2 <2",
        )


def _key_of_ssh(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    spec = mapping_at(manifest, "spec")
    if str(spec.get("url") or "").startswith("ssh://") and not spec.get("secretRef"):
        yield (
            ("spec", "url"),
            "an address with ssh:// needs a key, and so it never becomes Ready; add secretRef, with a Secret "
            "that has identity and known_hosts",
        )


OF_FLUX: Mapping[tuple[str, str], tuple[Callable[[Mapping[str, Any]], Iterator[Fault]], ...]] = {
    (HELM, "HelmRelease"): (_renderers, _values, _of_chart),
    (SOURCE, "HelmRepository"): (_chart_repository,),
    (SOURCE, "GitRepository"): (_key_of_ssh, _of_ref),
    (SOURCE, "OCIRepository"): (_of_ref,),
}


# Annotations

_KNOWN: Mapping[str, tuple[str, ...]] = {
    "prune": ("disabled",),
    "reconcile": ("disabled",),
    "substitute": ("disabled",),
    "decrypt": ("disabled",),
    "force": ("enabled",),
    "ssa": ("Override", "Merge", "IfNotPresent", "Ignore"),
}
_PLAIN = ("enabled", "disabled", "")
"""What says in so many words that an annotation is not there."""
_OF_FLUX_1 = "fluxcd.io/ignore"


def unknown_annotations(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each annotation or label for Flux that Flux does not know."""
    seen: dict[str, list[tuple[Finding, str]]] = {}
    for owned in platform.objects:
        for part in ("annotations", "labels"):
            for key, value in mapping_at(owned.manifest, ("metadata", part)).items():
                message = _unknown(str(key), str(value))
                if message:
                    finding = owned.finding(("metadata", part, str(key)), message, is_note=True)
                    seen.setdefault(message, []).append((finding, str(owned.id)))
    for message, having in seen.items():
        finding, objects = having[0][0], named([name for _, name in having])
        yield Finding(finding.file, finding.of, finding.path, f"{objects}: {message}", is_note=True)


def _unknown(key: str, value: str) -> str:
    """Return what is wrong with an annotation or a label, "" for nothing."""
    if key == _OF_FLUX_1 and value.lower() != "false":
        return (
            f"{key} is of Flux 1, and Flux 2 applies this all the same; write {KUSTOMIZE}/reconcile: disabled"
        )
    prefix, _, name = key.partition("/")
    if prefix != KUSTOMIZE or is_open(value):
        return ""
    known = _KNOWN.get(name)
    if known is None:
        near = nearest(name, [*_KNOWN])
        return f"{key} is nothing to Flux; did you mean {KUSTOMIZE}/{near}?" if near else ""
    allowed = {text.lower() for text in (*known, *(_PLAIN if len(known) == 1 else ()))}
    if value.lower() in allowed:
        return ""
    return f"{key}: {value} is nothing to Flux, so it acts as without; write {' or '.join(known)}"


# Markers of images

_MARKER = re.compile(rb'\{\s*"\$imagepolicy"\s*:\s*"([^":\s]+):([^":\s]+)(?::[a-z]+)?"\s*\}')
_POLICY, _AUTOMATION = "ImagePolicy", "ImageUpdateAutomation"


def idle_markers(platform: ClusterPlatform, files: Files) -> Iterator[Finding]:
    """Yield a note for each image policy that no file of the platform names, and each marker of no policy.

    An automation reports neither, and updates nothing: a file that was formatted again has lost its
    comments. Files of other clusters may have a marker, so a policy is looked at only where an automation
    writes to a folder that these clusters apply, and only in a namespace whose automations do. Source:
    fluxcd.io, "Automate image updates to Git"; reports: fluxcd/image-automation-controller#159, #214.
    """
    owners = platform.inventory.owners.values()
    own = {str(value_at(owner.spec, "sourceRef.name")) for owner in owners}
    every = list(platform.of_kind(IMAGE, _AUTOMATION))
    automations = [owned for owned in every if str(value_at(owned.spec, "sourceRef.name")) in own]
    others = {owned.id.namespace for owned in every} - {owned.id.namespace for owned in automations}
    updated = [folder_of(str(value_at(owned.spec, "update.path") or "./")) for owned in automations]
    is_read = any(f"{folder}/".startswith(f"{owner.path}/") for folder in updated for owner in owners)
    named_in = dict(_markers(platform, files)) if automations else {}
    for owned in platform.of_kind(IMAGE, _POLICY) if is_read else ():
        is_written = owned.id.namespace not in others
        if is_written and (owned.id.namespace, owned.id.name) not in named_in:
            marker = f'{{"$imagepolicy": "{owned.id.namespace}:{owned.id.name}"}}'
            message = f"no file that Flux applies has the comment {marker}: no automation writes this image"
            yield owned.finding(("metadata", "name"), message, is_note=True)
    for (namespace, name), (file, text) in named_in.items() if platform.is_whole else ():
        policy = ObjectId(IMAGE, _POLICY, namespace, name)
        if policy not in platform.known:
            message = f"there is no {policy}, so no automation writes this image{hint_for(policy, platform)}"
            yield Finding(file, None, (), message, is_note=True, text=text)


def _markers(platform: ClusterPlatform, files: Files) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield the policies that markers name, each with a file that has it and the text there."""
    paths = {owned.built.file: None for owned in platform.objects if owned.built.file}
    for owner in platform.inventory.owners.values():
        paths |= dict.fromkeys(named_files(owner, files))
    for path in paths:
        for found in _MARKER.finditer(files(path) or b""):
            yield (found[1].decode(), found[2].decode()), (path, found[0].decode())


# What a Kustomization waits for longer than it does

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_OF_RELEASE = "5m"
"""How long helm-controller waits for a release without a ``timeout``."""
_LATE_CLASSES = ("", "default", "managed", "managed-csi", "managed-premium", "managed-csi-premium")
"""Classes of AKS that bind a claim once a pod uses it, the default one among them."""


def impatient_waits(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each Kustomization that waits for what takes longer, or is never ready.

    Its ``timeout`` is its ``interval`` by default (fluxcd.io, "Kustomization", Timeout). Reports:
    fluxcd/kustomize-controller#709 (a release), argoproj/argo-cd#29205 (a claim that no pod uses; kstatus
    ``pvcConditions``: it is in progress until it is bound). A custom object next to a claim may use it.
    """
    used = {
        (owned.id.namespace, str(value_at(volume, "persistentVolumeClaim.claimName")))
        for owned, pod in platform.pods
        for _, volume in objects_in(pod.spec.get("volumes"))
    }
    by_operators = {owned.id.namespace for owned in platform.objects if is_custom(owned.id.group)}
    for owner in platform.inventory.owners.values():
        if not owner.spec.get("wait") or owner.is_suspended:
            continue
        given = str(owner.spec.get("timeout") or owner.spec.get("interval") or "")
        own = {name: built.manifest for name, built in owner.objects.items()}
        longer = [
            f"{name} ({timeout})"
            for name, manifest in own.items()
            if is_release(name) and not value_at(manifest, "spec.suspend")
            for timeout in [str(value_at(manifest, "spec.timeout") or _OF_RELEASE)]
            if 0 < _seconds(given) < _seconds(timeout)
        ]
        idle = [
            str(name)
            for name, claim in own.items()
            if (name.namespace, name.name) not in used
            and name.namespace not in by_operators
            and _binds_late(name, claim, platform)
        ]
        if longer:
            message = (
                f"Kustomization {full_name(owner.id)} waits {given}, and so fails while {named(longer)} may "
                "still be installed or upgraded; write a longer spec.timeout"
            )
            yield Finding(owner.file, owner.id, ("spec", "timeout"), message, is_note=True)
        if idle and platform.is_sure:
            message = (
                f"Kustomization {full_name(owner.id)} waits for {named(idle)}, which AKS binds once a pod "
                "uses it, and no pod here does: it is never Ready; add the pod, or write healthChecks instead"
            )
            yield Finding(owner.file, owner.id, ("spec", "wait"), message, is_note=True)


def _binds_late(name: ObjectId, claim: Mapping[str, Any], platform: ClusterPlatform) -> bool:
    """Return whether a claim stays pending until a pod uses it."""
    if not is_kind(name, "", "PersistentVolumeClaim") or value_at(claim, "spec.volumeName"):
        return False
    given = value_at(claim, "spec.storageClassName")
    if given == "":  # one that somebody created for it
        return False
    wanted = str(given or "")
    known = platform.known.get(ObjectId("storage.k8s.io", "StorageClass", "", wanted))
    if known is not None:
        return bool(value_at(known.manifest, "volumeBindingMode") == "WaitForFirstConsumer")
    return wanted in _LATE_CLASSES and not platform.is_attached


def _seconds(text: str) -> float:
    """Return the seconds of a duration as Go has it, 0 for no duration."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)", text)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
