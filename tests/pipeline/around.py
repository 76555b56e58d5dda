"""Ports with some methods replaced, for what may go wrong around the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from localcloud.world.cloud import MemoryCloud
from shared.ports import Ports


class Around:
    """A port with some methods replaced."""

    def __init__(self, inner: Any, **methods: Callable[..., Any]) -> None:
        self._inner, self._methods = inner, methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._inner, name)


def around(cloud: MemoryCloud, port: str, **methods: Callable[..., Any]) -> None:
    """Replace methods of a port, from now on."""

    def change(ports: Ports) -> Ports:
        changed: dict[str, Any] = {port: Around(getattr(ports, port), **methods)}
        return replace(ports, **changed)

    cloud.with_ports(change)
