"""``roadstead upgrade``: another version of Roadstead for the three apps of a fleet, up or back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import azure_deployment
from cli.azure_deployment import ORDER, Az, DeploymentFailed
from cli.commands.run.doctor import answered
from cli.errors import CommandError, NoAnswer
from cli.fleet_api.polling import polled
from cli.options import Address, OfApps, Reason, seconds
from cli.terminal.output import echo

if TYPE_CHECKING:
    from cli.fleet_api.client import Api
    from shared.app.api import schema

START_SECONDS = 120.0
"""How long the apps have to answer before: each starts from zero; one that does not is no reason to stop."""
ASK_SECONDS = 15.0
"""How long an answer may take until the app is asked again: one of the former version may have taken it."""


def upgrade(
    address: Address,
    package: Annotated[
        Path, typer.Argument(metavar="ZIP", help="The package of a release, or of make package.")
    ],
    *,
    group: Annotated[str, typer.Option("--group", metavar="NAME", help="The resource group of the apps.")],
    subscription: OfApps = "",
    wait: Annotated[
        str, typer.Option("--wait", metavar="TIME", help="How long an app has to answer with the version.")
    ] = "10m",
    reason: Reason = "",
) -> None:
    """Give the three apps another version of Roadstead.

    The next one, or the one before. Needs the Azure CLI. Publishes to one app after the other, and waits
    until each says that it runs the version.
    """
    longest, az = seconds(wait), Az(typer.echo)
    try:
        version = azure_deployment.version_of(package)
        with address.connect() as api:
            why = reason or f"upgrade to {version}"
            before = versions(answered(api, why, START_SECONDS))
            echo(f"Now: {_listed(before)}. Then: {version}.", soft_wrap=True)
            own = azure_deployment.account(az, subscription)
            names = azure_deployment.function_apps(az, group, own)
            for app in ORDER:
                former = _row(api, app)
                azure_deployment.publish(az, names[app], group, own, package)
                _await(api, app, former, version, why, longest)
            view = api.doctor("")
    except DeploymentFailed as error:
        raise CommandError(f"{error}. What was published stays; {_GO_ON}.") from error
    echo(f"All three apps run {version}. {_back(before, version, group)}", soft_wrap=True)
    waits = [finding for finding in view["findings"] if "a newer app handles it" in finding["problem"]]
    if waits:
        echo(
            f"{len(waits)} records have a form of a newer version, and wait for that: until then, what they "
            "are about does not go on. roadstead doctor lists them.",
            soft_wrap=True,
        )


_GO_ON = "run the same command again to go on, or give it the former package to go back"


def versions(view: schema.DoctorView) -> dict[str, str]:
    """Return the version that each app said last, "" for one that never did."""
    return {app["app"]: app["version"] for app in view["apps"]}


def _await(api: Api, app: str, former: schema.ExaminedApp, version: str, reason: str, longest: float) -> None:
    """Ask an app again and again, until it answers with a version; raise CommandError.

    An instance of the former version may answer first: Azure replaces them one after the other, and gives no
    signal.
    """
    ask_at, said = 0.0, ""

    def read() -> schema.ExaminedApp:
        nonlocal ask_at
        if time.monotonic() >= ask_at:
            api.examine(reason)
            ask_at = time.monotonic() + ASK_SECONDS
        return _row(api, app)

    for found in polled(read, time.monotonic() + longest, answered=True):
        last = (
            "does not answer" if isinstance(found, NoAnswer) else f"runs {found['version'] or 'no version'}"
        )
        if not isinstance(found, NoAnswer) and found["version"] == version:
            if found["examinedAt"] != former["examinedAt"]:
                echo(f"{app} runs {version}.")
                return
            last = "has not answered yet"
        if last != said:
            echo(f"{app} {last}; waiting for {version} ...", soft_wrap=True)
            said = last
    raise CommandError(
        f"{app} has not answered with {version} in time. `az functionapp function list` shows whether it "
        "starts; its log says why not. The apps after it have the former version, and go on with it: "
        f"{_GO_ON}."
    )


def _row(api: Api, app: str) -> schema.ExaminedApp:
    return next(row for row in api.doctor("")["apps"] if row["app"] == app)


def _listed(found: dict[str, str]) -> str:
    return ", ".join(f"{app} {version or 'unknown'}" for app, version in found.items())


def _back(before: dict[str, str], version: str, group: str) -> str:
    """Return the way back, where there is one."""
    former = {known for known in before.values() if known} - {version}
    if not former:
        return "It is the version from before, or that is not known: keep the former package for a way back."
    return f"Back: roadstead upgrade roadstead-{max(former)}.zip --group {group}"
