"""Ports that write nothing: for a job that only compares what exists with what git asks for.

The steps need not know it. Each reads, and writes where something differs; the first write that it would make
ends it with ``WriteHeld``. So nothing is written whatever a step does, and what differs has a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from shared.fleet.json_tree import Json
from shared.fleet.kubernetes.flux.flux_objects import ref_of
from shared.frozen import replace
from shared.pipeline.worker.guarded_kubernetes import GuardedKubernetes
from shared.ports import Azure, Ports
from shared.ports.azure import AzureCall

T = TypeVar("T")


class WriteHeld(Exception):
    """The step would write; the message says what, as in "it would apply the Secret flux-system/git"."""


def without_writes(ports: Ports) -> Ports:
    """Return the ports with every write to Azure and to a cluster refused."""
    return replace(
        ports, azure=_Azure(ports.azure), kubernetes=GuardedKubernetes(ports.kubernetes, _refuse_object)
    )


def _refuse_object(verb: str, subject: Json | str) -> NoReturn:
    raise WriteHeld(f"{verb} {subject if isinstance(subject, str) else f'the {ref_of(subject)}'}")


def _refuse(what: str) -> NoReturn:
    raise WriteHeld(what)


@dataclass(frozen=True)
class _Azure:
    inner: Azure

    def call(self, operation: AzureCall[T]) -> T:
        if operation.writes:
            _refuse(_described(operation))
        return self.inner.call(operation)


def _described(operation: AzureCall[Any]) -> str:
    """Return what a write does: "put pool apps" says enough, because Azure's own words follow the name."""
    names = [each for each in operation.arguments if isinstance(each, str)]
    return " ".join([operation.name.replace("_", " "), *names[:1]])
