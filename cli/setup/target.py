"""One more target subscription for a fleet that is deployed: providers, roles of the apps, Azure's events.

It deploys the templates that ``infra/main.bicep`` deploys to each target subscription, with the same names: a
second run, and the next deployment of the fleet, change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.azure_deployment import NAME, Az, DeploymentFailed, register
from cli.setup.azure_fleet import tagged

APPS = ("control", "worker", "deleter")
OPTIONS = ("grantKubernetesAdmin", "readActivityLog", "assignableRoles", "assignPolicies", "manageNamespaces")
"""What ``access.bicep`` takes under the name that it has in the parameter file."""


def add_target(az: Az, *, target: str, own: str, parameters: Path, given: Mapping[str, Any]) -> None:
    """Prepare a subscription for the clusters of a fleet. Raises DeploymentFailed."""
    fleet, templates = str(given["fleet"]), parameters.parent
    register(az, own, [target])
    types = tagged(az, fleet, own)
    identities = _identities(az, types.get("microsoft.managedidentity/userassignedidentities", []), fleet)
    buses = types.get("microsoft.servicebus/namespaces", [])
    if len(buses) != 1:
        raise DeploymentFailed(f"the fleet {fleet} has {len(buses)} Service Bus namespaces in {own}, not one")
    access = {
        "identities": {app: found["principalId"] for app, found in identities.items()},
        "federates": bool(given.get("federatedIdentities")),
        **{name: given[name] for name in OPTIONS if given.get(name)},
    }
    place = ("--subscription", target, "--location", buses[0]["location"])
    _deploy(az, "Give the apps their roles.", templates / "access.bicep", place, access)
    if given.get("hearAzureEvents") is not False:
        events = {
            "fleet": fleet,
            "queueId": f"{buses[0]['id']}/queues/events",
            "appIds": [found["clientId"] for found in identities.values()],
            "tags": {**(given.get("tags") or {}), "roadstead-fleet": fleet},
        }
        _deploy(az, "Have Azure report what changes there.", templates / "events.bicep", place, events)
    az.say(_next(target, parameters, given))


def _identities(az: Az, found: list[dict[str, str]], fleet: str) -> dict[str, dict[str, str]]:
    """Return principalId and clientId of each app's identity."""
    ids = {identity["name"]: identity["id"] for identity in found}
    names = {app: f"id-roadstead-{fleet}-{app}" for app in APPS}
    missing = [name for name in names.values() if name not in ids]
    if missing:
        raise DeploymentFailed(f"there is no identity {', '.join(missing)}: deploy the fleet first")
    query = ("--query", "{principalId: principalId, clientId: clientId}")
    return {
        app: az.read(f"Read the identity of {app}.", "identity", "show", "--ids", ids[name], *query)
        for app, name in names.items()
    }


def _deploy(az: Az, why: str, template: Path, place: tuple[str, ...], parameters: Mapping[str, Any]) -> None:
    if not template.is_file():
        raise DeploymentFailed(f"{template} is missing: the parameter file stands in the folder infra")
    values = [f"{name}={json.dumps(value)}" for name, value in parameters.items()]
    az.read(
        why,
        *("deployment", "sub", "create", "--name", f"{NAME}-{template.stem}", *place),
        *(
            "--template-file",
            str(template),
            "--parameters",
            *values,
            "--query",
            "properties.provisioningState",
        ),
    )


def _next(target: str, parameters: Path, given: Mapping[str, Any]) -> str:
    """Return what a person does next."""
    targets = [str(known).lower() for known in given.get("targetSubscriptions") or ()]
    if target.lower() in targets:
        return f"Done: {parameters} has {target} in targetSubscriptions. Manifests may name it."
    return (
        f"Done: manifests may name {target}. Add it to targetSubscriptions in {parameters}, so that the next "
        f"deployment keeps its roles:\n  '{target}'"
    )
