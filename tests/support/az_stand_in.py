"""The Azure CLI as a deployment uses it, over a subscription in a file: ``AZ_STATE`` names it.

It is a program of its own. What it knows of Azure: a provider is registered once; a template writes the
secrets that have a value, gives the others a first one where the compiled template does, and leaves what is
there; what it creates has the outputs, tags, settings and queues that Microsoft's compiler resolved
(``AZ_OUTPUTS``, ``AZ_FIRST``, ``AZ_RESOURCES``, ``AZ_SETTINGS``, ``AZ_QUEUES``). An app has the values of its
references to the vault as they were when it fetched them (learn.microsoft.com/azure/app-service/
app-service-key-vault-references). Resource Manager shows no value of a secret. ``@-`` is standard input
(azure-cli, ``_expand_file_prefixed_files``). The log has every command.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

TENANT = "00000000-0000-0000-0000-0000000000aa"
SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
EMPTY: dict[str, Any] = {
    **{"providers": {}, "secrets": {}, "tags": {}, "fleet": None, "code": {}, "running": {}},
    **{
        "access": {},
        "restarts": 0,
        "directory": {"applications": [], "servicePrincipals": [], "assigned": []},
    },
}
GRAPH = "https://graph.microsoft.com/v1.0/"
REFERENCE = re.compile(r"@Microsoft\.KeyVault\(.*SecretName=([\w-]+)\)")
VAULT_SECRET = re.compile(r".*/vaults/[^/]+/secrets/([^/?]+)\?api-version=.+")


class Shown(str):
    """A text that a command prints; another one is an error."""

    __slots__ = ()


def main(arguments: list[str]) -> int:
    """Run a command; return its exit code."""
    place = Path(os.environ["AZ_STATE"])
    state = json.loads(place.read_text()) if place.exists() else json.loads(json.dumps(EMPTY))
    with Path(f"{place}.log").open("a") as log:
        log.write(" ".join(arguments) + "\n")
    before = json.dumps(state, sort_keys=True)
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    given = {name: value for name, value in pairs if name.startswith("--")}
    answer = _answer(arguments, given, state)
    if json.dumps(state, sort_keys=True) != before:
        written = place.with_suffix(".new")
        written.write_text(json.dumps(state))
        written.replace(place)
    if isinstance(answer, str) and not isinstance(answer, Shown):
        print(answer, file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0


def _answer(arguments: list[str], given: dict[str, str], state: dict[str, Any]) -> Any:
    group = " ".join(word for word in arguments[:4] if word[:1] != "-")
    if group.startswith("account show"):
        return {"id": given.get("--subscription", SUBSCRIPTION), "tenantId": TENANT}
    if group.startswith("bicep build-params"):
        return {"parametersJson": json.dumps({"parameters": _parameters(given["--file"])})}
    if group.startswith("provider list"):
        return sorted(state["providers"].get(given["--subscription"], []))
    if group.startswith("provider register"):
        state["providers"].setdefault(given["--subscription"], []).append(given["--namespace"])
        return None
    if group.startswith("functionapp list-flexconsumption-locations"):
        return ["eastus", "westeurope"]
    if group.startswith("deployment sub validate"):
        refused = state.get("refused")
        return f"ERROR: {json.dumps(refused)}" if refused else {"properties": {}}
    if group.startswith("deployment sub what-if"):
        return {"changes": []}
    if group.startswith("deployment sub create") and "--template-file" in given:
        return _deployed_apart(arguments, given, state)
    if group.startswith("identity show"):
        name = given["--ids"].rpartition("/")[2]
        return {"principalId": f"principal of {name}", "clientId": f"client of {name}"}
    if group.startswith("deployment sub create"):
        return _created(_parameters(given["--parameters"]), given, state)
    if group.startswith("resource list"):
        known = json.loads(os.environ.get("AZ_RESOURCES", "[]"))
        tag = f"roadstead-fleet={os.environ.get('AZ_FLEET', '')}"
        return known if state["fleet"] and given["--tag"] == tag else []
    if group.startswith("functionapp config appsettings list"):
        settings = json.loads(os.environ["AZ_SETTINGS"])[given["--ids"].rpartition("/")[2]]
        shown = re.findall(r"name=='(\w+)'", given["--query"])
        return [
            {"name": name, "value": value}
            for name, value in settings.items()
            if name in shown or REFERENCE.fullmatch(value)
        ]
    if group.startswith("functionapp restart"):
        state["restarts"] += 1
        return None
    if group.startswith("keyvault secret show"):
        if os.environ.get("AZ_MAY_READ") != "yes":
            return "(Forbidden) Caller is not authorized to perform action on resource."
        return Shown(state["secrets"][given["--name"]])
    if group.startswith("ad user show"):
        return Shown(f"object of {given['--id']}")
    if arguments[0] == "rest" and given["--url"].startswith(GRAPH):
        return _graph(given, state)
    if arguments[0] == "rest" and "--resource" in given:
        return _azure_devops(given, state)
    if arguments[0] == "rest":
        return _rest(given, state)
    if group.startswith("functionapp list"):
        return state["fleet"]["functionAppNames"]["value"]
    if group.startswith("functionapp deploy "):
        if given["--name"] not in state["fleet"]["functionAppNames"]["value"]:
            return "ResourceNotFound: no such app"
        digest = hashlib.sha256(Path(given["--src-path"]).read_bytes()).hexdigest()
        state["code"][given["--name"]] = digest
        return {"status": "Success"}
    return f"'{group}' is misspelled or not recognized by the system"


def _parameters(file: str) -> dict[str, Any]:
    """Return the parameters of a file: JSON, and lines of Bicep behind it."""
    text, *lines = re.split(r"^param ", Path(file).read_text(), flags=re.MULTILINE)
    found: dict[str, Any] = json.loads(text)
    for line in lines:
        name, value = re.fullmatch(r"(\w+) = '([^']*)'\s*", line).groups()  # type: ignore[union-attr]
        found[name] = {"value": value}
    return found


def _created(parameters: dict[str, Any], given: dict[str, str], state: dict[str, Any]) -> Any:
    registered = state["providers"].get(given["--subscription"], [])
    if "Microsoft.Web" not in registered:
        return "MissingSubscriptionRegistration: the subscription is not registered to use Microsoft.Web"
    values = parameters.get("secretValues", {}).get("value", {})
    first = json.loads(os.environ.get("AZ_FIRST", "{}"))
    state["secrets"] = {
        **{name: value for name, value in first.items() if name in parameters["secrets"]["value"]},
        **state["secrets"],
        **{name: value for name, value in values.items() if value},
    }
    missing = set(parameters["secrets"]["value"]) - set(state["secrets"])
    if missing:
        return f"SecretNotFound: {', '.join(sorted(missing))}"
    state["fleet"] = json.loads(os.environ["AZ_OUTPUTS"])
    for app in json.loads(os.environ.get("AZ_SETTINGS", "{}")):
        _fetch(app, state)
    return state["fleet"]


def _deployed_apart(arguments: list[str], given: dict[str, str], state: dict[str, Any]) -> Any:
    """Take a template of its own: the parameters that it declares, and no other, as JSON."""
    target, template = given["--subscription"], Path(given["--template-file"])
    if "Microsoft.EventGrid" not in state["providers"].get(target, []):
        return (
            "MissingSubscriptionRegistration: the subscription is not registered to use Microsoft.EventGrid"
        )
    first = arguments.index("--parameters") + 1
    values = dict(value.split("=", 1) for value in arguments[first : arguments.index("--query")])
    declared = dict(re.findall(r"^param (\w+) ([^=\n]*)(?==|$)", template.read_text(), re.MULTILINE))
    unknown = set(values) - set(declared)
    if unknown:
        return f"InvalidTemplate: the template has no parameter {', '.join(sorted(unknown))}"
    state["access"].setdefault(target, {})[template.stem] = {
        name: json.loads(value) for name, value in sorted(values.items())
    }
    return Shown("Succeeded")


def _graph(given: dict[str, str], state: dict[str, Any]) -> Any:
    """Answer as Microsoft Graph: objects with ids, ``AZ_DENIES`` what an administrator does.

    A complex property of a PATCH changes what it names. A client is authorized for a scope that is there
    (learn.microsoft.com/graph/api/application-update, .../resources/apiapplication).
    """
    directory, method = state["directory"], given["--method"]
    path, _, query = given["--url"].removeprefix(GRAPH).partition("?")
    kind, _, rest = path.partition("/")
    if f"{method} {rest.partition('/')[2] or kind}" == os.environ.get("AZ_DENIES"):
        return "Forbidden({'error': {'code': 'Authorization_RequestDenied'}})"
    body = json.loads(sys.stdin.read()) if given.get("--body") == "@-" else {}
    if rest.endswith("/appRoleAssignedTo"):
        if method == "POST":
            directory["assigned"].append(body)
        return body or {"value": directory["assigned"]}
    if method == "GET":
        name, value = re.fullmatch(r"\$filter=(\w+) eq '([^']*)'", query).groups()  # type: ignore[union-attr]
        return {"value": [entry for entry in directory[kind] if entry.get(name) == value]}
    if method == "POST":
        number = len(directory[kind]) + 1
        made = {"id": f"{kind}-{number}", "appId": f"00000000-0000-0000-0000-0000000001{number:02}", **body}
        if kind == "servicePrincipals":
            (app,) = [app for app in directory["applications"] if app["appId"] == body["appId"]]
            made["appRoles"] = app["appRoles"]
        directory[kind].append(made)
        return made
    (entry,) = [entry for entry in directory[kind] if entry["id"] == rest]
    scopes = {scope["id"] for scope in entry["api"].get("oauth2PermissionScopes", ())}
    for client in body.get("api", {}).get("preAuthorizedApplications", ()):
        if not set(client["delegatedPermissionIds"]) <= scopes:
            return "Bad Request: Permission id is not one of the application"
    for name, value in body.items():
        entry[name] = {**entry.get(name, {}), **value} if isinstance(value, dict) else value
    return None


def _azure_devops(given: dict[str, str], state: dict[str, Any]) -> Any:
    """Answer as Azure DevOps, which shows no password (MicrosoftDocs/vsts-rest-api-specs, hooks)."""
    devops = state.setdefault("devops", {"subscriptions": [], "members": []})
    method, path = given["--method"], given["--url"].partition("?")[0]
    if "/_apis/git/repositories/" in path:
        return {"id": "278d5cd2", "name": "fleet", "project": {"id": "6ce954b1"}}
    if path.endswith("/_apis/memberentitlements"):
        return {"members": devops["members"]}
    if method == "GET":
        hidden = {"basicAuthPassword": "********"}
        return {
            "value": [
                found | {"consumerInputs": found["consumerInputs"] | hidden}
                for found in devops["subscriptions"]
            ]
        }
    body = json.loads(sys.stdin.read())
    number = path.rpartition("/")[2] if method == "PUT" else str(len(devops["subscriptions"]) + 1)
    others = [found for found in devops["subscriptions"] if found["id"] != number]
    devops["subscriptions"] = [*others, {"id": number, **body}]
    return Shown(number)


def _fetch(app: str, state: dict[str, Any]) -> None:
    """Give an app the newest values of what it refers to."""
    settings = json.loads(os.environ["AZ_SETTINGS"])[app]
    found = {name: REFERENCE.fullmatch(value) for name, value in settings.items()}
    state["running"][app] = {
        name: state["secrets"].get(match[1], settings[name]) for name, match in found.items() if match
    }


def _monitor(url: str, state: dict[str, Any]) -> Any:
    """Answer for alert rules and action groups, as ``monitor`` of the state has them."""
    monitor = state.get("monitor", {"rules": {}, "groups": {}})
    if "/actionGroups/" in url:
        group = monitor["groups"].get(url.partition("?")[0])
        return {"properties": group} if group is not None else "AuthorizationFailed: you may not read it"
    known = [found for found in json.loads(os.environ["AZ_RESOURCES"]) if "QueryRules" in found["type"]]
    return {"value": [{"name": r["name"], "properties": monitor["rules"].get(r["name"])} for r in known]}


def _list(found: dict[str, Any] | str, prefix: str) -> Any:
    """Return a list as Resource Manager has it; a text is an error."""
    if isinstance(found, str):
        return found
    return {"value": [{"name": prefix + name, "properties": its} for name, its in found.items()]}


def _rest(given: dict[str, str], state: dict[str, Any]) -> Any:
    url, method = given["--url"], given["--method"]
    if "/microsoft.insights/" in url.lower():
        return _monitor(url, state)
    secret = VAULT_SECRET.fullmatch(url)
    if secret and method == "PUT":
        body = json.loads(sys.stdin.read() if given["--body"] == "@-" else given["--body"])
        state["secrets"][secret[1]], state["tags"][secret[1]] = body["properties"]["value"], body["tags"]
        return Shown(secret[1])
    if secret:
        return state["tags"].get(secret[1]) if secret[1] in state["secrets"] else "SecretNotFound"
    app, _, rest = url.partition("/config/configreferences/appsettings")
    if rest.startswith("/refresh?"):
        _fetch(app.rpartition("/")[2], state)
    if rest:
        running = state["running"][app.rpartition("/")[2]]
        return {
            "value": [
                {"name": name, "properties": {"status": "Resolved" if value[:1] != "@" else "SecretNotFound"}}
                for name, value in running.items()
            ]
        }
    if "/Microsoft.Web/sites/" in url and "/functions?" in url:
        app = url.split("/")[-2]
        return _list(state.get("functions", {}).get(app, {"ready": {}}), f"{app}/")
    if "/Microsoft.ServiceBus/namespaces/" in url:
        return _list(state.get("queues") or json.loads(os.environ["AZ_QUEUES"]), "")
    if "/Microsoft.Web/sites/" in url:
        return Shown(os.environ["AZ_HOST"])
    return f"NotFound: {url}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
