"""The errors that are documented, by name: what ``fail`` lets happen to the next write or delete.

``documented.json`` has the body that a page shows, with a shorter text; ``listed.json`` the codes of which a
source has the name alone. ``when`` is "request" for a refusal with its HTTP ``status``, "operation" for what
ends as Failed, and "delete" for a delete that does. The reading is the local Azure's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from localcloud.azure.world.arm_errors import AksError
from shared.frozen import dataclass


@dataclass(frozen=True)
class DocumentedFailure:
    """A failure as a source has it; ``body`` has ``code``, ``message``, maybe ``subcode`` and ``details``."""

    name: str
    page: str
    when: str
    body: Mapping[str, Any]
    status: int = 0

    @property
    def error(self) -> tuple[str, str]:
        """The code and the message."""
        return self.body["code"], self.body["message"]


class RecordedError(AksError):
    """A refusal with the body of a page."""

    def __init__(self, failure: DocumentedFailure) -> None:
        super().__init__(failure.status, *failure.error)
        self._body = dict(failure.body)

    def body(self) -> dict[str, Any]:
        """Return the body, which has no envelope."""
        return {"details": None, "subcode": "", **self._body}


@cache
def documented() -> Mapping[str, DocumentedFailure]:
    """Return the failures that pages show, by their names in lower case."""
    return {
        failure["name"].lower(): DocumentedFailure(**failure) for failure in _read("documented")["failures"]
    }


@cache
def failures() -> Mapping[str, DocumentedFailure]:
    """Return all failures, by their names in lower case: also those that have no more than a code."""
    return {**{failure.name.lower(): failure for failure in _listed()}, **documented()}


def _listed() -> Iterator[DocumentedFailure]:
    for source in _read("listed")["sources"]:
        for code in source["codes"]:
            body = {"code": code, "message": f"no page shows the text of {code}"}
            yield DocumentedFailure(code, source["source"], source["when"], body, source.get("status", 0))


def _read(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(Path(__file__).with_name(f"{name}.json").read_text())
    return found
