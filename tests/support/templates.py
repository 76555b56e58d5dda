"""What the compiler resolved from the templates: the resources of a deployment, by name.

``make bicep`` writes ``infra/main.json`` and, for each parameter file of ``tests/infra``, the snapshot that
is read here. A value that only Azure can know is left in it as an expression in brackets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from shared.configuration.settings import App

ROOT = Path(__file__).parent.parent.parent
INFRA = ROOT / "infra"
PARAMETER_FILES = ROOT / "tests" / "infra"
MAIN: dict[str, Any] = json.loads((INFRA / "main.json").read_text())
"""The template as Resource Manager takes it."""
EVERYTHING, REQUIRED, EXAMPLE = "longest", "required", "example"
PRIVATE, EXISTING = "private", "existing"
GIVEN = (EVERYTHING, REQUIRED, EXAMPLE, PRIVATE, EXISTING)
"""The parameter files: every option with the longest names, what is required, the guide's example, a network
of its own with private endpoints, and a group, a network and zones that exist."""


@dataclass(frozen=True)
class Resource:
    """One resource: its type and name as Resource Manager has them, its id, and all that is written."""

    type: str
    name: str
    id: str
    properties: Any
    whole: dict[str, Any]


@dataclass(frozen=True)
class Assignment:
    """A role that an app has: the id of its definition, and the id of what it is assigned at."""

    app: App
    role: str
    scope: str


@cache
def resources(given: str = EVERYTHING) -> tuple[Resource, ...]:
    """Return what a deployment with a parameter file writes, in its order."""
    resolved = json.loads((PARAMETER_FILES / f"{given}.snapshot.json").read_text())["predictedResources"]
    return tuple(
        Resource(found["type"], found["name"], found["id"], found.get("properties"), found)
        for found in resolved
    )


def outputs(given: str = EVERYTHING) -> dict[str, Any]:
    """Return what a deployment with a parameter file prints, by name."""
    found: dict[str, Any] = json.loads((PARAMETER_FILES / f"{given}.snapshot.json").read_text())["outputs"]
    return found


def of_type(resource_type: str, given: str = EVERYTHING) -> list[Resource]:
    """Return the resources of one ARM type."""
    return [found for found in resources(given) if found.type == resource_type]


def settings_of(app: App, given: str = EVERYTHING) -> dict[str, str]:
    """Return the settings of one app, by name."""
    (found,) = [
        resource.properties
        for resource in of_type("Microsoft.Web/sites/config", given)
        if resource.name.endswith("/appsettings") and resource.properties["ROADSTEAD_APP"] == app
    ]
    settings: dict[str, str] = found
    return settings


def app_settings(given: str = EVERYTHING) -> dict[str, str]:
    """Return the settings of all apps together."""
    return {name: value for app in App for name, value in settings_of(app, given).items()}


def assignments(given: str = EVERYTHING) -> Iterator[Assignment]:
    """Yield the roles of the apps; those of others, such as a topic of Event Grid, are left out."""
    for found in of_type("Microsoft.Authorization/roleAssignments", given):
        app = re.search(r"'(control|worker|deleter)Identity-", found.properties["principalId"])
        scope = re.search(r"guid\('([^']+)'", found.name)
        if app and scope:
            role = found.properties["roleDefinitionId"].strip("[]')").rpartition("/")[2]
            yield Assignment(App(app[1]), role, scope[1])


def role_definitions(given: str = EVERYTHING) -> dict[str, Resource]:
    """Return the roles that the templates define, by their ids."""
    return {found.name: found for found in of_type("Microsoft.Authorization/roleDefinitions", given)}


def parameters() -> dict[str, Any]:
    """Return the parameters of main.bicep, by name."""
    found: dict[str, Any] = MAIN["parameters"]
    return found


def templates() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield main.json and every template in it, each with the name of its module."""
    stack = [("main", MAIN)]
    while stack:
        name, template = stack.pop()
        yield name, template
        found = template["resources"]  # by symbolic name, where the compiler needs one
        for module, resource in found.items() if isinstance(found, dict) else enumerate(found):
            nested = resource.get("properties", {})
            nested = nested.get("template") if isinstance(nested, dict) else None
            if nested:
                stack.append((str(module), nested))
