"""The kubeconfig of an attached cluster: static credentials are read, and everything else is refused."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shared.kubernetes.kubeconfig import MAX_BYTES, MAX_ENTRIES, KubeconfigError, read_kubeconfig

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"  # the markers alone: no key
TOKEN = "a-token-that-nobody-may-see-7261"


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def content(server: Any = None, user: Any = None, **more: Any) -> dict[str, Any]:
    server = {"server": "https://10.1.2.3:6443", "certificate-authority-data": coded(CERTIFICATE)} | (
        server or {}
    )
    user = {"token": TOKEN} if user is None else user
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "harbour", "user": "robot"}}],
        "clusters": [{"name": "harbour", "cluster": server}],
        "users": [{"name": "robot", "user": user}],
        **more,
    }


def refused(changed: dict[str, Any]) -> str:
    with pytest.raises(KubeconfigError) as caught:
        read_kubeconfig(yaml.safe_dump(changed))
    return str(caught.value)


def test_a_token_and_an_authority_are_read() -> None:
    found = read_kubeconfig(yaml.safe_dump(content()))
    assert (found.url, found.ca, found.token) == ("https://10.1.2.3:6443", CERTIFICATE.encode(), TOKEN)
    assert TOKEN not in repr(found)


def test_a_client_certificate_is_read_and_no_text_shows_its_key() -> None:
    pair = {"client-certificate-data": coded(CERTIFICATE), "client-key-data": coded(KEY)}
    found = read_kubeconfig(yaml.safe_dump(content(user=pair)))
    assert (found.certificate, found.key, found.token) == (CERTIFICATE.encode(), KEY.encode(), "")
    assert "PRIVATE" not in repr(found)


def test_without_an_authority_the_public_ones_count() -> None:
    found = read_kubeconfig(yaml.safe_dump(content({"certificate-authority-data": ""})))
    assert found.ca == b""


def test_a_server_with_a_path_is_a_proxy_of_several_clusters() -> None:
    found = read_kubeconfig(
        yaml.safe_dump(content({"server": "https://rancher.example.com/k8s/clusters/c-1/"}))
    )
    assert found.url == "https://rancher.example.com/k8s/clusters/c-1"


@pytest.mark.parametrize(
    ("user", "why"),
    [
        ({"exec": {"command": "sh", "args": ["-c", "id"]}}, "a program that fetches a token (exec)"),
        ({"auth-provider": {"name": "gcp"}}, "an auth-provider"),
        ({"tokenFile": "/var/run/secrets/token"}, "names a file (tokenFile)"),
        ({"client-certificate": "/etc/tls.crt", "client-key": "/etc/tls.key"}, "names a file"),
        ({"username": "admin", "password": "a-word"}, "a username and password"),
        ({"token": TOKEN, "as": "system:admin"}, "acts as another user"),
        ({"token": TOKEN, "as-groups": ["system:masters"]}, "acts as other groups"),
        ({"token": f"{TOKEN}\r\nX-More: yes"}, "its token is no token"),
        ({"token": 7}, "its token is no token"),
        ({"client-certificate-data": coded(CERTIFICATE)}, "needs both"),
        (
            {"client-certificate-data": coded(CERTIFICATE), "client-key-data": coded("words")},
            "no private key",
        ),
        (
            {
                "client-certificate-data": coded(CERTIFICATE),
                "client-key-data": coded(KEY.replace("BEGIN", "BEGIN ENCRYPTED")),
            },
            "without a passphrase",
        ),
        ({"client-certificate-data": "%%%", "client-key-data": coded(KEY)}, "is no base64"),
        ({}, "neither a token nor a client certificate"),
    ],
)
def test_what_is_no_static_credential_is_refused_with_a_reason(user: Any, why: str) -> None:
    reason = refused(content(user=user))
    assert why in reason
    assert TOKEN not in reason


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify"),
        ({"proxy-url": "http://10.0.0.1:3128"}, "names a proxy"),
        ({"certificate-authority": "/etc/ssl/ca.pem"}, "names a file"),
        ({"tls-server-name": "another"}, "tls-server-name"),
        ({"certificate-authority-data": coded("words")}, "has no certificate (PEM)"),
        ({"server": "http://10.1.2.3:8080"}, "must begin with https://"),
        ({"server": "file:///etc/passwd"}, "must begin with https://"),
        ({"server": "https://user:word@10.1.2.3"}, "without a user"),
        ({"server": "https://10.1.2.3/?x=1"}, "query"),
        ({"server": "https://10.1.2.3:99999"}, "no address"),
        ({"server": "https://"}, "https://HOST:PORT"),
        ({"server": "https://a b"}, "https://HOST:PORT"),
        ({"server": None}, "must begin with https://"),
    ],
)
def test_a_server_that_is_not_proven_or_not_reached_directly_is_refused(server: Any, why: str) -> None:
    assert why in refused(content(server))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (content(contexts=[]), "contexts needs one entry"),
        (content(users=[{"name": "robot", "user": {}} for _ in range(2)]), "users needs one entry"),
        (content(clusters=[{"name": "harbour"}]), "clusters needs one entry"),
        (content(clusters="harbour"), "needs a list of clusters"),
        (content(users=[{"name": str(n), "user": {}} for n in range(MAX_ENTRIES + 1)]), "a list of users"),
        (content(**{"current-context": ""}), "has no current-context"),
    ],
)
def test_an_ambiguous_kubeconfig_is_refused(changed: dict[str, Any], why: str) -> None:
    assert why in refused(changed)


@pytest.mark.parametrize(
    "text",
    ["", "words", "- a", "a: &a [*a]", "\x00", "a: [", f"token: {TOKEN}\n\tb: c", "x" * (MAX_BYTES + 1)],
)
def test_what_is_no_kubeconfig_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(KubeconfigError) as caught:
        read_kubeconfig(text)
    assert TOKEN not in str(caught.value)


_ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


@given(
    where=st.sampled_from(["server", "user", "contexts", "clusters", "users", "current-context"]), value=_ANY
)
def test_any_other_value_is_read_or_refused_and_nothing_else(where: str, value: Any) -> None:
    makes: dict[str, Callable[[], dict[str, Any]]] = {
        "server": lambda: content({"server": value}),
        "user": lambda: content(user=value if value is not None else {}),
    }
    changed = makes.get(where, lambda: content(**{where: value}))()
    try:
        found = read_kubeconfig(yaml.safe_dump(changed))
    except KubeconfigError:
        return
    assert found.url.startswith("https://")
    assert found.token or found.key
