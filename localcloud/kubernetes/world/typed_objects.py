"""Objects against the types of their kinds: what a write may contain, and what is stored of it.

A field that the type does not have is dropped, and reported as the request asks; a value of another type is
refused; defaults are added. An apply refuses both at once, because it must know every field to own it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from localcloud.kubernetes.schema import builtin_rules, custom_resources, typed_apply
from localcloud.kubernetes.schema.builtin_defaults import with_defaults
from localcloud.kubernetes.schema.by_content import by_content
from localcloud.kubernetes.schema.crd_rules import name_problem, stored_problems
from localcloud.kubernetes.schema.decoding import WrongType, decoded
from localcloud.kubernetes.schema.definitions import FieldProblem, Type
from localcloud.kubernetes.schema.fixed_fields import changes_refused, metadata_changes
from localcloud.kubernetes.schema.names import metadata_problems
from localcloud.kubernetes.world.api_errors import StatusError, cannot_decode, invalid_fields, invalid_patch
from localcloud.kubernetes.world.kinds import CRD, ResourceKind
from localcloud.kubernetes.world.object_store import Object, WriteMode


def received(kind: ResourceKind, value: Mapping[str, Any], write: WriteMode) -> dict[str, Any]:
    """Return the object of a create or a replace with its known fields and its defaults."""
    return _read(kind, value, write, partial(cannot_decode, kind))


def after_patch(kind: ResourceKind, value: Mapping[str, Any], write: WriteMode) -> dict[str, Any]:
    """Return the object that a patch resulted in, with its known fields and its defaults."""
    return _read(kind, value, write, partial(invalid_patch, value))


def _read(
    kind: ResourceKind, value: Mapping[str, Any], write: WriteMode, refusal: Callable[[str], StatusError]
) -> dict[str, Any]:
    unknown: list[str] = []
    try:
        known = _known(kind, value, unknown)
    except WrongType as error:
        raise refusal(str(error)) from error
    if unknown and write.validation == "Strict":
        raise refusal(_strict(unknown))
    _warn(unknown, write)
    return known


def check_configuration(kind: ResourceKind, config: Mapping[str, Any], namespace: str) -> None:
    """Raise ApiError (500) unless every field of an apply configuration is declared and has its type.

    ``namespace`` is the one that the configuration itself states.
    """
    found = _undeclared(kind.type, config)
    if found:
        where = _of(kind, config, namespace)
        message = f"failed to create typed patch object ({where}): {typed_apply.refusal(found)}"
        raise StatusError(500, "", message)


def after_apply(kind: ResourceKind, value: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return the object that an apply resulted in, with its defaults; raise ApiError (500)."""
    try:
        return _known(kind, value, [])
    except WrongType as error:
        message = f"failed to convert new object ({_of(kind, value, namespace)}) to proper version: {error}"
        raise StatusError(500, "", message) from error


def check_values(kind: ResourceKind, live: Object | None, new: Mapping[str, Any], subresource: str) -> None:
    """Raise ApiError (422) when the object breaks a rule of its kind, or a write changes a fixed field."""
    found: list[FieldProblem] = [] if live is None else metadata_changes(live["metadata"], new["metadata"])
    if kind.custom:
        found += [
            *metadata_problems(new["metadata"], custom=True),
            *custom_resources.problems(kind.type, new, subresource),
        ]
    elif not subresource:
        found += builtin_rules.problems(kind.type, new)
        found += [] if live is None else changes_refused(kind.type, live, new)
    if kind.storage == CRD.storage:
        wrong_name = name_problem(new["metadata"]["name"], new.get("spec") or {})
        found += [*([wrong_name] if wrong_name else []), *stored_problems(new)]
    if found:
        raise invalid_fields(kind, new["metadata"]["name"], found)


def _known(kind: ResourceKind, value: Mapping[str, Any], unknown: list[str]) -> dict[str, Any]:
    metadata, of_metadata = value["metadata"], kind.type.fields["metadata"]
    owners = metadata.get("managedFields")
    plain = {key: inner for key, inner in metadata.items() if key != "managedFields"}
    known = with_defaults(of_metadata, decoded(of_metadata, plain, unknown, "metadata"))
    if kind.custom:
        found = custom_resources.pruned(kind.type, {**value, "metadata": known}, unknown)
        whole = dict(custom_resources.defaulted(kind.type, found))
    else:
        content, dropped = _content(kind.type, {key: value[key] for key in value if key != "metadata"})
        unknown += dropped
        whole = {**content, "metadata": known}
    if owners is not None:
        whole["metadata"]["managedFields"] = owners
    return whole


@by_content
def _content(kind: Type, content: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the known fields of an object with their defaults, and the paths of the others."""
    unknown: list[str] = []
    return with_defaults(kind, decoded(kind, content, unknown)), unknown


_undeclared = by_content(lambda kind, config: list(typed_apply.problems(kind, config)))


def _strict(unknown: list[str]) -> str:
    return "strict decoding error: " + ", ".join(f'unknown field "{path}"' for path in unknown)


def _warn(unknown: list[str], write: WriteMode) -> None:
    for path in unknown if write.validation == "Warn" else ():
        write.warn(f'unknown field "{path}"')


def _of(kind: ResourceKind, value: Mapping[str, Any], namespace: str) -> str:
    return f"{namespace}/{value['metadata']['name']}; {kind.group}/{kind.version}, Kind={kind.kind}"
