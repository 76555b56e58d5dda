"""A deployment of one fleet, step by step, with the Azure CLI and the standard library alone.

Each step is printed before it runs. A second run changes nothing: what is registered is not registered again,
and the template writes only the secrets that have a value.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.prices.own_use import warm_price

OWN = (
    "Microsoft.App",
    "Microsoft.Insights",
    "Microsoft.KeyVault",
    "Microsoft.ManagedIdentity",
    "Microsoft.Network",
    "Microsoft.OperationalInsights",
    "Microsoft.ServiceBus",
    "Microsoft.Storage",
    "Microsoft.Web",
)
"""The resource providers of what is deployed, and of the subnet of the apps."""
OF_TARGETS = ("Microsoft.ContainerService", "Microsoft.EventGrid")
"""Those of clusters, and of Azure's events, in every target subscription."""
ORDER = ("deleter", "worker", "control")
"""In which order the apps get another version, up and back: who receives comes before who sends.

A message or a record of a newer form waits for an app that knows the form. Control decides, and writes the
record of the fleet, without which no app goes on: if it were first, all jobs would wait for the others. The
deleter and the worker write the records of the clusters on which they work, and control leaves those alone.
"""
WARM = "alwaysReadyGigabyteSeconds"
"""The output with what is billed for warm instances in a month."""
SCALING = 18
"""How many functions scale by themselves, those with HTTP as one: infra/main.bicep has the same number."""
PRICES = "https://azure.microsoft.com/pricing/details/functions/"
LONGEST_NAME = 64
"""Characters of the name of a deployment: learn.microsoft.com/azure/azure-resource-manager/management/
resource-name-rules."""


def deployment_name(fleet: str, part: str = "") -> str:
    """Return the name of the deployment of a fleet, or of a part of it.

    A deployment replaces the one with its name in the list of the subscription, and Azure refuses the name in
    another region: so each fleet has names of its own.
    """
    name = "-".join(filter(None, ("roadstead", fleet, part)))
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


class DeploymentFailed(Exception):
    """A step failed; the message has the innermost errors of Azure. What was done before stays.

    ``said`` is all that the Azure CLI said, "" where it was not the one that failed.
    """

    said = ""


_NO_CODE = "deployment"


def errors_in(said: str) -> list[tuple[str, str]]:
    """Return the innermost errors of what the Azure CLI says of a refused deployment: codes and messages.

    They are a JSON object with ``code``, ``message`` and ``details``, or a text, which has no code.
    """
    start = said.find("{")
    try:
        document, _ = json.JSONDecoder().raw_decode(said[start:]) if start >= 0 else (None, 0)
    except (ValueError, RecursionError):
        document = None
    found = list(_innermost(document.get("error", document))) if isinstance(document, dict) else []
    return found or [(_NO_CODE, said.strip())]


def _innermost(error: Any) -> Iterator[tuple[str, str]]:
    details = error.get("details") if isinstance(error, dict) else None
    if isinstance(details, Sequence) and not isinstance(details, str) and details:
        for detail in details:
            yield from _innermost(detail)
    elif isinstance(error, dict):
        yield str(error.get("code") or _NO_CODE), str(error.get("message") or "it said nothing")


@dataclass(frozen=True)
class Deployment:
    """What is deployed, and where."""

    parameters: Path
    """The parameter file (.bicepparam)."""
    subscription: str
    """The id of the subscription of the apps."""
    location: str
    given: Mapping[str, Any] = field(repr=False)
    """The values of the parameter file, some of which are secret."""
    package: Path
    """The zip file of the code."""
    template: str = ""
    """That of a parameter file which names none: one of JSON."""

    @property
    def fleet(self) -> str:
        """Return the name of the fleet, "" for a parameter file without one, which Azure refuses."""
        return str(self.given.get("fleet") or "")

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the ids of the target subscriptions."""
        return tuple(self.given.get("targetSubscriptions") or [self.subscription])

    @property
    def region(self) -> str:
        """Return the region of the apps, which a parameter file may name apart from the deployment's."""
        return str(self.given.get("location") or self.location)

    @property
    def warm(self) -> int:
        """Return the gigabyte-seconds of a month of warm instances, as infra/main.bicep has them."""
        counts = [int(count) for count in (self.given.get("alwaysReady") or {}).values() if count]
        spread = 2 * (SCALING - len(counts)) if self.given.get("zoneRedundant") else 0
        return (sum(counts) + spread) * 2 * 2_628_000

    @property
    def place(self) -> tuple[str, ...]:
        """Return the options that say what is deployed where."""
        name = deployment_name(self.fleet)
        return (
            *("--name", name, "--subscription", self.subscription, "--location", self.location),
            *(("--template-file", self.template) if self.template else ()),
            *("--parameters", str(self.parameters)),
        )


