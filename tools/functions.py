"""Writes ``handlers/functions.json``, the table of triggers: ``python -m tools.functions``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from handlers.apps import PARTS, Functions
from handlers.routes import who_may_call
from handlers.sign_in import SignIn
from handlers.triggers import TABLE, by_name
from localcloud.memory.memory_cloud import MemoryCloud
from shared.configuration.settings import GitHostName


def table() -> str:
    """Return the table, a line for each function."""
    rows = list(_rows())
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


def _rows() -> Iterator[Mapping[str, Any]]:
    ports = MemoryCloud().ports
    for app, parts in PARTS.items():
        for part in parts:
            for host in get_args(GitHostName) if part == "webhooks" else ("",):
                functions = Functions(
                    ports,
                    SignIn(),
                    webhook_secrets=(),
                    form_secrets=("none",),
                    approval_keys={},
                    git_host=host or "github",
                    sweep_schedule="{sweep_schedule}",
                    check_schedule="{check_schedule}",
                )
                for name, function in by_name(functions.part(part)).items():
                    of_host = {"git_host": host} if host else {}
                    yield {"app": app, "part": part, "name": name, **of_host, **_trigger(function)}


def _trigger(function: Any) -> Mapping[str, Any]:
    """Return what triggers a function."""
    found = function.get_trigger().get_dict_repr()
    if found["type"] == "httpTrigger":
        methods = [method.value for method in found["methods"]]
        return {
            "route": found["route"],
            "methods": methods,
            "who": who_may_call(function.get_user_function()),
        }
    if found["type"] == "timerTrigger":
        return {"schedule": found["schedule"]}
    sessions = {"sessions": True} if found.get("isSessionsEnabled") else {}
    return {"queue": found["queueName"], **sessions}


if __name__ == "__main__":
    TABLE.write_text(table())
