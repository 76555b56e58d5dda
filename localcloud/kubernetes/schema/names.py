"""The forms of names, labels, annotations and finalizers, with the texts that refuse them.

Source: ``k8s.io/apimachinery/pkg/util/validation`` and ``pkg/api/validation``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from localcloud.kubernetes.schema.definitions import FieldProblem, invalid

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
    "start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
SERVICE_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used "
    "for validation "
    "is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_NAME_PART_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start "
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")
DATA_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)

_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")


def metadata_problems(metadata: Mapping[str, Any], *, custom: bool) -> Iterator[FieldProblem]:
    """Yield what is refused in the labels, annotations and finalizers of an object.

    ``custom``: it is a custom resource or a definition, whose finalizers need no prefix.
    """
    yield from _of_labels(metadata.get("labels"), "metadata.labels")
    for name in metadata.get("annotations") or {}:
        yield from _qualified(name.lower(), "metadata.annotations", shown=name)
    for number, name in enumerate(metadata.get("finalizers") or ()):
        yield from _qualified(name, "metadata.finalizers")
        if not custom and "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{number}]", name, text)


def name_problem(kind_group: str, kind: str, name: str) -> FieldProblem | None:
    """Return what is wrong with the name of an object, or None."""
    if kind_group == "rbac.authorization.k8s.io":
        wrong = name in (".", "..") or "/" in name or "%" in name
        return invalid("metadata.name", name, "may not contain '/' or '%'") if wrong else None
    if kind == "Namespace" and "." in name:
        return invalid("metadata.name", name, "must not contain dots")
    form, longest, text = _FORMS.get(kind, (SUBDOMAIN, 253, SUBDOMAIN_TEXT))
    if len(name) > longest:
        return invalid("metadata.name", name, f"must be no more than {longest} bytes")
    return None if form.fullmatch(name) else invalid("metadata.name", name, text)


_FORMS: Mapping[str, tuple[re.Pattern[str], int, str]] = {
    "Namespace": (LABEL, 63, LABEL_TEXT),
    "Service": (SERVICE, 63, SERVICE_TEXT),
}


@lru_cache(1024)
def label_key_problems(name: str) -> Sequence[str]:
    """Return what is wrong with a label's key, or another name that may have a DNS prefix."""
    prefix, slash, local = name.rpartition("/")
    found: list[str] = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash and not SUBDOMAIN.fullmatch(prefix):
        found.append(f"prefix part {SUBDOMAIN_TEXT}")
    if not local:
        found.append("name part must be non-empty")
    elif len(local) > 63:
        found.append("name part must be no more than 63 bytes")
    if not _NAME_PART.fullmatch(local):
        found.append(_NAME_PART_TEXT)
    return found


@lru_cache(1024)
def label_value_problems(text: str) -> Sequence[str]:
    """Return what is wrong with a label's value."""
    found = ["must be no more than 63 bytes"] if len(text) > 63 else []
    return found if _LABEL_VALUE.fullmatch(text) else [*found, _LABEL_VALUE_TEXT]


def _of_labels(labels: Mapping[str, str] | None, path: str) -> Iterator[FieldProblem]:
    for name, text in (labels or {}).items():
        yield from _qualified(name, path)
        for problem in label_value_problems(text):
            yield invalid(path, text, problem)


def _qualified(name: str, path: str, *, shown: str = "") -> Iterator[FieldProblem]:
    for problem in label_key_problems(name):
        yield invalid(path, shown or name, problem)
