"""After azd has deployed: says what a person does next."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cli import azure_deployment
from cli.setup import entra


def let_browsers_return(client_id: str, address: str) -> None:
    """Add the address of the app to the registration with which people sign in."""
    try:
        entra.add_redirect(azure_deployment.Az(), client_id, address)
    except entra.NeedsAdministrator as request:
        print(f"An administrator of the directory has to do this, before people sign in:\n  {request}")
    except azure_deployment.DeploymentFailed as error:
        print(f"{error}. Run roadstead setup entra again.")


if __name__ == "__main__":
    webhook = os.environ["webhookUrl"]  # noqa: SIM112 - azd has the names of outputs
    given = azure_deployment.given_to_azd(Path(__file__).resolve().parents[1], os.environ)
    if given.get("entraClientId"):
        let_browsers_return(str(given["entraClientId"]), azure_deployment.address_in(webhook))
    fleet = str(given.get("fleet") or "FLEET")
    print(azure_deployment.ending(webhook, fleet, int(os.environ.get(azure_deployment.WARM) or 0)))
