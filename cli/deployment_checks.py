"""What would stop a deployment, before it: read with the Azure CLI, and nothing is written.

Resource Manager's own preflight says most: it evaluates the template and has each resource provider look at
what would be written: names that are taken, quotas, policies, and what whoever signed in may write. Source:
learn.microsoft.com/azure/azure-resource-manager/bicep/deploy-preflight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cli.azure_deployment import Az, Deployment, DeploymentFailed, errors_in, missing_providers

_SIGNED_IN = "sign in as somebody with Owner, or with Contributor and Role Based Access Control Administrator"
_NAMES = "give another name by the parameter resourceNames; a deleted vault's name is taken until its purge"
_QUOTA = "ask for more in the portal, Usage + quotas, or choose another --location"
_REMEDIES: Mapping[str, str] = {
    "AuthorizationFailed": _SIGNED_IN,
    "LinkedAuthorizationFailed": _SIGNED_IN,
    "RequestDisallowedByPolicy": "ask its owner for an exemption, or set what it wants, such as tags",
    "StorageAccountAlreadyTaken": _NAMES,
    "VaultAlreadyExists": _NAMES,
    "QuotaExceeded": _QUOTA,
    "SubscriptionIsOverQuotaForSku": _QUOTA,
    "LocationNotAvailableForResourceType": "choose another --location",
    "SubscriptionNotFound": "sign in to its tenant with `az login --tenant`, or correct targetSubscriptions",
    "ReadOnlyDisabledSubscription": "enable the subscription again, or choose another one",
}
"""What mends an error of the preflight, by its code: learn.microsoft.com/azure/azure-resource-manager/
troubleshooting/common-deployment-errors."""
_OTHERWISE = "correct the parameter file; learn.microsoft.com/azure/azure-resource-manager/troubleshooting"


@dataclass(frozen=True)
class DeploymentObstacle:
    """What would stop a deployment, and what mends it."""

    what: str
    problem: str
    remedy: str


def obstacles(az: Az, deployment: Deployment) -> Iterator[DeploymentObstacle]:
    """Yield what would stop a deployment. Raises DeploymentFailed where the Azure CLI cannot be asked."""
    for subscription, providers in missing_providers(az, deployment.subscription, deployment.targets).items():
        if providers:
            register = f"az provider register --wait --namespace $name --subscription {subscription}"
            yield DeploymentObstacle(
                f"resource providers of {subscription}",
                f"{', '.join(providers)}: not registered there; roadstead deploy registers them",
                f"`for name in {' '.join(providers)}; do {register}; done`",
            )
    yield from of_region(az, deployment.region)
    yield from preflight(az, deployment)


def of_region(az: Az, location: str) -> Iterator[DeploymentObstacle]:
    """Yield that a region has no apps of this kind. Raises DeploymentFailed."""
    regions = az.read(
        "Find the regions with Flex Consumption.",
        *("functionapp", "list-flexconsumption-locations", "--query", "[].name"),
    )
    if regions and location.replace(" ", "").lower() not in regions:
        problem = f"{location} has no Flex Consumption, the plan of the apps"
        yield DeploymentObstacle(
            "region", problem, f"choose another --location: {', '.join(sorted(regions))}"
        )


def refuse_region(az: Az, deployment: Deployment) -> None:
    """Raise DeploymentFailed for a region that has no apps of this kind."""
    for obstacle in of_region(az, deployment.region):
        raise DeploymentFailed(f"{obstacle.problem}; {obstacle.remedy}")


def preflight(az: Az, deployment: Deployment) -> Iterator[DeploymentObstacle]:
    """Yield what Azure refuses of what would be deployed."""
    command = ("deployment", "sub", "validate", *deployment.place)
    try:
        az.read("Have Azure validate what would be deployed: permissions, names, quotas, policies.", *command)
    except DeploymentFailed as error:
        yield from (_obstacle(code, message) for code, message in dict.fromkeys(errors_in(error.said)))


def _obstacle(code: str, message: str) -> DeploymentObstacle:
    return DeploymentObstacle(f"preflight {code}", message, _REMEDIES.get(code, _OTHERWISE))
