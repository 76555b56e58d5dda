"""The Secrets of bootstrap secrets as objects: what they say of themselves, and what no digest covers."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic import ValidationError

from shared.kubernetes.bootstrap_secrets import VERSIONS, secret_object, versions_in
from shared.kubernetes.flux_objects import DIGEST
from shared.language.model.cluster.grants import BootstrapSecret

AGE = {"name": "sops-age", "vault": "Platform", "keys": {"age.agekey": "fleet-age"}}


def secret(**fields: Any) -> BootstrapSecret:
    return BootstrapSecret.model_validate(AGE | fields)


def made(one: BootstrapSecret, value: str = "a-value", version: str = "v1") -> dict[str, Any]:
    return secret_object(one, dict.fromkeys(one.keys, value), dict.fromkeys(one.keys, version))


def noted(one: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = one["metadata"]["annotations"]
    return found


def test_a_secret_has_what_the_manifest_says_and_the_value_of_each_key() -> None:
    one = made(secret(namespace="shop", labels={"team": "shop"}, secretName="other", type="example.com/age"))
    assert one["metadata"]["name"] == "other"
    assert one["metadata"]["namespace"] == "shop"
    assert one["metadata"]["labels"] == {"team": "shop"}
    assert one["type"] == "example.com/age"
    assert base64.b64decode(one["data"]["age.agekey"]) == b"a-value"
    assert noted(one)[VERSIONS] == '{"age.agekey": "platform/fleet-age/v1"}'


def test_no_annotation_depends_on_a_value() -> None:
    assert noted(made(secret(), "one")) == noted(made(secret(), "another"))


@pytest.mark.parametrize(
    "fields",
    [
        {"labels": {"team": "shop"}},
        {"type": "example.com/age"},
        {"vault": "other"},
        {"keys": {"age.agekey": "another"}},
        {"keys": {"age.agekey": "fleet-age", "more": "fleet-age"}},
    ],
)
def test_whatever_else_changes_is_another_digest_and_another_entry(fields: dict[str, Any]) -> None:
    before, after = made(secret()), made(secret(**fields))
    assert noted(before)[DIGEST] != noted(after)[DIGEST]
    assert versions_in(secret(**fields), before) is None


def test_the_versions_of_an_entry_are_read_back() -> None:
    assert versions_in(secret(), made(secret(), version="v7")) == {"age.agekey": "v7"}
    assert noted(made(secret()))[DIGEST] != noted(made(secret(), version="v7"))[DIGEST]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"age.agekey": 7}', '{"other": "a/b/c"}'])
def test_an_annotation_that_somebody_broke_has_no_versions(text: str) -> None:
    broken = made(secret())
    noted(broken)[VERSIONS] = text
    assert versions_in(secret(), broken) is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "kubernetes.io/tls"}, "needs tls.crt and tls.key; add it"),
        ({"type": "kubernetes.io/basic-auth"}, "needs username or password; add it"),
        ({"type": "kubernetes.io/service-account-token"}, "Kubernetes itself makes the Secrets"),
        ({"keys": {}}, "at least 1 item"),
        ({"keys": {"..": "a"}}, "a key of a Secret"),
        ({"keys": {"a": "not_a_name"}}, "the name of a secret of a vault"),
        ({"vault": "https://evil.example"}, "the name of a vault"),
        ({"labels": {"roadstead.dev/mine": "x"}}, "reserved by Roadstead"),
    ],
)
def test_what_neither_kubernetes_nor_a_vault_takes_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        secret(**fields)


def test_a_value_in_the_place_of_a_name_is_refused_without_repeating_it() -> None:
    value = "AGE-SECRET-KEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQ"
    with pytest.raises(ValidationError) as raised:
        secret(keys={"age.agekey": value})
    (detail,) = raised.value.errors(include_input=False)
    assert "is the value of a key and no name" in detail["msg"]
    assert value not in detail["msg"]
