"""The objects of bootstrap secrets, and what a Secret on a cluster shows of itself. Pure.

Which versions of the vault's secrets a Secret has is in an annotation. The digest, which says that nothing is
to be written, covers that annotation and everything else but the values: from a digest of a value, somebody
could guess it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from shared.json_tree import Json, digest_of
from shared.kubernetes.field_ownership import data_changed_by_others
from shared.kubernetes.flux_objects import DIGEST, NAMESPACE
from shared.language.model.cluster.grants import BootstrapSecret
from shared.resource_ids import ObjectRef

VERSIONS = "roadstead.dev/vault-versions"
"""Annotation of a Secret: for each key the vault, its secret and the version, as JSON."""
SECRETS_INVENTORY = ObjectRef("v1", "ConfigMap", "roadstead-secrets", NAMESPACE)
"""The ConfigMap that lists the Secrets that Roadstead has applied, by their names."""
_TYPE = "Opaque"


def secret_ref(secret: BootstrapSecret) -> ObjectRef:
    """Return the reference of the Secret."""
    return ObjectRef("v1", "Secret", secret.called, secret.namespace)


def secret_object(
    secret: BootstrapSecret, values: Mapping[str, str], versions: Mapping[str, str]
) -> dict[str, Any]:
    """Return the Secret with a value, and the version that it is of, for each key; a binary one is base64."""
    sources = {key: f"{secret.vault.lower()}/{name}/{versions[key]}" for key, name in secret.keys.items()}
    annotations = {VERSIONS: json.dumps(sources, sort_keys=True)}
    metadata: dict[str, Any] = {"name": secret.called, "namespace": secret.namespace}
    if secret.labels:
        metadata["labels"] = dict(secret.labels)
    metadata["annotations"] = annotations
    shape = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": secret.type}
    binary = {"binary": sorted(secret.binary)} if secret.binary else {}
    annotations = {**annotations, DIGEST: digest_of({**shape, **binary})}
    data = {key: _encoded(values[key], binary=key in secret.binary) for key in secret.keys}
    return {**shape, "metadata": {**metadata, "annotations": annotations}, "data": data}


def is_base64(value: str) -> bool:
    """Return whether a value is base64; line ends, as ``base64`` writes them, do not count."""
    try:
        base64.b64decode("".join(value.split()), validate=True)
    except ValueError:
        return False
    return bool(value.strip())


def _encoded(value: str, *, binary: bool) -> str:
    """Return a value as a Secret has it: base64 of the text, or of bytes that the vault has so already."""
    return "".join(value.split()) if binary else base64.b64encode(value.encode()).decode()


def namespace_object(name: str) -> Json:
    """Return a namespace of which we own nothing: whoever applies it too owns what it has."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def versions_in(secret: BootstrapSecret, live: Json) -> Mapping[str, str] | None:
    """Return the version of each key that a Secret has, None where it was applied for another entry."""
    annotations = live["metadata"].get("annotations") or {}
    try:
        sources = json.loads(annotations.get(VERSIONS) or "{}")
        found = {key: str(sources[key]).rpartition("/") for key in secret.keys}
    except (ValueError, KeyError, TypeError):
        return None
    versions = {key: version for key, (_, _, version) in found.items()}
    blank = dict.fromkeys(secret.keys, "")
    expected = secret_object(secret, blank, versions)["metadata"]["annotations"]
    same = all(annotations.get(name) == expected[name] for name in (VERSIONS, DIGEST))
    return versions if same else None


def type_of(live: Json) -> str:
    """Return the type of a Secret, as Kubernetes fills it in."""
    return str(live.get("type") or _TYPE)


def has_values(live: Json, manifest: Json) -> bool:
    """Return whether a Secret has the type and exactly the values of ours."""
    return bool(type_of(live) == manifest["type"] and (live.get("data") or {}) == manifest["data"])


def fields_of_others(secret: BootstrapSecret, live: Json) -> list[str]:
    """Return the fields of the content that somebody else has set, or removed; no value is looked at."""
    return [f"data.{name}" for name in sorted(data_changed_by_others(live, secret.keys.keys()))]
