"""The options of a request in its query, and the options in the body of a DELETE.

Rules and texts: ``ValidateCreateOptions``, ``ValidatePatchOptions``, ``ValidateDeleteOptions`` in
``apimachinery/pkg/apis/meta/v1/validation``. A value that cannot be parsed is 400, one that is refused 422.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from werkzeug.wrappers import Request

from localcloud.kubernetes.schema.decoding import WrongType, decoded
from localcloud.kubernetes.schema.definitions import (
    FieldProblem,
    built_in,
    forbidden,
    invalid,
    required,
    unsupported,
)
from localcloud.kubernetes.world.api_errors import bad_request, invalid_options
from localcloud.kubernetes.world.object_store import Deletion

_LONGEST_MANAGER = 128
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True)
class WriteOptions:
    """What the query of a write asks for."""

    manager: str
    force: bool
    dry_run: bool
    validation: str


def write_options(request: Request, kind: str, *, apply: bool = False) -> WriteOptions:
    """Return the options of a write; ``kind`` is CreateOptions, UpdateOptions or PatchOptions."""
    args = request.args
    manager, validation = args.get("fieldManager", ""), args.get("fieldValidation", "")
    found: list[FieldProblem] = []
    if apply and not manager:
        found.append(required("fieldManager", "is required for apply patch"))
    if kind == "PatchOptions" and not apply and "force" in args:
        found.append(forbidden("force", "may not be specified for non-apply patch"))
    found += [*_manager(manager), *_dry_run(args.getlist("dryRun"))]
    if validation not in _VALIDATIONS:
        found.append(unsupported("fieldValidation", validation, _VALIDATIONS))
    if found:
        raise invalid_options(kind, found)
    agent = request.headers.get("User-Agent", "unknown").partition("/")[0]
    return WriteOptions(
        manager=manager or agent,
        force=_is_true(args.get("force", "false")),
        dry_run=bool(args.getlist("dryRun")),
        validation=validation or "Warn",
    )


def deletion(request: Request, body: Any) -> Deletion:
    """Return how to delete; ``body`` is that of the request, None without one: then the query counts."""
    found = _from_query(request) if body is None else _from_body(body)
    dry_run, policy = found.get("dryRun") or [], found.get("propagationPolicy")
    orphan = found.get("orphanDependents")
    problems: list[FieldProblem] = []
    if orphan is not None and policy is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(invalid("propagationPolicy", policy, text))
    if policy is not None and policy not in _POLICIES:
        problems.append(unsupported("propagationPolicy", policy, (*_POLICIES, "nil")))
    problems += _dry_run(dry_run)
    if problems:
        raise invalid_options("DeleteOptions", problems)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    conditions = found.get("preconditions") or {}
    return Deletion(
        uid=conditions.get("uid") or "",
        version=conditions.get("resourceVersion") or "",
        policy=policy or "",
        grace=found.get("gracePeriodSeconds"),
        dry_run=bool(dry_run),
    )


def without_preconditions(options: Deletion) -> Deletion:
    """Return the options for each object of a collection."""
    return replace(options, uid="", version="")


def number(request: Request, name: str) -> int | None:
    """Return a number of the query, or None; raise ApiError (400)."""
    text = request.args.get(name)
    if not text:
        return None
    if not re.fullmatch(r"[-+]?\d+", text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def is_set(request: Request, name: str) -> bool:
    """Return a switch of the query, as "watch"; ``?watch`` alone switches it on."""
    return name in request.args and _is_true(request.args[name])


def _is_true(text: str) -> bool:
    return text.lower() not in ("false", "0")


def _manager(name: str) -> Iterator[FieldProblem]:
    if len(name.encode()) > _LONGEST_MANAGER:
        text = f"Too long: may not be more than {_LONGEST_MANAGER} bytes"
        yield FieldProblem("fieldManager", "FieldValueTooLong", text)
    for place, letter in enumerate(name):
        if not letter.isprintable():
            yield invalid(
                "fieldManager", name, f"invalid character U+{ord(letter):04X} (at position {place})"
            )


def _dry_run(values: Sequence[str]) -> list[FieldProblem]:
    return [] if set(values) <= {"All"} else [unsupported("dryRun", list(values), ("All",))]


def _from_query(request: Request) -> Mapping[str, Any]:
    args = request.args
    orphan = args.get("orphanDependents")
    return {
        "dryRun": args.getlist("dryRun"),
        "propagationPolicy": args.get("propagationPolicy"),
        "orphanDependents": None if orphan is None else _is_true(orphan),
        "gracePeriodSeconds": number(request, "gracePeriodSeconds"),
    }


def _from_body(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, Mapping):
        raise bad_request("couldn't get version/kind; json parse error: the options are no object")
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request("decoded object cannot be converted to DeleteOptions")
    try:
        found: Mapping[str, Any] = decoded(built_in("v1", "DeleteOptions"), body, [])
    except WrongType as error:
        raise bad_request(str(error)) from error
    return found
