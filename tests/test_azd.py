"""What the Azure Developer CLI (azd) reads: ``azure.yaml``, its hooks, and the parameters."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft201909Validator

from cli.azure_deployment import ORDER
from shared.configuration.settings import App
from tests.support.templates import EVERYTHING, INFRA, of_type, outputs, parameters

ROOT = Path(__file__).parent.parent
AZURE: dict[str, Any] = yaml.safe_load((ROOT / "azure.yaml").read_text())
SCHEMA = ROOT / "tests" / "recorded" / "azd-azure-yaml-schema.json.gz"
"""schemas/v1.0/azure.yaml.json of github.com/Azure/azure-dev at ae35809f (2026-08-21, MIT License)."""


def test_azure_yaml_satisfies_the_schema_of_azd() -> None:
    schema = json.loads(gzip.decompress(SCHEMA.read_bytes()))
    assert [error.message for error in Draft201909Validator(schema).iter_errors(AZURE)] == []


def test_there_is_a_service_for_every_app_and_azd_finds_it_by_its_tag() -> None:
    assert set(AZURE["services"]) == set(App)
    sites = of_type("Microsoft.Web/sites", EVERYTHING)
    assert {site.whole["tags"]["azd-service-name"] for site in sites} == set(App)
    for service in AZURE["services"].values():
        assert service["project"] == "."
        (name,) = re.findall(r"\$\{(\w+)\}", service["resourceGroup"])
        assert name in outputs(), "azd has the outputs of the template in its environment"


def test_azd_publishes_in_the_order_of_the_command_and_azure_builds_nothing() -> None:
    services = AZURE["services"]
    assert [services[app].get("uses", []) for app in ORDER] == [[], *([before] for before in ORDER[:-1])]
    for service in services.values():
        assert (service["remoteBuild"], service["dist"]) == (False, "dist/azd")
        assert set(service["hooks"]) == {"prepackage"}


def test_every_hook_runs_a_script_that_is_there_on_every_system() -> None:
    assert set(AZURE["hooks"]) == {"preprovision", "postdeploy", "postup", "predown"}
    services = AZURE["services"].values()
    for hook in (*AZURE["hooks"].values(), *(service["hooks"]["prepackage"] for service in services)):
        posix, windows = (hook[system]["run"].split()[-1] for system in ("posix", "windows"))
        assert posix == windows
        assert (ROOT / posix).is_file()


def test_the_least_azd_asks_before_it_deletes_groups_of_others() -> None:
    """Version 1.25.0: cli/azd/CHANGELOG.md of github.com/Azure/azure-dev, pull request 7998."""
    assert AZURE["requiredVersions"]["azd"] == ">= 1.25.0"


def test_azd_asks_for_at_most_eight_values_and_knows_the_rest() -> None:
    given = json.loads((INFRA / "main.parameters.json").read_text())["parameters"]
    assert set(given) <= set(parameters())
    required = {name for name, taken in parameters().items() if "defaultValue" not in taken}
    assert required <= set(given)
    asked = set(re.findall(r"\$\{(\w+)\}", json.dumps(given)))
    assert len(asked - {"AZURE_LOCATION"}) + len({"environment", "subscription", "region"}) <= 8
    # azd asks for what has no default, and takes the default of the rest without a word: ensureParameters in
    # cli/azd/pkg/infra/provisioning/bicep/bicep_provider.go of github.com/Azure/azure-dev.
    assert required - {"secrets"} == {"fleet", "githubRepository"}
    assert "| `fleet`, `githubRepository` |" in (ROOT / "docs" / "how-to" / "deploy-to-azure.md").read_text()
    constant = {name for name, value in given.items() if "${" not in json.dumps(value)}
    assert constant == {"secrets"}, "so that a second run sets nothing back"
