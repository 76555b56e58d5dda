"""The stand-in for App Service Authentication: what passes, what is redirected, the session of a browser."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from werkzeug.wrappers import Request, Response

from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.azure.world.access.directory import ACCOUNTS, API
from localcloud.common.http_server import HttpServer, json_response
from localcloud.functions.easy_auth import AuthSettings, EasyAuth

pytestmark = pytest.mark.lives


@Request.application
def echo(request: Request) -> Response:
    return json_response(200, {name.lower(): value for name, value in request.headers.items()})


@contextmanager
def protected(identity: IdentityServer, *, required: bool) -> Iterator[httpx.Client]:
    settings = AuthSettings(identity.authority, (API,), required, ("/api/github",))
    with (
        HttpServer(EasyAuth(echo, settings)) as server,
        httpx.Client(base_url=server.url, trust_env=False) as client,
    ):
        yield client


def token(identity: IdentityServer, name: str, audience: str = API) -> dict[str, str]:
    account = next(account for account in ACCOUNTS if account.name == name)
    return {"Authorization": f"Bearer {identity.issue(audience, account)[0]}"}


def test_a_valid_token_becomes_the_headers_of_the_documentation(identity: IdentityServer) -> None:
    with protected(identity, required=True) as client:
        headers = client.get("/api/x", headers=token(identity, "approver")).json()
    principal = json.loads(base64.b64decode(headers["x-ms-client-principal"]))
    assert set(principal) == {"auth_typ", "claims", "name_typ", "role_typ"}
    assert {"typ": "roles", "val": "Approver"} in principal["claims"]
    assert headers["x-ms-client-principal-idp"] == principal["auth_typ"] == "aad"
    assert headers["x-ms-client-principal-name"] == "approver@example.com"


@pytest.mark.parametrize("required", [True, False])
def test_no_header_of_a_client_passes(identity: IdentityServer, required: bool) -> None:
    forged = {
        "X-MS-CLIENT-PRINCIPAL": "x",
        "X-MS-CLIENT-PRINCIPAL-NAME": "root",
        "X-MS-TOKEN-AAD-ID-TOKEN": "x",
    }
    with protected(identity, required=required) as client:
        seen = client.get("/api/github", headers=forged).json()
    assert [name for name in seen if name.startswith("x-ms-")] == []


def test_what_needs_a_sign_in_is_redirected_and_a_wrong_token_is_401(identity: IdentityServer) -> None:
    with protected(identity, required=True) as client:
        reply = client.get("/api/plans/1?a=b")
        assert (reply.status_code, reply.headers["location"]) == (
            302,
            "/.auth/login/aad?post_login_redirect_uri=/api/plans/1%3Fa%3Db",
        )
        wrong = client.get("/api/plans", headers=token(identity, "admin", "https://other.example"))
        assert (wrong.status_code, wrong.headers["www-authenticate"]) == (401, "Bearer")


def test_a_person_signs_in_with_a_browser_and_returns_to_the_page(identity: IdentityServer) -> None:
    with protected(identity, required=True) as client:
        page = client.get("/.auth/login/aad?post_login_redirect_uri=/api/plans").text
        assert "reader" in page
        assert "script" not in page.replace("<script", ""), "an app signs in with a token"
        back = client.get("/.auth/login/aad/callback?person=reader&post_login_redirect_uri=/api/plans")
        assert (back.status_code, back.headers["location"]) == (302, "/api/plans")
        assert {"HttpOnly", "SameSite=Lax"} <= set(back.headers["set-cookie"].split("; "))
        assert client.get("/api/plans").json()["x-ms-client-principal-name"] == "reader@example.com"
        left = client.get("/.auth/logout")
        assert client.get(left.headers["location"]).status_code == 200
        assert client.get("/api/plans").status_code == 302


@pytest.mark.parametrize(
    "outside", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:1"]
)
def test_a_sign_in_leads_to_the_app_alone(identity: IdentityServer, outside: str) -> None:
    with protected(identity, required=True) as client:
        query = {"person": "reader", "post_login_redirect_uri": outside}
        assert client.get("/.auth/login/aad/callback", params=query).headers["location"] == "/"
