"""The bodies of ``documented.json`` by name: each is what a page of Microsoft shows, with a shorter text.

``when`` is "request" for a refusal with its HTTP ``status``, "operation" for what ends as Failed, and
"delete" for a delete that does. The reading is the local Azure's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from localcloud.azure.world.arm_errors import AksError
from shared.frozen import dataclass


@dataclass(frozen=True)
class DocumentedFailure:
    """A failure as a page shows it; ``body`` has ``code``, ``message``, maybe ``subcode`` and ``details``."""

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
    """Return all failures by their names in lower case."""
    read = json.loads(Path(__file__).with_name("documented.json").read_text())
    return {failure["name"].lower(): DocumentedFailure(**failure) for failure in read["failures"]}
