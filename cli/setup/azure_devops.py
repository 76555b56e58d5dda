"""The set-up of a fleet on Azure DevOps: who its apps are there, and the service hooks of its repository.

Every call goes through ``az rest``, with the sign-in of the person. Sources: the specifications 7.1 of
hooks and memberEntitlementManagement in github.com/MicrosoftDocs/vsts-rest-api-specs;
learn.microsoft.com/azure/devops/ integrate/get-started/authentication/service-principal-managed-identity:
an identity is of the directory of the organization, and needs a license of its own. The header
X-VSS-ResourceTenant of any answer names that directory.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode

import httpx

from cli.azure_deployment import Az, DeploymentFailed
from cli.setup.azure_fleet import AzureFleet
from cli.setup.host_webhook import Conversation, SetupFailed, address, give, place, problem_of

RESOURCE = "499b84ac-1321-427f-aa17-267ca6975798"
"""What a token of Entra for Azure DevOps is for."""
VERSION = "api-version=7.1"
EVENTS = ("git.push", "git.pullrequest.created", "git.pullrequest.updated", "git.pullrequest.merged")
WITHOUT_CODE = ("none", "stakeholder")
"""Access levels with which nobody reads the code of a private project."""
APPS = ("control", "worker", "deleter")
USER = "roadstead"
TIMEOUT = 20.0


@dataclass(frozen=True)
class Organization:
    """An organization by the addresses of its API, and the names of a project and a repository in it."""

    url: str
    members: str
    project: str
    repository: str


def set_up(az: Az, fleet: AzureFleet, terminal: Conversation, subscription: str, *, rotate: bool) -> None:
    """Create the service hooks that are missing, and say what a person does so that the apps may read."""
    there = _organization(fleet)
    _require_one_directory(az, there, subscription)
    path = f"{quote(there.project)}/_apis/git/repositories/{quote(there.repository)}?{VERSION}"
    repository = _call(az, "Find the repository.", "GET", f"{there.url}/{path}")
    known = list(_subscriptions(az, there, address(fleet), repository["id"]))
    missing = [event for event in EVENTS if event not in {found["eventType"] for found in known}]
    asleep = [found for found in known if found.get("status") != "enabled"]
    for found in asleep:
        terminal.say(f"Azure DevOps has the subscription of {found['eventType']} as {found.get('status')}.")
    if missing or asleep or rotate:
        secret = secrets.token_urlsafe(32)
        give(az, fleet, secret, lambda: _write(az, there, fleet, repository, known, secret))
        problem = _problem(fleet, terminal, secret)
        if problem:
            terminal.say(f"The vault has everything, but {problem}. See roadstead doctor.")
    without = list(_without_access(az, fleet, there))
    if without:
        raise SetupFailed(_request(there, without))
    terminal.say(f"Done: {there.repository} has its service hooks. Push a commit.")


def _organization(fleet: AzureFleet) -> Organization:
    """Return what the address of the repository names: /ORGANIZATION/PROJECT/_git/NAME."""
    where = place(fleet, "azure-devops")
    before, found, name = unquote(where.path).strip("/").partition("/_git/")
    organization, _, project = before.partition("/")
    if not (found and name and organization):
        raise SetupFailed(
            "gitUrl must be https://dev.azure.com/ORGANIZATION/PROJECT/_git/NAME, as Azure DevOps shows it "
            "with Clone"
        )
    server = where.netloc
    url = f"{where.scheme}://{server}/{quote(organization)}"
    return Organization(url, f"{where.scheme}://vsaex.{server}/{quote(organization)}", project or name, name)


def _call(az: Az, why: str, method: str, url: str, body: object = None) -> Any:
    """Call Azure DevOps as the person; a body goes through standard input."""
    asked = ("rest", "--resource", RESOURCE, "--method", method, "--url", url)
    if body is None:
        return az.read(why, *asked)
    headers = ("--headers", "Content-Type=application/json")
    return az.send(why, json.dumps(body), *asked, *headers, "--body", "@-", "--query", "id")


def _require_one_directory(az: Az, there: Organization, subscription: str) -> None:
    """Raise SetupFailed where the identities of the apps are of another directory than the organization."""
    chosen = ("--subscription", subscription)
    own = str(az.read("Find the directory of the apps.", "account", "show", *chosen)["tenantId"])
    try:
        answer = httpx.head(there.url, timeout=TIMEOUT, follow_redirects=False)
    except httpx.HTTPError as error:
        raise SetupFailed(f"{there.url} does not answer: {type(error).__name__}") from None
    directory = answer.headers.get("x-vss-resourcetenant", "")
    if not directory.strip("0-"):
        raise SetupFailed(
            f"{there.url} is connected to no directory of Entra, so no managed identity can be a user there: "
            "connect it (Organization settings, Microsoft Entra), or use gitHost git with a token"
        )
    if directory.lower() != own.lower():
        raise SetupFailed(
            f"{there.url} is of the directory {directory}, and the apps are of {own}: a managed identity is "
            "a user of an organization of its own directory alone. Use gitHost git with a token"
        )


def _subscriptions(az: Az, there: Organization, url: str, repository: str) -> Iterator[dict[str, Any]]:
    """Yield the service hooks that lead from the repository to the app."""
    query = urlencode({"publisherId": "tfs", "consumerId": "webHooks"})
    place_of = f"{there.url}/_apis/hooks/subscriptions?{query}&{VERSION}"
    for found in _call(az, "Find the service hooks.", "GET", place_of)["value"]:
        inputs = found.get("consumerInputs") or {}
        of = (found.get("publisherInputs") or {}).get("repository")
        if inputs.get("url") == url and of == repository and found.get("eventType") in EVENTS:
            yield found


def _write(
    az: Az,
    there: Organization,
    fleet: AzureFleet,
    repository: dict[str, Any],
    known: list[dict[str, Any]],
    secret: str,
) -> None:
    """Create or change the subscription of each event; all have one password."""
    ids = {found["eventType"]: found["id"] for found in known}
    for event in EVENTS:
        body = {
            "publisherId": "tfs",
            "eventType": event,
            "resourceVersion": "1.0",
            "consumerId": "webHooks",
            "consumerActionId": "httpRequest",
            "status": "enabled",
            "publisherInputs": {"projectId": repository["project"]["id"], "repository": repository["id"]},
            "consumerInputs": {
                "url": address(fleet),
                "basicAuthUsername": USER,
                "basicAuthPassword": secret,
                "messagesToSend": "none",
                "detailedMessagesToSend": "none",
            },
        }
        method, rest = ("PUT", f"/{ids[event]}") if event in ids else ("POST", "")
        url = f"{there.url}/_apis/hooks/subscriptions{rest}?{VERSION}"
        _call(az, f"Have Azure DevOps report {event}.", method, url, body)


def _without_access(az: Az, fleet: AzureFleet, there: Organization) -> Iterator[tuple[str, str]]:
    """Yield the identities of the apps that read no code there: their names and their object ids."""
    for app in APPS:
        name = f"id-roadstead-{fleet.name}-{app}"
        if name not in fleet.identities:
            raise SetupFailed(f"there is no identity {name}: deploy the fleet first")
        query = ("--query", "{principalId: principalId}")
        found = az.read(f"Read {name}.", "identity", "show", "--ids", fleet.identities[name], *query)
        principal = str(found["principalId"])
        if not _reads_code(az, there, name, principal):
            yield name, principal


def _reads_code(az: Az, there: Organization, name: str, principal: str) -> bool:
    """Return whether an identity is a member with a license; False where the person may not see members."""
    query = urlencode({"$filter": f"name eq '{name}'", "select": "license", "api-version": "7.1-preview.2"})
    try:
        url = f"{there.members}/_apis/memberentitlements?{query}"
        found = _call(az, f"See whether {name} is a member.", "GET", url)
    except DeploymentFailed:
        return False
    for member in found.get("members") or found.get("items") or ():
        if str(member.get("member", {}).get("originId", "")).lower() == principal.lower():
            return member.get("accessLevel", {}).get("accountLicenseType", "none") not in WITHOUT_CODE
    return False


def _request(there: Organization, without: list[tuple[str, str]]) -> str:
    """Return what an administrator of the organization does."""
    names = "\n".join(f"  {name} (object id {principal})" for name, principal in without)
    return (
        "an administrator of the organization has to do this, which the command cannot see as done:\n"
        f"  {there.url}/_settings/users: Add users, with the access level Basic, and to the project "
        f"{there.project} as Contributors:\n{names}\nThen run the command again"
    )


def _problem(fleet: AzureFleet, terminal: Conversation, secret: str) -> str:
    """Send an event that needs no plan with the new password, until the app takes it."""
    given = base64.b64encode(f"{USER}:{secret}".encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {given}"}
    return problem_of(address(fleet), headers, b'{"eventType": "setup", "id": "setup"}', terminal.pause)
