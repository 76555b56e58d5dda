"""What a delete does to an object: preconditions, grace, and the finalizers of the garbage collector; pure.

Source: ``apiserver/pkg/registry/rest/delete.go`` and ``pkg/registry/generic/registry/store.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from localcloud.common.clock import in_seconds
from localcloud.kubernetes.world.api_errors import StatusError, precondition
from localcloud.kubernetes.world.kinds import NAMESPACE, POD, ResourceKind
from localcloud.kubernetes.world.object_store import Deletion, Object

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
PROTECTED = ("default", "kube-system", "kube-public", "kube-node-lease")
_POD_GRACE_SECONDS = 30
_RETURNED = frozenset(
    {
        *("Pod", "Namespace", "Service", "ServiceAccount", "PersistentVolume", "PersistentVolumeClaim"),
        *("ResourceQuota", "StorageClass"),
    }
)


def answers_with_object(kind: ResourceKind) -> bool:
    """Return whether a delete that is done answers with the object, and not with a ``Status``."""
    return not kind.custom and kind.kind in _RETURNED


def check_deletion(kind: ResourceKind, live: Object, options: Deletion) -> None:
    """Raise ApiError when a precondition does not hold (409), or the object is protected (403)."""
    metadata = live["metadata"]
    name = metadata["name"]
    for word, field, wanted in (
        ("UID", "uid", options.uid),
        ("ResourceVersion", "resourceVersion", options.version),
    ):
        if wanted and wanted != metadata[field]:
            then = "deleted and then recreated" if field == "uid" else "modified"
            raise precondition(
                kind,
                name,
                f"the {word} in the precondition ({wanted}) does not match the {word} in record "
                f"({metadata[field]}). The object might have been {then}",
            )
    if kind == NAMESPACE and name in PROTECTED:
        message = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
        raise StatusError(403, "Forbidden", message)


def deleting(kind: ResourceKind, live: Object, options: Deletion, now: datetime) -> tuple[Object, bool]:
    """Return the object as it waits for its end, or its last state, and whether it goes at once.

    Only a pod, which has grace, is marked as deleted when it goes at once.
    """
    metadata = live["metadata"]
    finalizers = _finalizers(kind, metadata.get("finalizers") or [], options)
    grace = _grace(kind, live, options)
    gone = not finalizers and not grace and kind != NAMESPACE
    if gone and kind != POD:
        return live, True
    changed = {key: value for key, value in metadata.items() if key != "finalizers"}
    if finalizers:
        changed["finalizers"] = finalizers
    if "deletionTimestamp" not in metadata or grace < metadata.get("deletionGracePeriodSeconds", 0):
        changed["deletionTimestamp"] = in_seconds(now + timedelta(seconds=grace))
        changed["deletionGracePeriodSeconds"] = grace
        if "deletionTimestamp" not in metadata and "generation" in metadata:
            changed["generation"] = metadata["generation"] + 1
    return {**live, "metadata": changed}, gone


def _grace(kind: ResourceKind, live: Object, options: Deletion) -> int:
    """Return the seconds that a pod on a node has to end; everything else has none."""
    spec: Mapping[str, Any] = live.get("spec") or {}
    ended = (live.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if kind != POD or not spec.get("nodeName") or ended:
        return 0
    seconds = spec.get("terminationGracePeriodSeconds", _POD_GRACE_SECONDS)
    if options.grace is not None:
        seconds = options.grace if options.grace >= 0 else 1
    pending = live["metadata"].get("deletionGracePeriodSeconds")
    return int(seconds if pending is None else min(seconds, pending))


def _finalizers(kind: ResourceKind, present: list[str], options: Deletion) -> list[str]:
    policy = options.policy
    if not policy:
        collected = [name for name in present if name in (FOREGROUND, ORPHAN)]
        legacy = kind.group == "batch" and kind.kind == "Job" and not collected
        return [*present, ORPHAN] if legacy else present
    kept = [name for name in present if name not in (FOREGROUND, ORPHAN)]
    added = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(policy, [])
    return [*kept, *added]
