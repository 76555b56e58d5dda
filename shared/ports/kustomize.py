"""The port of kustomize: a program that builds what Flux applies from a folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Kustomize(Protocol):
    """Builds folders without a network, and without anything of the machine but the files that it gets."""

    @property
    def version(self) -> str:
        """What builds, as a person reads it: ``kustomize v5.7.1``; "" where that is unknown."""
        ...

    def build(self, files: Mapping[str, bytes], folder: str) -> bytes:
        """Return the YAML that kustomize makes of a folder of these files, by their paths.

        Files may be outside the folder, as in kustomize-controller, and never outside ``files``: the caller
        has refused entries that lead elsewhere. Plugins and helm are off. Raise ``BuildFailed`` of
        ``shared.platform.builds.build`` with kustomize's own message, in which paths are those of ``files``;
        also for a build that takes too long, too much memory or too much output. Raise ``NoKustomize``
        where the program does not start.
        """
        ...
