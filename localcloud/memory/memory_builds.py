"""What builds what Flux applies, for all clouds in memory of a process: the real kustomize."""

from __future__ import annotations

from localcloud.common.programs import program
from shared.adapters.kustomize import KustomizeProgram
from shared.platform.builds.build import Builds


def _builds() -> Builds | None:
    kubectl = program("kubectl")
    if kubectl is None:
        return None
    kustomize = KustomizeProgram((kubectl, "kustomize"))
    return Builds(kustomize.build, lambda: kustomize.version)


BUILDS = _builds()
"""What Flux applies is built once in a process, whichever clouds have the same files."""
