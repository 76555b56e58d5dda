"""The Azure CLI as a deployment uses it, over a subscription in a file: ``AZ_STATE`` names it.

It is a program of its own. What it knows of Azure: a provider is registered once; a template writes the
secrets that have a value and leaves the others; what it creates has the outputs that Microsoft's compiler
resolved. The log has every command.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
EMPTY: dict[str, Any] = {"providers": {}, "secrets": {}, "fleet": None, "code": {}}


def main(arguments: list[str]) -> int:
    """Run a command; return its exit code."""
    place = Path(os.environ["AZ_STATE"])
    state = json.loads(place.read_text()) if place.exists() else json.loads(json.dumps(EMPTY))
    with Path(f"{place}.log").open("a") as log:
        log.write(" ".join(arguments) + "\n")
    before = json.dumps(state, sort_keys=True)
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    given = {name: value for name, value in pairs if name.startswith("--")}
    answer = _answer(arguments, given, state)
    if json.dumps(state, sort_keys=True) != before:
        written = place.with_suffix(".new")
        written.write_text(json.dumps(state))
        written.replace(place)
    if isinstance(answer, str):
        print(answer, file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0


def _answer(arguments: list[str], given: dict[str, str], state: dict[str, Any]) -> Any:
    group = " ".join(word for word in arguments[:4] if word[:1] != "-")
    if group.startswith("account show"):
        return {"id": given.get("--subscription", SUBSCRIPTION)}
    if group.startswith("bicep build-params"):
        parameters = json.loads(Path(given["--file"]).read_text())
        return {"parametersJson": json.dumps({"parameters": parameters})}
    if group.startswith("provider list"):
        return sorted(state["providers"].get(given["--subscription"], []))
    if group.startswith("provider register"):
        state["providers"].setdefault(given["--subscription"], []).append(given["--namespace"])
        return None
    if group.startswith("deployment sub what-if"):
        return {"changes": []}
    if group.startswith("deployment sub create"):
        return _created(json.loads(Path(given["--parameters"]).read_text()), given, state)
    if group.startswith("functionapp list"):
        return state["fleet"]["functionAppNames"]["value"]
    if group.startswith("functionapp deploy "):
        if given["--name"] not in state["fleet"]["functionAppNames"]["value"]:
            return "ResourceNotFound: no such app"
        digest = hashlib.sha256(Path(given["--src-path"]).read_bytes()).hexdigest()
        state["code"][given["--name"]] = digest
        return {"status": "Success"}
    return f"'{group}' is misspelled or not recognized by the system"


def _created(parameters: dict[str, Any], given: dict[str, str], state: dict[str, Any]) -> Any:
    registered = state["providers"].get(given["--subscription"], [])
    if "Microsoft.Web" not in registered:
        return "MissingSubscriptionRegistration: the subscription is not registered to use Microsoft.Web"
    values = parameters.get("secretValues", {}).get("value", {})
    state["secrets"] |= {name: value for name, value in values.items() if value}
    missing = set(parameters["secrets"]["value"]) - set(state["secrets"])
    if missing:
        return f"SecretNotFound: {', '.join(sorted(missing))}"
    state["fleet"] = json.loads(os.environ["AZ_OUTPUTS"])
    return state["fleet"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
