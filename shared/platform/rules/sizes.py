"""Objects that are too large to be stored.

Sources: etcd refuses a request of more than 1.5 MiB (``--max-request-bytes``, etcd.io/docs/latest/dev-guide/
limit); ``TotalAnnotationSizeLimitB`` in ``pkg/api/validation/objectmeta.go`` of k8s.io/apimachinery;
``MaxSecretSize`` in ``pkg/apis/core/types.go`` of Kubernetes, which ConfigMaps have too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from shared.platform.inventory import ObjectId
from shared.platform.rules.finding import ClusterPlatform, Finding, full_name, mapping

ETCD_BYTES = 3 * 512 * 1024
ANNOTATION_BYTES = 256 * 1024
DATA_BYTES = 1024 * 1024


def too_large(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the objects over one of the limits."""
    for owner, object_id, built in platform.objects:
        for path, what, size, limit in _sizes(object_id, built.manifest):
            if size > limit:
                yield Finding(
                    built.file or owner.file,
                    object_id,
                    path,
                    f"{object_id.kind} {full_name(object_id)}: {what} {size:,} bytes, and Kubernetes takes "
                    f"at most {limit:,}; make it smaller, or split it",
                )


def _sizes(
    object_id: ObjectId, manifest: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], str, int, int]]:
    annotations = mapping(mapping(manifest.get("metadata")).get("annotations"))
    total = sum(_bytes(key) + _bytes(value) for key, value in annotations.items())
    yield ("metadata", "annotations"), "its annotations have", total, ANNOTATION_BYTES
    if (object_id.group, object_id.kind) in (("", "ConfigMap"), ("", "Secret")):
        yield ("data",), "its data have", _data_bytes(manifest), DATA_BYTES
    elif _least_bytes(manifest) > ETCD_BYTES:
        size = len(json.dumps(manifest, ensure_ascii=False, separators=(",", ":"), default=str).encode())
        yield (), "it has", size, ETCD_BYTES


def _data_bytes(manifest: Mapping[str, Any]) -> int:
    plain = sum(
        _bytes(value) for field in ("data", "stringData") for value in mapping(manifest.get(field)).values()
    )
    encoded = mapping(manifest.get("binaryData")).values()
    if manifest.get("kind") == "Secret":
        encoded = mapping(manifest.get("data")).values()
        plain = sum(_bytes(value) for value in mapping(manifest.get("stringData")).values())
    return plain + sum(_decoded_bytes(value) for value in encoded)


def _decoded_bytes(value: Any) -> int:
    text = "".join(str(value).split())
    return len(text) * 3 // 4 - text[-2:].count("=")


def _bytes(value: Any) -> int:
    return len(str(value).encode("utf-8", "surrogatepass"))


def _least_bytes(value: Any) -> int:
    """Return the bytes that a value has in any form of storing it: those of its strings."""
    if isinstance(value, str):
        return _bytes(value)
    if isinstance(value, Mapping):
        return sum(map(_least_bytes, value.values()))
    return sum(map(_least_bytes, value)) if isinstance(value, list) else 0
