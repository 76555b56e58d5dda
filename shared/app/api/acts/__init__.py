"""What operators ask for: approvals, replays, takeovers, comparisons, imports and tests of routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

from shared.app.api import schema
from shared.app.http_result import HttpResult, rejected, unknown_cluster
from shared.app.records import Transition, change
from shared.cluster.failures.errors import Conflict, InvalidManifest, ReconcileError
from shared.cluster.record import ClusterRecord
from shared.ports import Ports

P = ParamSpec("P")
WITHOUT_REASON = "say why in reason: whoever it concerns reads it, and the audit has it"


class Refusal(Exception):
    """Nothing was done: the status of the answer, and a sentence for the caller."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


def answers(status: int) -> Callable[[Callable[P, Mapping[str, Any]]], Callable[P, HttpResult]]:
    """Return the decorator of an act: its answer is its receipt with the status, or why it is refused."""

    def decorate(act: Callable[P, Mapping[str, Any]]) -> Callable[P, HttpResult]:
        @wraps(act)
        def answer(*given: P.args, **named: P.kwargs) -> HttpResult:
            try:
                return HttpResult(status, act(*given, **named))
            except Refusal as refusal:
                return rejected(refusal.status, str(refusal))

        return answer

    return decorate


@contextmanager
def proposing() -> Iterator[None]:
    """Refuse an act whose pull request is not opened: 409 for what people correct, 502 for the git host."""
    try:
        yield
    except (Conflict, InvalidManifest) as error:
        raise Refusal(409, str(error)) from error
    except ReconcileError as error:
        raise Refusal(502, f"{error.kind}: {error}") from error


def receipt(target: str, by: str) -> schema.Receipt:
    """Return the answer to an act that has nothing more to say."""
    return {"target": target, "by": by}


def known_cluster(name: str, record: ClusterRecord | None, ports: Ports) -> ClusterRecord:
    """Return the record of a cluster; refuse an act on one that the fleet does not have."""
    if record is None:
        raise Refusal(404, unknown_cluster(name, ports))
    return record


def change_cluster(
    name: str, decide: Callable[[ClusterRecord], Transition | ClusterRecord], ports: Ports
) -> ClusterRecord:
    """Save what is decided of a cluster, and return its record; refuse one that the fleet does not have."""
    return change(name, lambda record: decide(known_cluster(name, record, ports)), ports)
