"""The outputs of a cluster."""

from __future__ import annotations

from typing import TypedDict, final


@final
class Outputs(TypedDict):
    """``GET clusters/NAME/output``.

    ``outputs`` are the facts that the ConfigMap cluster-facts has too, by their names. They are not ``known``
    before a job has read the cluster in Azure, and once it no longer exists there.
    """

    name: str
    phase: str
    generation: int
    observedGeneration: int
    known: bool
    outputs: dict[str, str]
