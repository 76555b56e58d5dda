"""The kustomize of the machine, which `make` installs within kubectl."""

from __future__ import annotations

from localcloud.flux.kustomize.real_kustomize import kustomize_command
from shared.adapters.kustomize import KustomizeProgram


def kustomize_program(seconds: float = 30) -> KustomizeProgram:
    """Return the program."""
    return KustomizeProgram(kustomize_command(), seconds=seconds)
