"""The app registration with which people and scripts sign in, as ``infra/entra-app.json`` says.

What Entra leaves to an administrator of the directory is not tried again and again: the command prints the
request for one. Source: learn.microsoft.com/graph/api/application-post-applications, .../application-update,
.../serviceprincipal-post-approleassignedto.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.azure_deployment import Az, DeploymentFailed

GRAPH = "https://graph.microsoft.com/v1.0"
JSON = ("--headers", "Content-Type=application/json", "--body", "@-")
REDIRECT = "/.auth/login/aad/callback"
"""Where App Service Authentication takes a browser back."""
_DENIED = ("Authorization_RequestDenied", "Insufficient privileges", "Forbidden")


class NeedsAdministrator(Exception):
    """Entra leaves this to an administrator of the directory; the message is the request for one."""


@dataclass(frozen=True)
class Registration:
    """An app registration: its object id and its client id."""

    object_id: str
    client_id: str


def registration(az: Az, fleet: str, templates: Path) -> Registration:
    """Return the registration of a fleet, created or brought to what the files say.

    Raises DeploymentFailed, and NeedsAdministrator.
    """
    wanted = {**_file(templates / "entra-app.json"), "displayName": f"Roadstead {fleet}"}
    known = _found(az, wanted["displayName"])
    if known is None:
        why = "Register the app in Entra."
        made = _asking(
            f"register the application {wanted['displayName']} (role Application Developer), or give that "
            "role to whoever runs roadstead setup entra",
            lambda: az.send(why, json.dumps(wanted), "rest", "--method", "POST", "--url", _url(), *JSON),
        )
        known = {**wanted, "id": made["id"], "appId": made["appId"]}
    found = Registration(known["id"], known["appId"])
    change = _change(known, wanted, _file(templates / "entra-azure-cli.json"))
    for part in change:
        # The Azure CLI can be allowed a scope only once the scope is there.
        _asking(
            f"change the application {wanted['displayName']} ({found.client_id}), or make whoever runs "
            "roadstead setup entra its owner",
            lambda part=part: az.send(  # type: ignore[misc]
                f"Set {', '.join(part)} of the registration.",
                json.dumps(part),
                *("rest", "--method", "PATCH", "--url", f"{_url()}/{found.object_id}", *JSON),
            ),
        )
    _principal(az, found.client_id, wanted["displayName"])
    return found


def add_redirect(az: Az, client_id: str, address: str) -> None:
    """Let a browser return to an app after the sign-in. Raises DeploymentFailed, and NeedsAdministrator."""
    url = f"{_url()}?$filter=appId eq '{client_id}'"
    known = az.read("Look for the app registration.", "rest", "--method", "GET", "--url", url)["value"]
    if not known:
        raise DeploymentFailed(f"the directory has no application with the client id {client_id}")
    web = known[0].get("web") or {}
    redirect, uris = f"{address}{REDIRECT}", list(web.get("redirectUris") or ())
    if redirect in uris:
        return
    body = {"web": {"redirectUris": [*uris, redirect]}}
    _asking(
        f"add {redirect} to the redirect URIs of the application {client_id}",
        lambda: az.send(
            "Let browsers return to the app after the sign-in.",
            json.dumps(body),
            *("rest", "--method", "PATCH", "--url", f"{_url()}/{known[0]['id']}", *JSON),
        ),
    )


def remember_in_azd(fleet: str, client_id: str, say: Callable[[str], object]) -> bool:
    """Give the client id to the environment of azd in the folder; return whether azd has it.

    A folder without an environment gets one with the name of the fleet. That of another fleet stays as it is.
    Source: ``envNewAction`` and ``envSetAction`` of github.com/Azure/azure-dev, cli/azd/cmd/env.go.
    """
    if not Path("azure.yaml").is_file() or not shutil.which("azd"):
        return False
    known = _azd("env", "get-values", "--output", "json") if Path(".azure/config.json").is_file() else "{}"
    try:
        former = json.loads(known or "{}").get("ROADSTEAD_FLEET", fleet)
    except (AttributeError, ValueError):
        return False
    if former != fleet:
        say(f"The environment of azd is that of the fleet {former}, and stays as it is.")
        return False
    if not Path(".azure/config.json").is_file():
        _azd("env", "new", fleet, "--no-prompt")
    for name, value in (("ROADSTEAD_FLEET", fleet), ("ROADSTEAD_ENTRA_CLIENT_ID", client_id)):
        say(f"Give azd {name}.\n  azd env set {name} {value}")
        _azd("env", "set", name, value)
    return True


def _azd(*arguments: str) -> str:
    done = subprocess.run(["azd", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise DeploymentFailed(f"azd {' '.join(arguments[:2])} failed: {done.stderr.strip()}")
    return done.stdout


def remember_in_file(parameters: Path, client_id: str) -> None:
    """Write the client id into a parameter file, in the place of another one."""
    line, text = f"param entraClientId = '{client_id}'", parameters.read_text()
    changed, found = re.subn(r"^param entraClientId = .*$", line, text, count=1, flags=re.MULTILINE)
    parameters.write_text(changed if found else f"{text.rstrip()}\n\n{line}\n")


def consent_page(tenant: str, client_id: str) -> str:
    """Return where an administrator consents for a directory whose people may not."""
    return f"https://login.microsoftonline.com/{tenant}/adminconsent?client_id={client_id}"


def _url() -> str:
    return f"{GRAPH}/applications"


def _file(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except OSError as error:
        raise DeploymentFailed(f"{path} cannot be read: give the folder infra with --infra") from error
    return found


def _found(az: Az, name: str) -> dict[str, Any] | None:
    """Return the registration with a name, None for none; two are refused."""
    url = f"{_url()}?$filter=displayName eq '{name}'"
    known = az.read(f"Look for {name} in Entra.", "rest", "--method", "GET", "--url", url)["value"]
    if len(known) > 1:
        ids = ", ".join(app["appId"] for app in known)
        raise DeploymentFailed(
            f"the directory has {len(known)} applications {name} ({ids}): delete all but one"
        )
    return dict(known[0]) if known else None


def _change(
    known: Mapping[str, Any], wanted: Mapping[str, Any], azure_cli: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return what differs, as bodies of PATCH in their order. What others added stays."""
    parts: list[dict[str, Any]] = []
    own = f"api://{known['appId']}"
    api, web = known.get("api") or {}, known.get("web") or {}
    first: dict[str, Any] = {}
    if own not in (known.get("identifierUris") or ()):
        first["identifierUris"] = [*(known.get("identifierUris") or ()), own]
    roles = _with_missing(known.get("appRoles") or (), wanted["appRoles"], "id")
    if roles:
        first["appRoles"] = roles
    scopes = _with_missing(
        api.get("oauth2PermissionScopes") or (), wanted["api"]["oauth2PermissionScopes"], "id"
    )
    if scopes:
        first["api"] = {**api, "oauth2PermissionScopes": scopes}
    if not (web.get("implicitGrantSettings") or {}).get("enableIdTokenIssuance"):
        first["web"] = wanted["web"]
    if first:
        parts.append(first)
    clients = _with_missing(
        api.get("preAuthorizedApplications") or (), azure_cli["api"]["preAuthorizedApplications"], "appId"
    )
    if clients:
        parts.append({"api": {"preAuthorizedApplications": clients}})
    return parts


