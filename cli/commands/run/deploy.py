"""``roadstead deploy``: the apps of a fleet in Azure, with the Azure CLI."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cli import azure_deployment
from cli.azure_deployment import Az, Deployment, DeploymentFailed
from cli.deployment_checks import refuse_region
from cli.errors import CommandError, UsageError
from cli.options import OfApps


def deploy(
    parameters: Annotated[
        Path, typer.Argument(metavar="PARAMETERS", help="A parameter file, such as infra/fleet.bicepparam.")
    ],
    *,
    location: Annotated[
        str, typer.Option("--location", metavar="REGION", help="The region of the apps, such as westeurope.")
    ],
    subscription: OfApps = "",
    package: Annotated[
        Path | None,
        typer.Option("--package", metavar="ZIP", help="The code; by default what make package wrote."),
    ] = None,
    entra: Annotated[
        bool,
        typer.Option(
            "--entra",
            help="First register the sign-in in Entra, as roadstead setup entra does, and write its client "
            "id into PARAMETERS.",
        ),
    ] = False,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Show what would change, and change nothing.")
    ] = False,
) -> None:
    """Create or change the apps of a fleet in Azure.

    Needs the Azure CLI alone. Prints each step before it runs. A second run changes nothing that is the same.
    """
    if not parameters.is_file():
        raise UsageError(f"{parameters} is no file; copy infra/example.bicepparam, and change it")
    code = package or azure_deployment.newest_package()
    if not code.is_file():
        raise UsageError(f"{code} is no file; give the zip file of a release, or run make package")
    if entra and what_if:
        raise UsageError("--entra registers something; --what-if changes nothing")
    az, stays = Az(typer.echo), ""
    try:
        own = azure_deployment.account(az, subscription)
        given = azure_deployment.given_in(az, parameters)
        deployment = Deployment(parameters, own, location, given, code)
        refuse_region(az, deployment)
        if what_if:
            azure_deployment.preview(az, deployment)
            return
        stays = ". What was done stays; run the same command again to go on."
        if entra:
            _register(az, parameters, deployment.fleet)
            deployment = replace(deployment, given=azure_deployment.given_in(az, parameters))
        azure_deployment.register(az, own, deployment.targets)
        outputs = azure_deployment.deploy(az, deployment)
        if client_id := deployment.given.get("entraClientId"):
            _let_browsers_return(az, str(client_id), outputs["webhookUrl"])
    except DeploymentFailed as error:
        raise CommandError(f"{error}{stays}") from error


def _register(az: Az, parameters: Path, fleet: str) -> None:
    from cli.setup.entra import NeedsAdministrator, registration, remember_in_file

    try:
        found = registration(az, fleet, parameters.parent)
    except NeedsAdministrator as error:
        raise DeploymentFailed(f"an administrator of the directory has to do this first: {error}") from error
    remember_in_file(parameters, found.client_id)


def _let_browsers_return(az: Az, client_id: str, webhook: str) -> None:
    from cli.setup.entra import NeedsAdministrator, add_redirect

    try:
        add_redirect(az, client_id, azure_deployment.address_in(webhook))
    except NeedsAdministrator as error:
        typer.echo(f"An administrator of the directory has to do this, before people sign in:\n  {error}")