class Az:
    """The Azure CLI; it prints each command with its reason before it runs it."""

    def __init__(self, say: Callable[[str], object] = print) -> None:
        self.say = say

    def read(self, why: str, *arguments: str) -> Any:
        """Return what a command prints as JSON. Raises DeploymentFailed."""
        self._print(why, arguments)
        done = self._run([*arguments, "--output", "json"], subprocess.PIPE)
        try:
            return json.loads(done or "null")
        except ValueError:
            raise DeploymentFailed(f"az {' '.join(arguments[:3])} printed no JSON") from None

    def run(self, why: str, *arguments: str) -> None:
        """Run a command; what it prints is for the person. Raises DeploymentFailed."""
        self._print(why, arguments)
        self._run([*arguments], None)

    def send(self, why: str, text: str, *arguments: str) -> Any:
        """Run a command that reads ``@-``, its standard input: a secret is on no command line and in no file.

        Raises DeploymentFailed. Source: ``_expand_file_prefixed_files`` of azure-cli's core/commands.
        """
        self._print(why, arguments)
        return json.loads(self._run([*arguments, "--output", "json"], subprocess.PIPE, text) or "null")

    def _print(self, why: str, arguments: Sequence[str]) -> None:
        self.say(f"{why}\n  az {shlex.join(arguments)}")
        sys.stdout.flush()

    def _run(self, arguments: list[str], out: int | None, text: str | None = None) -> str:
        try:
            done = subprocess.run(
                ["az", *arguments], input=text, stdout=out, stderr=subprocess.PIPE, text=True, check=False
            )
        except OSError as error:
            raise DeploymentFailed(
                f"the Azure CLI (az) cannot be run: {error.strerror}; to install it: "
                "learn.microsoft.com/cli/azure/install-azure-cli"
            ) from error
        if done.returncode:
            said = " ".join((done.stderr or "").split()) or "it said nothing"  # an error is one line
            causes = (text if code == _NO_CODE else f"{code}: {text}" for code, text in errors_in(said))
            failed = DeploymentFailed(f"az {' '.join(arguments[:3])} failed: {'; '.join(causes)}")
            failed.said = said
            raise failed
        return done.stdout or ""


def account(az: Az, subscription: str) -> str:
    """Return the id of the subscription, which is the one of the sign-in if none is given."""
    chosen = ("--subscription", subscription) if subscription else ()
    return str(az.read("Find the subscription of the apps.", "account", "show", *chosen)["id"])


def given_in(az: Az, parameters: Path) -> dict[str, Any]:
    """Return the values of a parameter file, by name.

    Raise DeploymentFailed also for the value of a secret that ``secrets`` lacks: nobody would write it.
    """
    command = ("bicep", "build-params", "--file", str(parameters), "--stdout")
    built = az.read("Read the parameter file.", *command)
    found = json.loads(built["parametersJson"])["parameters"]
    given = {name: parameter.get("value") for name, parameter in found.items()}
    unlisted = {*(given.get("secretValues") or ())} - {*(given.get("secrets") or ())}
    if unlisted:
        names = ", ".join(sorted(unlisted))
        raise DeploymentFailed(
            f"{parameters}: secretValues has {names}, and secrets does not; name it in both"
        )
    return given