def _with_missing(
    known: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]], key: str
) -> list[Mapping[str, Any]]:
    """Return the known entries with the wanted ones that are missing, [] if none is."""
    has = {entry[key] for entry in known}
    missing = [entry for entry in wanted if entry[key] not in has]
    return [*known, *missing] if missing else []


def _principal(az: Az, client_id: str, name: str) -> dict[str, Any]:
    """Return the service principal of the registration in this directory."""
    url = f"{GRAPH}/servicePrincipals"
    query = f"{url}?$filter=appId eq '{client_id}'"
    found = az.read("Look for its service principal.", "rest", "--method", "GET", "--url", query)["value"]
    if found:
        return dict(found[0])
    made = _asking(
        f"create the service principal of {name} ({client_id}): az ad sp create --id {client_id}",
        lambda: az.send(
            "Create its service principal, which people get roles of.",
            json.dumps({"appId": client_id}),
            *("rest", "--method", "POST", "--url", url, *JSON),
        ),
    )
    return dict(made)


def give(az: Az, found: Registration, fleet: str, role: str, person: str) -> None:
    """Give a person or an identity a role of the API: ``person`` is an e-mail address or an object id.

    Raises DeploymentFailed, and NeedsAdministrator.
    """
    principal = _principal(az, found.client_id, f"Roadstead {fleet}")
    roles = {entry["value"]: entry["id"] for entry in principal.get("appRoles") or ()}
    if role not in roles:
        raise DeploymentFailed(f"there is no role {role}: it is one of {', '.join(sorted(roles))}")
    who = person
    if "@" in person:
        shown = ("ad", "user", "show", "--id", person, "--query", "id")
        who = str(az.read(f"Look for {person} in Entra.", *shown))
    url = f"{GRAPH}/servicePrincipals/{principal['id']}/appRoleAssignedTo"
    known = az.read("See who has which role.", "rest", "--method", "GET", "--url", url)["value"]
    if any((entry["principalId"], entry["appRoleId"]) == (who, roles[role]) for entry in known):
        return
    body = {"principalId": who, "resourceId": principal["id"], "appRoleId": roles[role]}
    _asking(
        f"give {person} the role {role} of Roadstead {fleet} (Enterprise applications, Users and groups), "
        f"as Cloud Application Administrator: roadstead setup entra {fleet} --give {role}={person}",
        lambda: az.send(
            f"Give {person} the role {role}.",
            json.dumps(body),
            *("rest", "--method", "POST", "--url", url, *JSON),
        ),
    )


def _asking(request: str, act: Callable[[], Any]) -> Any:
    """Return what an act returns; raise NeedsAdministrator with the request if Entra denies it."""
    try:
        return act()
    except DeploymentFailed as error:
        if any(word in str(error) for word in _DENIED):
            raise NeedsAdministrator(request) from error
        raise
