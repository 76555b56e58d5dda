"""A credential in plain text outside of a Secret is refused at its field, and no text has its value."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from shared.platform.changes.comparison import object_differences
from shared.platform.changes.guards import judge
from shared.platform.changes.report import sections_of, text_of
from tests.platform.inventories import deployment, inventory, manifest, owner, release
from tests.support.built_platforms import Platform

VALUE = "Correct-horse-9912"
PEM = "-----BEGIN {0}-----\nMIIEowIBAAKCAQEA\n-----END {0}-----\n"
SHAPED = (
    PEM.format("RSA PRIVATE KEY"),
    "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=QUJDREVGR0hJSktM;EndpointSuffix=example",
    "postgres://app:correct@db:5432/app",
    "ghp_0123456789abcdefghijklmnop",
)


PARTS = "/".join(("T" + "0" * 9, "B" + "0" * 9, VALUE.replace("-", "") * 2))
CHATS = (
    f"https://hooks.slack.com/services/{PARTS}",
    f"https://discord.com/api/webhooks/{PARTS}",
    f"https://example.webhook.office.com/webhookb2/{PARTS}",
)
"""Addresses by which anybody may post: nothing but chance keeps others out."""


def provider(address: str) -> dict[str, Any]:
    spec = {"type": "slack", "address": address}
    return manifest("Provider", "platform/chat", "notification.toolkit.fluxcd.io/v1beta3", spec=spec)


def with_variable(name: str, value: str) -> dict[str, Any]:
    found = deployment("platform/web")
    found["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": name, "value": value}]
    return found


def config(**data: str) -> dict[str, Any]:
    return manifest("ConfigMap", "platform/web", data=data)


def values(**given: Any) -> dict[str, Any]:
    return release("platform/web", values=given)


def problems(given: dict[str, Any], spec: dict[str, Any] | None = None) -> list[str]:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: platform}\n"
    found = Platform(namespace, yaml.safe_dump(given), spec=spec).problems
    return [problem for problem in found if "has a credential in plain text" in problem]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (with_variable("DB_PASSWORD", VALUE), "spec.template.spec.containers[0].env[0].value"),
        (with_variable("API_TOKEN", VALUE), "spec.template.spec.containers[0].env[0].value"),
        (config(password="correct-horse"), "data.password"),
        (config(**{"app.properties": f"db.user=app\ndb.password={VALUE}\n"}), "data.app.properties"),
        (values(grafana={"adminPassword": "prom-operator"}), "spec.values.grafana.adminPassword"),
        (values(oauth={"clientSecret": VALUE}), "spec.values.oauth.clientSecret"),
        *((config(x=text), "data.x") for text in SHAPED),
        *((provider(address), "spec.address") for address in CHATS),
        (manifest("Widget", "platform/a", "example.com/v1", spec={"key": SHAPED[0]}), "spec.key"),
    ],
)
def test_a_credential_outside_of_a_secret_is_refused_at_its_field(given: dict[str, Any], field: str) -> None:
    (problem,) = problems(given)
    assert f" {field}: {given['kind']} platform/" in problem
    assert VALUE not in problem


def test_a_credential_in_a_kustomization_of_the_manifest_is_refused_too() -> None:
    spec = {"postBuild": {"substitute": {"db_password": VALUE}}}
    (problem,) = problems(config(a="b"), spec)
    assert "spec.postBuild.substitute.db_password: Kustomization flux-system/flux-system" in problem


CERTIFICATE = base64.b64encode(PEM.format("CERTIFICATE").encode()).decode()


@pytest.mark.parametrize(
    "given",
    [
        with_variable("PASSWORD_FILE", "/run/secrets/password"),
        with_variable("DB_PASSWORD", "$(POSTGRES_PASSWORD)"),
        with_variable("DB_PASSWORD", "${db_password}"),
        with_variable("DATABASE_URL", "postgres://app:$(POSTGRES_PASSWORD)@db/app"),
        with_variable("DB_PASSWORD", "vault:secret/data/db#password"),
        with_variable("TOKEN_TTL", "3600"),
        with_variable("SECRET_NAME", "Database-credentials-1"),
        config(password_policy="Twelve-characters-1", allow_password="true", hint="Forgot password?"),
        config(**{"login.ftl": "password=${password}\npassword: {{ .Values.password }}"}),
        values(auth={"existingSecret": "Database-1-secret", "secretKeys": {"adminPassword": "admin-1"}}),
        values(auth={"password": "", "passwordKey": "Admin-password-1", "enablePassword": True}),
        values(auth={"passwordSecretRef": {"name": "Database-1", "key": "password"}}),
        manifest("ExternalSecret", "platform/a", "external-secrets.io/v1", spec={"secretKey": "Pass-1234"}),
        manifest("Widget", "platform/a", "example.com/v1", spec={"caBundle": CERTIFICATE}),
        provider("https://hooks.slack.com/services/YOUR/SLACK/WEBHOOK"),
        provider(f"https://hooks.slack.com/services/T00000000/B00000000/{'X' * 24}"),
        provider("https://hooks.slack.com/services/YOUR_WORKSPACE_ID/YOUR_CHANNEL_ID/YOUR_WEBHOOK_TOKEN"),
        provider("https://slack.com/api/chat.postMessage"),
    ],
)
def test_what_only_names_a_credential_is_right(given: dict[str, Any]) -> None:
    assert problems(given) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (with_variable("DB_PASSWORD", "a"), with_variable("DB_PASSWORD", VALUE)),
        (deployment("platform/web"), with_variable("DB_PASSWORD", VALUE)),
        (values(), values(grafana={"adminPassword": VALUE})),
        (config(), config(password=VALUE)),
        (provider("https://slack.com/api"), provider(CHATS[0].replace("9912", VALUE))),
        (config(), config(text=f"password={VALUE}")),
        (values(), values(env=[{"name": "API_TOKEN", "value": VALUE}])),
        (release("a/b"), release("a/b", patches=[{"patch": f"{{name: DB_PASSWORD, value: {VALUE}}}"}])),
    ],
)
def test_no_plan_shows_a_credential(before: dict[str, Any], after: dict[str, Any]) -> None:
    change = judge(inventory(owner("p", before)), inventory(owner("p", after)), 20)
    (section,) = sections_of({"one": change}, {"one": ""})
    text = "\n".join(text_of(section, 200))
    assert "(secret)" in text or text.endswith(" differs")
    assert not any(part in text for part in (VALUE, VALUE[:8], VALUE[-8:]))


def test_a_path_of_a_credential_still_differs() -> None:
    old, new = (with_variable("DB_PASSWORD", value) for value in ("a", VALUE))
    (difference,) = object_differences(old, new)
    assert difference.path == "spec.template.spec.containers[web].env[DB_PASSWORD].value"
    assert (difference.old, difference.new) == ("(secret)", "(secret)")
