"""The fields of built-in kinds that a write cannot change.

Source: the functions ``Validate...Update`` in ``pkg/apis/*/validation/validation.go`` of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.kubernetes.schema.definitions import FieldProblem, Type, forbidden, invalid

_CORE, _APPS, _RBAC = "io.k8s.api.core.v1.", "io.k8s.api.apps.v1.", "io.k8s.api.rbac.v1."
_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_IMMUTABLE = "field is immutable"
FIXED: Mapping[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    f"{_APPS}Deployment": ((("spec", "selector"), _IMMUTABLE),),
    f"{_APPS}DaemonSet": ((("spec", "selector"), _IMMUTABLE),),
    f"{_APPS}ReplicaSet": ((("spec", "selector"), _IMMUTABLE),),
    f"{_RBAC}RoleBinding": ((("roleRef",), "cannot change roleRef"),),
    f"{_RBAC}ClusterRoleBinding": ((("roleRef",), "cannot change roleRef"),),
    f"{_CORE}Secret": ((("type",), _IMMUTABLE),),
    "io.k8s.api.batch.v1.Job": (
        (("spec", "completions"), _IMMUTABLE),
        (("spec", "selector"), _IMMUTABLE),
        (("spec", "template"), _IMMUTABLE),
    ),
    f"{_CRD}CustomResourceDefinition": (
        (("spec", "group"), _IMMUTABLE),
        (("spec", "names", "kind"), _IMMUTABLE),
        (("spec", "names", "plural"), _IMMUTABLE),
        (("spec", "scope"), _IMMUTABLE),
    ),
    "io.k8s.api.scheduling.v1.PriorityClass": ((("value",), "may not be changed in an update."),),
}
"""The fields of a kind that cannot be changed, each with the text of its refusal."""


def metadata_changes(live: Mapping[str, Any], new: Mapping[str, Any]) -> list[FieldProblem]:
    """Return what a write changes in the metadata of any object and must not."""
    before, after = live.get("finalizers") or (), new.get("finalizers") or ()
    added = [name for name in after if name not in before]
    if "deletionTimestamp" not in live or not added:
        return []
    shown = ", ".join(f'"{name}"' for name in added)
    text = "no new finalizers can be added if the object is being deleted, found new finalizers"
    return [forbidden("metadata.finalizers", f"{text} []string{{{shown}}}")]


_OF_STATEFUL_SET = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
_OF_POD = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")


def changes_refused(kind: Type, live: Mapping[str, Any], new: Mapping[str, Any]) -> list[FieldProblem]:
    """Return the fields of a built-in kind that a write changes and must not."""
    found = [
        invalid(".".join(path), _at(new, path), text)
        for path, text in FIXED.get(kind.name, ())
        if _at(live, path) != _at(new, path)
    ]
    if kind.name == f"{_APPS}StatefulSet" and _without(live, _OF_STATEFUL_SET) != _without(
        new, _OF_STATEFUL_SET
    ):
        *names, last = (f"'{name}'" for name in _OF_STATEFUL_SET)
        text = (
            f"updates to statefulset spec for fields other than {', '.join(names)} and {last} are forbidden"
        )
        found.append(forbidden("spec", text))
    if kind.name == f"{_CORE}Pod" and _of_pod(live) != _of_pod(new):
        found.append(forbidden("spec", _POD_TEXT))
    if kind.name in (f"{_CORE}ConfigMap", f"{_CORE}Secret") and live.get("immutable"):
        if not new.get("immutable"):
            found.append(forbidden("immutable", "field is immutable when `immutable` is set"))
        for name in ("data", "binaryData"):
            if live.get(name) != new.get(name):
                found.append(forbidden(name, "field is immutable when `immutable` is set"))
    return found


_POD_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _without(value: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: inner for name, inner in (value.get("spec") or {}).items() if name not in names}


def _of_pod(value: Mapping[str, Any]) -> dict[str, Any]:
    spec = _without(value, _OF_POD)
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [{**container, "image": ""} for container in spec[field]]
    return spec


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
