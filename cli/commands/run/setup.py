"""``roadstead setup``: what is set up once around a deployment, with the Azure CLI."""

from __future__ import annotations

import os
import re
import sys
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from cli import azure_deployment
from cli.azure_deployment import Az, DeploymentFailed
from cli.errors import CommandError, ExitCode, UsageError
from cli.options import OfApps, seconds
from cli.setup import azure_fleet
from cli.setup.target import FleetTarget, Right
from shared.github_app import OF_APP, Feature

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
Fleet = Annotated[str, typer.Argument(metavar="FLEET", help="The name of the fleet, as in its deployment.")]


def github(
    fleet: Fleet,
    *,
    subscription: OfApps = "",
    allow: Annotated[
        list[Feature] | None,
        typer.Option(
            "--allow", metavar="FEATURE", help="Also let the App do this: proposals, issues, teams."
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Register another App, although the fleet has one.")
    ] = False,
    key: Annotated[
        str,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="Give the apps a new key of the App: - for standard input, or a file, which is removed.",
        ),
    ] = "",
    rotate: Annotated[
        bool, typer.Option("--rotate-webhook-secret", help="Have GitHub sign webhooks with a new secret.")
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--refresh", help="Have the apps fetch what the page /setup/github gave the vault."),
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="PORT", help="The port of the page at 127.0.0.1 (default: a free one)."
        ),
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="How long to wait for a person.")
    ] = "1h",
) -> None:
    """Register the GitHub App of a fleet, and give it to the deployed apps.

    Opens a page in the browser; there, GitHub asks for a name, and for the repository. The key, the webhook
    secret and the ids go into the vault of the fleet.
    """
    from cli.setup import github as github_setup
    from cli.setup.host_webhook import Conversation

    if replace and (key or rotate):
        raise UsageError(
            "--replace registers an App; it goes with neither --key-file nor --rotate-webhook-secret"
        )
    given, within = _text_of("--key-file", key) if key else "", seconds(timeout)
    terminal = Conversation(typer.echo, webbrowser.open if browser else lambda _: None, time.sleep)
    with _one_line_errors():
        github_setup.check_library()
        az = Az(typer.echo)
        found = azure_fleet.find(az, fleet, azure_deployment.account(az, subscription))
        if given:
            github_setup.replace_key(az, found, terminal, given)
            _remove(key)
        if rotate:
            github_setup.rotate_webhook_secret(az, found, terminal, given)
        if again:
            azure_fleet.refresh(az, found, OF_APP)
        if not (given or rotate or again):
            github_setup.register(
                az, found, terminal, features=allow or (), port=port, replace=replace, within=within
            )


def gitlab(
    fleet: Fleet,
    *,
    subscription: OfApps = "",
    token: Annotated[
        str,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Give the apps their token: - for standard input, or a file, which is removed.",
        ),
    ] = "",
    rotate: Annotated[
        bool, typer.Option("--rotate-webhook-secret", help="Have GitLab sign with a new token.")
    ] = False,
) -> None:
    """Create the webhook of a fleet at GitLab, and give the deployed apps its secret.

    The variable GITLAB_TOKEN has the token of a maintainer of the project, with the scope api. It is used
    here and stored nowhere. A second run changes nothing.
    """
    from cli.setup import gitlab as gitlab_setup
    from cli.setup.host_webhook import Conversation

    maintainer = os.environ.get("GITLAB_TOKEN", "")
    if not maintainer:
        raise UsageError("set GITLAB_TOKEN to the token of a maintainer of the project, with the scope api")
    given = _text_of("--token-file", token).strip() if token else ""
    with _one_line_errors():
        az = Az(typer.echo)
        found = azure_fleet.find(az, fleet, azure_deployment.account(az, subscription))
        terminal = Conversation(typer.echo, lambda _: None, time.sleep)
        gitlab_setup.set_up(az, found, terminal, maintainer, given, rotate=rotate)
        if token:
            _remove(token)


def azure_devops(
    fleet: Fleet,
    *,
    subscription: OfApps = "",
    rotate: Annotated[
        bool, typer.Option("--rotate-webhook-secret", help="Give the subscriptions a new password.")
    ] = False,
) -> None:
    """Create the service hooks of a fleet at Azure DevOps, and check that its apps may read there.

    Your sign-in of the Azure CLI must be an administrator of the project. A second run changes nothing.
    """
    from cli.setup import azure_devops as azure_devops_setup
    from cli.setup.host_webhook import Conversation

    with _one_line_errors():
        az = Az(typer.echo)
        own = azure_deployment.account(az, subscription)
        found = azure_fleet.find(az, fleet, own)
        terminal = Conversation(typer.echo, lambda _: None, time.sleep)
        azure_devops_setup.set_up(az, found, terminal, own, rotate=rotate)


