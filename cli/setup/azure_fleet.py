"""The resources of a deployed fleet, found by their tags; its secrets, written through Resource Manager.

Resource Manager also writes a secret of a vault without a public address, and asks for no role at the
vault: whoever may deploy may do it. It never reads one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cli.azure_deployment import Az, DeploymentFailed

VAULTS = "2023-07-01"
SITES = "2024-04-01"
REFRESH = "2022-03-01"
"""Source: learn.microsoft.com/azure/app-service/app-service-key-vault-references, "Understand rotation"."""
SETTINGS = ("GITHUB_REPOSITORY", "GITHUB_API_URL", "GIT_HOST", "GIT_URL")
IDENTITIES = "microsoft.managedidentity/userassignedidentities"
TRIES, PAUSE = 30, 2.0
"""How often, and after how many seconds, the references of an app are read until they are resolved."""


@dataclass(frozen=True)
class AzureFleet:
    """A fleet as Azure has it: resource ids, and what its app with the webhook says of its git host."""

    name: str
    location: str
    vault: str
    control: str
    """The app with the webhook and the API."""
    others: tuple[str, ...]
    address: str
    """Of the app with the webhook: https://HOST."""
    repository: str
    api: str
    references: frozenset[str]
    """The secrets that the app with the webhook refers to."""
    git_host: str = ""
    git_url: str = ""
    identities: Mapping[str, str] = field(default_factory=dict)
    """The ids of the identities of the apps, by their names."""

    @property
    def apps(self) -> tuple[str, ...]:
        """Every app."""
        return (self.control, *self.others)


def tagged(az: Az, fleet: str, subscription: str) -> dict[str, list[dict[str, str]]]:
    """Return id, name and location of what has the tag of a fleet, by type in small letters."""
    found = az.read(
        f"Find what the fleet {fleet} has in Azure.",
        *("resource", "list", "--subscription", subscription, "--tag", f"roadstead-fleet={fleet}"),
        *("--query", "[].{id: id, name: name, type: type, location: location}"),
    )
    types: dict[str, list[dict[str, str]]] = {}
    for resource in found or ():
        types.setdefault(resource["type"].lower(), []).append(resource)
    return types


def address_of(az: Az, fleet: str, subscription: str) -> str:
    """Return the address of the app with the API, "" for a fleet that is not deployed."""
    control = _control(tagged(az, fleet, subscription))
    return f"https://{_host(az, control[0]['id'])}" if len(control) == 1 else ""


def _control(types: Mapping[str, list[dict[str, str]]]) -> list[dict[str, str]]:
    sites = types.get("microsoft.web/sites", [])
    return [site for site in sites if not site["name"].endswith(("-worker", "-deleter"))]


def find(az: Az, fleet: str, subscription: str) -> AzureFleet:
    """Return the fleet of a subscription; raise DeploymentFailed where there is none, or more than one."""
    types = tagged(az, fleet, subscription)
    vaults, sites = types.get("microsoft.keyvault/vaults", []), types.get("microsoft.web/sites", [])
    control = _control(types)
    if len(vaults) != 1 or len(control) != 1:
        raise DeploymentFailed(
            f"the subscription {subscription} has {len(control)} apps and {len(vaults)} vaults with the tag "
            f"roadstead-fleet={fleet}, and one of each is needed: deploy the fleet first, or give "
            "--subscription"
        )
    app = control[0]["id"]
    settings = _settings(az, app)
    return AzureFleet(
        fleet,
        control[0]["location"],
        vaults[0]["id"],
        app,
        tuple(site["id"] for site in sites if site["id"] != app),
        address=f"https://{_host(az, app)}",
        repository=settings.get("GITHUB_REPOSITORY", ""),
        api=settings.get("GITHUB_API_URL", "").rstrip("/"),
        references=frozenset(_secret_of(value) for value in settings.values()) - {""},
        git_host=settings.get("GIT_HOST", ""),
        git_url=settings.get("GIT_URL", ""),
        identities={found["name"]: found["id"] for found in types.get(IDENTITIES, [])},
    )


