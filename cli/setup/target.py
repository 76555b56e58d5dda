"""One more target subscription for a fleet that is deployed: providers, roles of the apps, Azure's events.

It deploys the templates that ``infra/main.bicep`` deploys to each target subscription, with the same names: a
second run, and the next deployment of the fleet, change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from cli.azure_deployment import Az, DeploymentFailed, deployment_name, register
from cli.setup.azure_fleet import tagged

APPS = ("control", "worker", "deleter")


class Right(StrEnum):
    """What the apps may do there only if the deployment says so, by the name of its parameter."""

    KUBERNETES_ADMIN = "grantKubernetesAdmin"
    ACTIVITY_LOG = "readActivityLog"
    ALERTS = "readAlerts"
    COSTS = "readCosts"
    POLICIES = "assignPolicies"
    NAMESPACES = "manageNamespaces"
    FEDERATED_CREDENTIALS = "federatedIdentities"
    IDENTITIES = "identityGroups"


OPTIONS = (
    "grantKubernetesAdmin",
    "readActivityLog",
    "readAlerts",
    "readCosts",
    "assignableRoles",
    "assignPolicies",
    "manageNamespaces",
)
"""What ``access.bicep`` takes under the name that it has in the parameter file."""


@dataclass(frozen=True)
class FleetTarget:
    """What a fleet is to have in a subscription.

    ``given`` has the values of its parameters by their names, ``templates`` is the folder infra, and ``file``
    the parameter file, "" for none.
    """

    given: Mapping[str, Any]
    templates: Path
    file: str = ""


def add_target(az: Az, wanted: FleetTarget, *, target: str, own: str) -> None:
    """Prepare a subscription for the clusters of a fleet. Raises DeploymentFailed."""
    given, templates = wanted.given, wanted.templates
    fleet = str(given["fleet"])
    register(az, own, [target])
    types = tagged(az, fleet, own)
    identities = _identities(az, types.get("microsoft.managedidentity/userassignedidentities", []), fleet)
    buses = types.get("microsoft.servicebus/namespaces", [])
    if len(buses) != 1:
        raise DeploymentFailed(f"the fleet {fleet} has {len(buses)} Service Bus namespaces in {own}, not one")
    access = {
        "identities": {app: found["principalId"] for app, found in identities.items()},
        "federates": bool(given.get("federatedIdentities")),
        "createsIdentities": bool(given.get("identityGroups")),
        **{name: given[name] for name in OPTIONS if given.get(name)},
    }
    place = ("--subscription", target, "--location", buses[0]["location"])
    name = deployment_name(fleet, "access")
    _deploy(az, "Give the apps their roles.", templates / "access.bicep", (*place, "--name", name), access)
    if given.get("hearAzureEvents") is not False:
        events = {
            "fleet": fleet,
            "queueId": f"{buses[0]['id']}/queues/events",
            "appIds": [found["clientId"] for found in identities.values()],
            "tags": {**(given.get("tags") or {}), "roadstead-fleet": fleet},
        }
        where = (*place, "--name", deployment_name(fleet, "events"))
        _deploy(az, "Have Azure report what changes there.", templates / "events.bicep", where, events)
    az.say(_next(target, wanted))


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
        raise DeploymentFailed(
            f"{template} is missing: the parameter file stands in the folder infra, or --infra names it"
        )
    values = [f"{name}={json.dumps(value)}" for name, value in parameters.items()]
    az.read(
        why,
        *("deployment", "sub", "create", *place, "--template-file", str(template)),
        *("--parameters", *values, "--query", "properties.provisioningState"),
    )


def _next(target: str, wanted: FleetTarget) -> str:
    """Return what a person does next."""
    targets = [str(known).lower() for known in wanted.given.get("targetSubscriptions") or ()]
    if target.lower() in targets:
        return f"Done: {wanted.file} has {target} in targetSubscriptions. Manifests may name it."
    place = wanted.file or "the parameter file of the fleet (azd: ROADSTEAD_TARGETS)"
    return (
        f"Done: manifests may name {target}. Add it to targetSubscriptions in {place}, so that the next "
        f"deployment keeps its roles:\n  '{target}'"
    )
