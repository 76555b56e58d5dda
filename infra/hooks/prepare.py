"""Before azd provisions: registers the resource providers, and checks what would stop the deployment.

It needs the Azure CLI. As long as azd has no answer for what is required, it cannot be validated here: azd
asks after this hook, and then has Azure validate it (github.com/Azure/azure-dev/pull/4329).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cli import azure_deployment
from cli.deployment_checks import DeploymentObstacle, of_region, preflight

INFRA = Path(__file__).resolve().parents[1]
TEMPLATE = INFRA / "main.json"
"""As ``make bicep`` has compiled it: no compiler is needed."""


def main() -> None:
    """Register what is missing in the subscriptions; raise DeploymentFailed with what would stop the rest."""
    own = os.environ.get("AZURE_SUBSCRIPTION_ID")
    if not own:
        print("azd has no subscription yet: this is checked once it has, by azd up.")
        return
    az, given = azure_deployment.Az(), azure_deployment.given_to_azd(INFRA, os.environ)
    azure_deployment.register(az, own, given.get("targetSubscriptions") or [own])
    stops = obstacles(az, own, given)
    found = [f"{obstacle.what}: {obstacle.problem}\n  {obstacle.remedy}" for obstacle in stops]
    if found:
        raise azure_deployment.DeploymentFailed("\n".join(["This would stop the deployment.", *found]))


def obstacles(az: azure_deployment.Az, own: str, given: Mapping[str, Any]) -> Iterator[DeploymentObstacle]:
    """Yield what would stop it, as far as azd knows what is deployed."""
    location = str(given.get("location") or "")
    if location:
        yield from of_region(az, location)
    parameters = json.loads(TEMPLATE.read_text())["parameters"]
    asked = [name for name, its in parameters.items() if "defaultValue" not in its and name not in given]
    if asked:
        print(f"azd asks for {', '.join(asked)}, and then has Azure validate what it deploys.")
        return
    with TemporaryDirectory() as folder:
        file = Path(folder, "parameters.json")
        values = {name: {"value": value} for name, value in given.items()}
        file.write_text(json.dumps({"contentVersion": "1.0.0.0", "parameters": values}))
        of_azd = azure_deployment.Deployment(file, own, location, given, Path(), str(TEMPLATE))
        yield from preflight(az, of_azd)


if __name__ == "__main__":
    try:
        main()
    except azure_deployment.DeploymentFailed as error:
        sys.exit(str(error))