def _host(az: Az, app: str) -> str:
    return str(
        az.read(
            "Read the address of the app with the webhook.",
            *("rest", "--method", "GET", "--url", f"{app}?api-version={SITES}"),
            *("--query", "properties.defaultHostName"),
        )
    )


def _settings(az: Az, app: str) -> dict[str, str]:
    """Return the settings that name the git host or a secret of the vault; others are not read."""
    names = " || ".join(f"name=='{name}'" for name in SETTINGS)
    found = az.read(
        "Read which git host and which secrets the app has.",
        *("functionapp", "config", "appsettings", "list", "--ids", app),
        *(
            "--query",
            f"[?{names} || starts_with(value, '@Microsoft.KeyVault(')].{{name: name, value: value}}",
        ),
    )
    return {setting["name"]: setting["value"] for setting in found}


def _secret_of(value: str) -> str:
    return value.partition("SecretName=")[2].rstrip(")")


def write_secret(az: Az, fleet: AzureFleet, name: str, value: str, tags: Mapping[str, str]) -> None:
    """Write a new version of a secret; the value goes through standard input. Raises DeploymentFailed."""
    body = json.dumps({"properties": {"value": value}, "tags": dict(tags)})
    url = f"{fleet.vault}/secrets/{name}?api-version={VAULTS}"
    az.send(
        f"Write the secret {name} into the vault.",
        body,
        *("rest", "--method", "PUT", "--url", url, "--body", "@-", "--query", "name"),
    )


def secret_tags(az: Az, fleet: AzureFleet, name: str) -> dict[str, str]:
    """Return the tags of a secret, which say who wrote it; its value is not read."""
    url = f"{fleet.vault}/secrets/{name}?api-version={VAULTS}"
    query = ("--query", "tags")
    why = f"See who wrote the secret {name}; its value is not read."
    return dict(az.read(why, "rest", "--method", "GET", "--url", url, *query) or {})


def read_secret(az: Az, fleet: AzureFleet, name: str) -> str:
    """Return the value of a secret, which needs the role Key Vault Secrets User. Raises DeploymentFailed."""
    vault = fleet.vault.rpartition("/")[2]
    try:
        return str(
            az.read(
                f"Read the secret {name} of the vault.",
                *("keyvault", "secret", "show", "--vault-name", vault, "--name", name, "--query", "value"),
            )
        )
    except DeploymentFailed as error:
        raise DeploymentFailed(
            f"{error}. To read it, you need the role Key Vault Secrets User on the vault {vault}, and a "
            "network that reaches it. Or give the key: --key-file -"
        ) from error


def refresh(az: Az, fleet: AzureFleet, names: Sequence[str]) -> None:
    """Have the apps take the newest versions of secrets, and see that they did. Raises DeploymentFailed."""
    for app in fleet.apps:
        name = app.rpartition("/")[2]
        az.read(
            f"Have {name} fetch its secrets again.",
            *("rest", "--method", "POST"),
            *("--url", f"{app}/config/configreferences/appsettings/refresh?api-version={REFRESH}"),
        )
        az.run(f"Restart {name} with them.", "functionapp", "restart", "--ids", app)
        _see_resolved(az, app, names)


def _see_resolved(az: Az, app: str, names: Sequence[str]) -> None:
    url = f"{app}/config/configreferences/appsettings?api-version={REFRESH}"
    wanted = {name.upper().replace("-", "_"): name for name in names}
    states: dict[str, str] = {}
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE)
        found: Any = az.read("See whether it has them.", "rest", "--method", "GET", "--url", url)
        states = {
            wanted[item["name"]]: str(item["properties"].get("status"))
            for item in found.get("value", ())
            if item["name"] in wanted and item["properties"].get("status") != "Resolved"
        }
        if not states:
            return
    said = ", ".join(f"{name}: {state}" for name, state in states.items())
    raise DeploymentFailed(f"{app.rpartition('/')[2]} cannot read its secrets yet ({said})")
