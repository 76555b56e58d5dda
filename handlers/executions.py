"""Counts the executions of functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from shared.app.runs import executed
from shared.ports import Ports

Function = TypeVar("Function", bound=Callable[..., Any])


def counted(name: str, ports: Ports) -> Callable[[Function], Function]:
    """Return a decorator that counts the executions of a function; it keeps the signature."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def run(*given: Any, **named: Any) -> Any:
            with executed(name, ports):
                return function(*given, **named)

        return cast(Function, run)

    return decorate
