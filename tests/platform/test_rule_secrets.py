"""Secrets in a platform: what is refused in plain text, and no value is shown."""

from __future__ import annotations

import pytest
import yaml

from tests.support.built_platforms import (
    Platform,
)

MAIL = """
apiVersion: v1
kind: Secret
metadata:
  name: mail-relay
  namespace: platform
stringData:
  password: correct-horse-example
data:
  fallback: YmF0dGVyeS1zdGFwbGUtZXhhbXBsZQ==
"""


def test_a_secret_in_plain_text_is_refused_at_each_field_and_no_value_is_shown() -> None:
    problems = Platform(MAIL).problems
    places = [problem.split(": ")[0] for problem in problems]
    assert places == [
        "platform/all.yaml:7:3 stringData.password",
        "platform/all.yaml:9:3 data.fallback",
    ]
    values = ("correct-horse-example", "YmF0dGVyeS1zdGFwbGUtZXhhbXBsZQ", "battery-staple-example")
    assert not any(value in problem for value in values for problem in problems)


ENCRYPTED = """
apiVersion: v1
kind: Secret
metadata: {name: a, namespace: platform}
data:
  password: ENC[AES256_GCM,data:abc,iv:def,tag:ghi,type:str]
sops:
  mac: ENC[AES256_GCM,data:abc,iv:def,tag:ghi,type:str]
"""


@pytest.mark.parametrize("key", ["pin", "password", "API_KEY", "auth.token"])
def test_a_short_number_is_a_secret_where_its_name_says_so(key: str) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\n"
    assert len(Platform(f"{text}stringData: {{{key}: '1234'}}\n").problems) == 1
    assert Platform(f"{text}stringData: {{retries: '1234'}}\n").problems == []


def test_a_secret_of_sops_is_right_where_it_is_decrypted() -> None:
    decrypting = {"decryption": {"provider": "sops", "secretRef": {"name": "sops-age"}}}
    assert Platform().kustomize("core", ENCRYPTED, spec=decrypting).problems == []
    refused = Platform().kustomize("core", ENCRYPTED).problems
    assert len(refused) == 1
    assert "has no spec.decryption, so Flux refuses it" in refused[0]


@pytest.mark.parametrize(
    ("kind", "effect"),
    [
        ("apiVersion: v1\nkind: ConfigMap", "so the cluster gets the encrypted text"),
        ("apiVersion: example.com/v1\nkind: Thing", "so the API server refuses it"),
    ],
)
def test_what_else_is_encrypted_is_decrypted_too(kind: str, effect: str) -> None:
    text = ENCRYPTED.replace("apiVersion: v1\nkind: Secret", kind)
    decrypting = {"decryption": {"provider": "sops", "secretRef": {"name": "sops-age"}}}
    assert Platform().kustomize("core", text, spec=decrypting).problems == []
    assert [effect in problem for problem in Platform().kustomize("core", text).problems] == [True]


@pytest.mark.parametrize("api", ["isindir.github.com/v1alpha3", "addons.projectcapsule.dev/v1alpha1"])
def test_what_an_operator_decrypts_is_right_without_decryption(api: str) -> None:
    """Sources: isindir/sops-secrets-operator and peak-scale/sops-operator: SopsSecret has the field sops."""
    text = ENCRYPTED.replace("apiVersion: v1\nkind: Secret", f"apiVersion: {api}\nkind: SopsSecret")
    assert Platform().kustomize("core", text).problems == []


def test_a_generated_secret_of_encrypted_variables_is_right_where_they_are_decrypted() -> None:
    """Source: kustomize-controller ``DecryptSources``: files and variables of generators."""
    values = ("password", "sops_mac", "sops_age__list_0__map_enc", "sops_version")
    value = "RU5DW0FFUzI1Nl9HQ00sZGF0YTphLGl2OmIsdGFnOmMsdHlwZTpzdHJd"
    given = {key: value if key != "sops_version" else "My44LjE=" for key in values}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "namespace": "b"},
        "data": given,
    }
    decrypting = {"decryption": {"provider": "sops", "secretRef": {"name": "sops-age"}}}
    text = yaml.safe_dump(secret)
    assert Platform().kustomize("core", text, spec=decrypting).problems == []
    assert "the cluster gets the encrypted text" in Platform().kustomize("core", text).problems[0]


def test_a_generated_secret_is_refused_at_its_generator() -> None:
    kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nsecretGenerator:\n"
    kustomization += "  - name: mail\n    literals: [password=correct-horse-example]\n"
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: mail-5hg7b2k9tf, namespace: a}\n"
    secret += "data: {password: Y29ycmVjdC1ob3JzZS1leGFtcGxl}\n"
    platform = Platform(secret)
    platform.files["platform/all.yaml"] = kustomization
    assert platform.problems[0].startswith("platform/all.yaml:4:5 secretGenerator[0]: Secret")


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\ntype: Opaque\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nstringData: {AZURE_CLIENT_ID: "
        "0c1ff0c1-0000-4000-8000-000000000001, USE_WORKLOAD_IDENTITY_AUTH: 'true', port: '5432', SYNC: 1h}\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\n"
        "stringData: {ca.crt: '-----BEGIN CERTIFICATE-----\n  MIIB\n  -----END CERTIFICATE-----'}\n",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nstringData: {token: '${token}'}\n",
        "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: a, namespace: b}\n",
        "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: a, namespace: b}\nspec: {}\n",
    ],
)
def test_what_holds_no_secret_is_right(text: str) -> None:
    assert Platform(text).problems == []