def given_to_azd(infra: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that azd has for parameters: those of its environment, and former answers.

    It asks for what is required and empty, after the hooks, and keeps the answers in its folder. Raise
    DeploymentFailed for a list that is none. Source: bicep_provider.go of github.com/Azure/azure-dev,
    cli/azd/pkg/infra/provisioning/bicep.
    """
    kept = Path(".azure", environ.get("AZURE_ENV_NAME", ""), "config.json")
    config = json.loads(kept.read_text()) if kept.is_file() else {}
    answers = config.get("infra", {}).get("parameters", {})

    def value_of(name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        text = re.sub(r"\$\{(\w+)=?([^}]*)\}", lambda part: environ.get(part[1]) or part[2], value)
        if text[:1] != "[":
            return text or answers.get(name)
        try:
            return json.loads(text)
        except ValueError as error:
            example = '["00000000-0000-0000-0000-000000000000"]'
            problem = f"{value} of azd's environment is no list in JSON ({error}); write it like {example}"
            raise DeploymentFailed(problem) from error

    given = json.loads((infra / "main.parameters.json").read_text())["parameters"]
    found = {name: value_of(name, parameter["value"]) for name, parameter in given.items()}
    return {name: value for name, value in found.items() if value}


def missing_providers(az: Az, own: str, targets: Sequence[str]) -> dict[str, list[str]]:
    """Return the resource providers that each subscription still has to register."""
    missing = dict[str, list[str]]()
    for subscription in dict.fromkeys((own, *targets)):
        wanted = {*(OWN if subscription == own else ()), *(OF_TARGETS if subscription in targets else ())}
        query = '[?registrationState==`"Registered"`].namespace'
        found = az.read(
            f"Find the resource providers of {subscription}.",
            *("provider", "list", "--subscription", subscription, "--query", query),
        )
        missing[subscription] = sorted(wanted - set(found))
    return missing


def register(az: Az, own: str, targets: Sequence[str]) -> None:
    """Register the resource providers that are missing. Each can take some minutes."""
    for subscription, providers in missing_providers(az, own, targets).items():
        for provider in providers:
            az.run(
                f"Register {provider}, which allows its resources in the subscription.",
                *("provider", "register", "--wait", "--namespace", provider, "--subscription", subscription),
            )


def preview(az: Az, deployment: Deployment) -> None:
    """Show what a deployment would register and change, and what would follow. Writes nothing."""
    for subscription, providers in missing_providers(az, deployment.subscription, deployment.targets).items():
        if providers:
            az.say(f"Would be registered first in {subscription}: {', '.join(providers)}.")
    az.run("Ask Azure what would change.", "deployment", "sub", "what-if", *deployment.place)
    then = f"create the resources, and publish {deployment.package} to the three apps"
    if deployment.warm:
        az.say(of_warm(deployment.warm))
    az.say(f"Nothing was changed. Without --what-if, the next steps are: {then}.")


def deploy(az: Az, deployment: Deployment) -> dict[str, Any]:
    """Create or change the resources, publish the code to each app, and return the outputs."""
    printed = az.read(
        "Create the resources, or change them: about five minutes.",
        *("deployment", "sub", "create", *deployment.place, "--query", "properties.outputs"),
    )
    outputs = {name: output["value"] for name, output in printed.items()}
    names = apps_among(outputs["functionAppNames"])
    for app in ORDER:
        publish(az, names[app], outputs["resourceGroupName"], deployment.subscription, deployment.package)
    az.say(ending(outputs["webhookUrl"], deployment.fleet or "FLEET", int(outputs[WARM])))
    return outputs


def publish(az: Az, app: str, group: str, subscription: str, package: Path) -> None:
    """Publish a package to a function app; it returns before Azure has replaced each instance."""
    az.run(
        f"Publish the code to {app}: about a minute. The package is built; Azure builds nothing.",
        *("functionapp", "deploy", "--subscription", subscription),
        *("--resource-group", group, "--name", app),
        *("--type", "zip", "--src-path", str(package)),
    )


def function_apps(az: Az, group: str, subscription: str) -> dict[str, str]:
    """Return the names of the three function apps in a resource group, by what each is."""
    place = ("--subscription", subscription, "--resource-group", group)
    return apps_among(
        az.read("Find the three apps.", "functionapp", "list", *place, "--query", "[].name") or []
    )


def apps_among(names: Sequence[str]) -> dict[str, str]:
    """Return the function apps of a fleet among some names, by what each is; raise DeploymentFailed."""
    found = [name for name in names if {f"{name}-worker", f"{name}-deleter"} <= {*names}]
    if len(found) != 1:
        raise DeploymentFailed(
            f"the three apps of one fleet are not to be found among: {', '.join(names) or 'no function app'}"
        )
    return {"control": found[0], "worker": f"{found[0]}-worker", "deleter": f"{found[0]}-deleter"}


def newest_package(folder: Path = Path("dist")) -> Path:
    """Return the newest package of ``make package``, or of a release, which need not be there."""
    found = sorted(folder.glob("roadstead-*.zip"), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else folder / "roadstead.zip"


def version_of(package: Path) -> str:
    """Return the version of Roadstead in a package; raise DeploymentFailed for another file."""
    try:
        with zipfile.ZipFile(package) as opened:
            text = opened.read("shared/version.py").decode()
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        text = ""
    found = re.search(r'^VERSION = "([^"\n]+)"$', text, re.MULTILINE)
    if found is None:
        raise DeploymentFailed(f"{package} is no package of Roadstead; a release has one, or make package")
    return found[1]


def address_in(webhook: str) -> str:
    """Return the address of the app with a webhook."""
    return webhook.partition("/api/")[0]


def _of_host(webhook: str, fleet: str) -> str:
    """Return how the git host is connected, by the address of its webhook; any git server has none."""
    if "/api/github" in webhook:
        return (
            "Register the GitHub App of the fleet, unless it has one:\n"
            f"  roadstead setup github {fleet}\n"
            f"With a token, create the webhook at GitHub with this address instead:\n  {webhook}\n"
        )
    if "/api/webhook" in webhook:
        return (
            "Create the webhook at the git host, unless it has one:\n"
            f"  roadstead setup gitlab {fleet}\n  roadstead setup azure-devops {fleet}\n"
        )
    return ""


def of_warm(gigabyte_seconds: int) -> str:
    """Return what warm instances are billed for in a month, and what that is listed at."""
    return (
        f"Warm instances are billed for {gigabyte_seconds:,} GB-s a month, whatever they do, by the meter "
        f"Always Ready Baseline: {warm_price(gigabyte_seconds)}. Other regions have other prices: {PRICES}"
    )


def ending(webhook: str, fleet: str, warm: int) -> str:
    """Return what a person does next, and which GB-s a month ``warm`` instances are billed for."""
    app = address_in(webhook)
    return (f"{of_warm(warm)}\n" if warm else "") + (
        f"Deployed. {_of_host(webhook, fleet)}"
        "Have each app examine itself, once you can sign in:\n"
        f"  roadstead doctor --azure {fleet} --url {app}\n"
        f"Then push a commit, and watch it in the console, {app}, or with:\n"
        f"  roadstead status --watch --url {app}"
    )
