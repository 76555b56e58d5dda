"""One request of a sequence whose later answers depend on what controllers did, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.api_server.objects import JSON, MAPS, MERGE

HOLD = "example.org/hold"


@dataclass(frozen=True)
class Step:
    """One request of a sequence; ``$NAME`` in its path or body is what an earlier step remembered.

    ``until``: ask again until the object no longer exists, waits for its end, has no finalizer left, or has
    one owner or none. ``keep`` maps names to paths in the answer, ``shown`` are the paths that must be equal
    besides what always must. ``lose``: before it, the server loses its history of versions.
    """

    name: str
    method: str
    path: str
    body: Any = None
    content: str = JSON
    until: Literal["", "gone", "deleting", "collected", "single", "free"] = ""
    keep: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    lose: bool = False


def create(title: str, path: str, body: Any, **rest: Any) -> Step:
    return Step(title, "POST", path, body, **rest)


def delete(title: str, name: str, policy: str = "", path: str = MAPS, **options: Any) -> Step:
    body = {**({"propagationPolicy": policy} if policy else {}), **options}
    return Step(title, "DELETE", f"{path}/{name}", body or None)


def read(title: str, name: str, path: str = MAPS, **rest: Any) -> Step:
    return Step(title, "GET", f"{path}/{name}", **rest)


def release(title: str, name: str, path: str = MAPS) -> Step:
    return Step(title, "PATCH", f"{path}/{name}", {"metadata": {"finalizers": None}}, MERGE)


def pod_template(app: str, **container: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "web", "image": "web:1", **container}]},
    }
