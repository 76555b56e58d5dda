"""``roadstead doctor``: each app examines itself; what is wrong, since when, and what mends it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.azure_deployment import Az, Deployment, DeploymentFailed, account, given_in
from cli.deployment_checks import DeploymentObstacle, obstacles
from cli.errors import CommandError, ExitCode, NoAnswer, UsageError
from cli.fleet_api.polling import polled
from cli.options import Address, Reason, seconds
from cli.terminal.output import Output, OutputOption, show
from cli.text import printable
from cli.times import age
from shared.app.api import schema
from shared.sentences import many

if TYPE_CHECKING:
    from cli.fleet_api.client import Api


def doctor(
    address: Address,
    *,
    before: Annotated[
        Path | None,
        typer.Option(
            "--before",
            metavar="PARAMETERS",
            help="Ask Azure what would stop a deployment with this parameter file, with the Azure CLI.",
        ),
    ] = None,
    azure: Annotated[
        str,
        typer.Option(
            "--azure",
            metavar="FLEET",
            help="Also read functions, queues and alerts, with the Azure CLI.",
        ),
    ] = "",
    location: Annotated[
        str, typer.Option("--location", metavar="REGION", help="With --before: the region of the apps.")
    ] = "",
    subscription: Annotated[
        str,
        typer.Option(
            "--subscription", metavar="ID", help="For the Azure CLI: that of the apps, not your sign-in's."
        ),
    ] = "",
    wait: Annotated[
        str,
        typer.Option("--wait", metavar="TIME", help="How long an app has to answer: it starts from zero."),
    ] = "2m",
    reason: Reason = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Have each app examine itself, and show what is wrong and what mends it.

    Settings, versions, clocks, credentials, and what each identity may do. With --before, nothing has to be
    deployed: providers, regions, permissions, names, quotas and policies. With --azure, also functions,
    properties of queues, and whom alerts reach. Ends with 1 if anything is wrong.
    """
    now = datetime.now(UTC)
    if before is not None:
        view = _before(before, location, subscription, now)
    else:
        with address.connect() as api:
            view = answered(api, reason, seconds(wait))
        if azure:
            view["findings"] += _in_azure(azure, subscription, view["apps"], now)
        now = datetime.now(UTC)
    names = [f"problem/{finding['app']}/{finding['what']}" for finding in view["findings"]]
    show(view, output, table=lambda _: rendered(view, now), names=lambda: names)
    raise typer.Exit(ExitCode.FAILED if view["findings"] else ExitCode.OK)


def _before(parameters: Path, location: str, subscription: str, now: datetime) -> schema.DoctorView:
    """Return what would stop a deployment; what is asked of Azure is printed to stderr."""
    if not parameters.is_file():
        raise UsageError(f"{parameters} is no file; copy infra/example.bicepparam, and change it")
    if not location:
        raise UsageError("--before needs --location, the region of the apps, such as westeurope")
    az = Az(partial(typer.echo, err=True))
    try:
        own = account(az, subscription)
        given = given_in(az, parameters)
        found = list(obstacles(az, Deployment(parameters, own, location, given, Path())))
    except DeploymentFailed as error:
        raise CommandError(str(error)) from error
    return {"apps": [], "findings": _findings(found, now)}


def _in_azure(
    fleet: str, subscription: str, apps: Sequence[schema.ExaminedApp], now: datetime
) -> list[schema.FindingView]:
    """Return what is wrong in Azure; what is asked of it is printed to stderr."""
    from cli.setup.deployed_checks import azure_obstacles

    az, known = Az(partial(typer.echo, err=True)), {app["app"]: app.get("functions", ()) for app in apps}
    try:
        return _findings(azure_obstacles(az, fleet, account(az, subscription), known), now)
    except DeploymentFailed as error:
        raise CommandError(str(error)) from error


def _findings(found: Iterable[DeploymentObstacle], now: datetime) -> list[schema.FindingView]:
    return [
        {
            "app": "deployment",
            "what": obstacle.what,
            "problem": obstacle.problem,
            "since": now.isoformat(timespec="seconds"),
            "remedy": obstacle.remedy,
        }
        for obstacle in found
    ]


def answered(api: Api, reason: str, longest: float) -> Any:
    """Return the findings once each app has answered; one that does not in time is a finding itself."""
    asked = api.examine(reason)["at"]
    view: Any = api.doctor(asked)
    for found in polled(lambda: api.doctor(asked), time.monotonic() + longest):
        if isinstance(found, NoAnswer):
            continue
        view = found
        if not any(finding["what"] == "app" for finding in view["findings"]):
            break
    return view


NOW = "deployment"
"""Whose findings are of this moment: Azure does not say since when."""


def rendered(view: schema.DoctorView, now: datetime) -> RenderableType:
    """Return a line for each app, and for each finding what is wrong, since when, and what mends it."""
    view = printable(view)
    apps = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for app in view["apps"]:
        examined = f"examined {age(app['examinedAt'], now)} ago" if app["examinedAt"] else "never examined"
        functions = [many(len(app["functions"]), "function")] if app.get("functions") else []
        apps.add_row(app["app"], app["version"], *functions, examined)
    parts: list[RenderableType] = [apps] if view["apps"] else []
    for finding in view["findings"]:
        parts.append(Text(f"{finding['app']}: {finding['what']}", style="bold red"))
        parts.append(_indented(Text(finding["problem"])))
        since = "" if finding["app"] == NOW else f"for {age(finding['since'], now)}; "
        parts += _remedy(since + finding["remedy"])
    found = many(len(view["findings"]), "finding") if view["findings"] else "nothing is wrong"
    return Group(*parts, Text(found, style="red" if view["findings"] else "green"))


def _remedy(text: str) -> Iterator[RenderableType]:
    """Yield the text, wrapped, and each command in it as a line of its own, which is copied as a whole."""
    for number, piece in enumerate(text.split("`")):
        words = piece.strip(" ,;:.") if number else piece.rstrip()
        if number % 2:
            yield Text(f"    {piece}", no_wrap=True, overflow="ignore")
        elif words:
            yield _indented(Text(words, style="dim"))


def _indented(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 2), expand=False)