def entra(
    fleet: Fleet,
    *,
    subscription: OfApps = "",
    infra: Annotated[
        Path, typer.Option("--infra", metavar="FOLDER", help="The folder with entra-app.json.")
    ] = Path("infra"),
    give: Annotated[
        list[str] | None,
        typer.Option(
            "--give", metavar="ROLE_AND_PERSON", help="Also give a role, such as Approver=ada@example.com."
        ),
    ] = None,
) -> None:
    """Register the sign-in of a fleet in Entra.

    A second run changes nothing. Where Entra asks for an administrator of the directory, the command prints
    the request for one. Once the fleet is deployed, browsers may return to its app.
    """
    from cli.setup import entra as directory

    if not NAME.fullmatch(fleet):
        raise UsageError(f"FLEET {fleet[:40]!r} must have lower-case letters, digits and hyphens")
    pairs = [_role_and_person(given) for given in give or ()]
    with _one_line_errors():
        az = Az(typer.echo)
        signed_in = az.read("Find the directory.", "account", "show", *_chosen(subscription))
        try:
            found = directory.registration(az, fleet, infra)
            remembered = directory.remember_in_azd(fleet, found.client_id, typer.echo)
            address = azure_fleet.address_of(az, fleet, signed_in["id"])
            if address:
                directory.add_redirect(az, found.client_id, address)
            for role, person in pairs:
                directory.give(az, found, fleet, role, person)
        except directory.NeedsAdministrator as error:
            request = (
                f"An administrator of the directory has to do this:\n  {error}\nThen run the command again."
            )
            typer.echo(request)
            raise typer.Exit(ExitCode.FAILED) from error
    for_whom = "azd has it" if remembered else "for the parameter file, or azd (ROADSTEAD_ENTRA_CLIENT_ID)"
    following = (
        "" if address else "\nThen deploy the fleet with it. The deployment lets browsers return to the app."
    )
    page = directory.consent_page(signed_in["tenantId"], found.client_id)
    typer.echo(
        f"Done. The client id, {for_whom}:\n"
        f"  param entraClientId = '{found.client_id}'{following}\n"
        f"If people of your directory may not consent for themselves, an administrator does, once:\n  {page}"
    )


def _chosen(subscription: str) -> tuple[str, ...]:
    return ("--subscription", subscription) if subscription else ()


def _role_and_person(given: str) -> tuple[str, str]:
    role, separator, person = given.partition("=")
    if not (role and separator and person):
        raise UsageError(f"--give {given[:60]!r} must be ROLE=PERSON, such as Approver=ada@example.com")
    return role, person


def subscription(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="The subscription that clusters are to be in: its id or name."),
    ],
    parameters: Annotated[
        Path | None,
        typer.Argument(metavar="PARAMETERS", help="The parameter file of the fleet, in the folder infra."),
    ] = None,
    *,
    fleet: Annotated[
        str, typer.Option("--fleet", metavar="FLEET", help="Instead of PARAMETERS: the name of the fleet.")
    ] = "",
    allow: Annotated[
        list[Right] | None,
        typer.Option("--allow", metavar="PARAMETER", help="With --fleet: what the apps also may do there."),
    ] = None,
    assignable: Annotated[
        list[str] | None,
        typer.Option("--assignable-role", metavar="ID", help="With --fleet: a role of assignableRoles."),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(
            "--tag",
            metavar="NAME_AND_VALUE",
            help="With --fleet: a tag of what is created, such as team=platform.",
        ),
    ] = None,
    events: Annotated[bool, typer.Option(help="With --fleet: have Azure report what changes there.")] = True,
    infra: Annotated[
        Path, typer.Option("--infra", metavar="FOLDER", help="With --fleet: the folder of the templates.")
    ] = Path("infra"),
    subscription: OfApps = "",
) -> None:
    """Prepare one more subscription for clusters.

    Registers what is missing there, gives the apps the roles that PARAMETERS or the options ask for, and has
    Azure report what changes. You must be allowed to assign roles there. A second run changes nothing.
    """
    from cli.setup.target import add_target

    if (parameters is None) == (not fleet):
        raise UsageError("give PARAMETERS, the file that the fleet was deployed with, or --fleet, its name")
    if parameters is not None and not parameters.is_file():
        raise UsageError(f"{parameters} is no file; give the one that the fleet was deployed with")
    with _one_line_errors():
        az = Az(typer.echo)
        own = azure_deployment.account(az, subscription)
        found = azure_deployment.account(az, target)
        if parameters is not None:
            given = azure_deployment.given_in(az, parameters)
            wanted = FleetTarget(given, parameters.parent, str(parameters))
        else:
            rights = {right.value: True for right in allow or ()}
            roles = {"assignableRoles": assignable} if assignable else {}
            tags = dict(_pair("--tag", pair) for pair in tag or ())
            given = {"fleet": fleet, "hearAzureEvents": events, "tags": tags, **rights, **roles}
            wanted = FleetTarget(given, infra)
        add_target(az, wanted, target=found, own=own)


def _pair(option: str, given: str) -> tuple[str, str]:
    name, separator, value = given.partition("=")
    if not (name and separator):
        raise UsageError(f"{option} {given[:60]!r} must be NAME=VALUE")
    return name, value


def _text_of(option: str, place: str) -> str:
    """Return what standard input or a file has."""
    if place == "-":
        return sys.stdin.read()
    try:
        return Path(place).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option} {place} cannot be read") from error


def _remove(place: str) -> None:
    if place != "-":
        Path(place).unlink(missing_ok=True)
        typer.echo(f"Removed {place}: the vault has the key.")


@contextmanager
def _one_line_errors() -> Iterator[None]:
    from cli.setup.host_webhook import SetupFailed
    from shared.github_app import GitHubRefused

    try:
        yield
    except (DeploymentFailed, GitHubRefused, SetupFailed) as error:
        raise CommandError(f"{str(error).removesuffix('.')}. What was done stays.") from error
