"""Every function and who may call it; each route called as nobody, as each role, and with forged proofs."""

from __future__ import annotations

import base64
import importlib
import json
import logging
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import azure.functions as func
import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from handlers.routes import who_may_call
from handlers.sign_in import KEY, SignIn
from localcloud.azure.wire.identity_server import ISSUER, IdentityServer
from localcloud.azure.world.access.directory import ACCOUNTS, API
from localcloud.common.clock import system_clock
from localcloud.common.plain_http import NO_TLS
from localcloud.functions.easy_auth import AuthSettings
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.access import Role
from tests.support.function_calls import KEYS
from tests.support.function_calls import function_app as small_app
from tests.support.sample import sample
from tests.support.served_api import served

EXAMPLE = Path(__file__).parents[2] / "local.settings.example.json"
DIRECT: Mapping[str, Any] = {"trust_env": False, "verify": NO_TLS}

ROUTES = {
    "clusters": ("GET", "clusters", "Reader"),
    "cluster": ("GET", "clusters/{name}", "Reader"),
    "events": ("GET", "clusters/{name}/events", "Reader"),
    "why": ("GET", "clusters/{name}/why", "Reader"),
    "tree": ("GET", "clusters/{name}/tree", "Reader"),
    "output": ("GET", "clusters/{name}/output", "Reader"),
    "drift": ("GET", "drift", "Reader"),
    "cost": ("GET", "cost", "Reader"),
    "replay": ("POST", "clusters/{name}/replay", "Operator"),
    "try": ("POST", "clusters/{name}/try", "Operator"),
    "request": ("POST", "requests", "Reader"),
    "extend": ("POST", "clusters/{name}/extend", "Operator"),
    "end_try": ("POST", "clusters/{name}/try/end", "Operator"),
    "accept": ("POST", "clusters/{name}/accept", "Operator"),
    "approve_correction": ("POST", "clusters/{name}/approve", "Approver"),
    "wake": ("POST", "clusters/{name}/wake", "Operator"),
    "sleep": ("POST", "clusters/{name}/sleep", "Operator"),
    "postpone": ("POST", "clusters/{name}/postpone", "Operator"),
    "takeover": ("POST", "clusters/{name}/takeover", "Approver"),
    "takeover_repository": ("POST", "takeover", "Approver"),
    "refresh": ("POST", "refresh", "Operator"),
    "readiness": ("GET", "readiness", "Reader"),
    "read_readiness": ("POST", "readiness", "Operator"),
    "doctor": ("GET", "doctor", "Reader"),
    "examine": ("POST", "doctor", "Operator"),
    "pause": ("POST", "pause", "Operator"),
    "resume": ("POST", "resume", "Operator"),
    "sync": ("POST", "sync", "Operator"),
    "import": ("GET", "import", "Operator"),
    "importable": ("GET", "importable", "Operator"),
    "live": ("GET", "live", "Operator"),
    "plans": ("GET", "plans", "Reader"),
    "plan": ("GET", "plans/{commit}", "Reader"),
    "pull": ("GET", "pulls/{number}", "Reader"),
    "versions": ("GET", "versions", "Reader"),
    "systems": ("GET", "systems", "Reader"),
    "approve": ("POST", "plans/{commit}/approve", "Approver"),
    "log": ("GET", "log", "Reader"),
    "recorded": ("GET", "recorded", "Reader"),
    "offers": ("POST", "offers", "Reader"),
    "dead_letters": ("GET", "dead-letters", "Reader"),
    "replay_letters": ("POST", "dead-letters/replay", "Operator"),
    "dismiss": ("POST", "dead-letters/dismiss", "Operator"),
    "audit": ("GET", "audit", "Reader"),
    "notifications": ("GET", "notifications", "Reader"),
    "notify_test": ("POST", "notifications/test", "Operator"),
    "rollouts": ("GET", "rollouts", "Reader"),
    "rollout": ("GET", "rollouts/{commit}", "Reader"),
    "rollout_pause": ("POST", "rollouts/{commit}/pause", "Operator"),
    "rollout_resume": ("POST", "rollouts/{commit}/resume", "Operator"),
    "rollout_abort": ("POST", "rollouts/{commit}/abort", "Operator"),
    "rollout_back": ("POST", "rollouts/{commit}/back", "Operator"),
    "rollout_override": ("POST", "rollouts/{commit}/override", "Approver"),
    "rollout_approve": ("POST", "rollouts/{commit}/approve", "Approver"),
    "rollout_skip": ("POST", "rollouts/{commit}/skip", "Approver"),
    "promotions": ("GET", "promotions", "Reader"),
    "promote": ("POST", "promotions", "Operator"),
    "suspend": ("POST", "suspensions", "Operator"),
    "rollback": ("POST", "clusters/{name}/pools/{pool}/rollback", "Operator"),
    "health": ("GET", "health", "Reader"),
    "openapi": ("GET", "openapi", "Reader"),
    "ready": ("GET", "ready", "anybody"),
    "github": ("POST", "github", "signature"),
    "flux": ("POST", "flux/{cluster}", "signature"),
    "system_approval": ("POST", "approvals/{system}", "signature"),
}
"""Every HTTP function of the API: its method, its route below ``api``, and who may call it."""
CONSOLE = ("GET/POST", "{*path}", "Reader")
"""The one that has every other address. Its forms are in ``test_console_forms.py``."""
PLACES = {"cluster": "NAME"}
"""What the page on the API calls a part of a route that is called otherwise there."""
NOT_CALLABLE = {
    "planner": "serviceBusTrigger",
    "previewer": "serviceBusTrigger",
    "worker": "serviceBusTrigger",
    "changer": "serviceBusTrigger",
    "deleter": "serviceBusTrigger",
    "dead_changes": "serviceBusTrigger",
    "dead_deletes": "serviceBusTrigger",
    "dead_jobs": "serviceBusTrigger",
    "dead_plans": "serviceBusTrigger",
    "dead_previews": "serviceBusTrigger",
    "azure_events": "serviceBusTrigger",
    "dead_events": "serviceBusTrigger",
    "plan_missed_head": "timerTrigger",
    "resend_overdue": "timerTrigger",
    "sweep": "timerTrigger",
    "check": "timerTrigger",
    "purge_expired": "timerTrigger",
}
"""Every other function: whoever starts it needs a right in Azure, on the queue or on the app."""

MAY: Mapping[str, set[str]] = {
    "reader": {"Reader"},
    "operator": {"Reader", "Operator"},
    "script": {"Reader", "Operator"},
    "approver": {"Reader", "Approver"},
    "admin": {"Reader", "Operator", "Approver", "Admin"},
    "nobody": set(),
    **{name: set() for name in ("function-app", "control", "worker", "deleter")},
}
"""The accounts of the local directory, and what each may do."""


def functions(app: func.FunctionApp) -> dict[str, Any]:
    return {str(function.get_function_name()): function for function in app.get_functions()}


@pytest.fixture(scope="session")  # the library lists the functions of an app once
def deployed() -> dict[str, Any]:
    """Return the functions as Azure loads them, without what the app does to every line of the log."""
    record = logging.getLogRecordFactory()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in json.loads(EXAMPLE.read_text())["Values"].items():
            patch.setenv(name, value)
        app = importlib.import_module("function_app").app
    logging.setLogRecordFactory(record)
    return functions(app)


def test_every_function_has_an_entry_in_this_table(deployed: dict[str, Any]) -> None:
    triggers = {name: document.get_trigger().get_dict_repr() for name, document in deployed.items()}
    http = {
        name: (
            "/".join(method.value for method in trigger["methods"]),
            trigger["route"].removeprefix("api/"),
            who_may_call(deployed[name].get_user_function()),
        )
        for name, trigger in triggers.items()
        if trigger["type"] == "httpTrigger"
    }
    assert http == {**ROUTES, "console": CONSOLE}
    others = {name for name in http if not triggers[name]["route"].startswith("api/")}
    assert others == {"console"}
    assert {name: triggers[name]["type"] for name in triggers.keys() - http.keys()} == NOT_CALLABLE
    assert triggers.keys() == functions(small_app(MemoryCloud().ports)).keys()


def test_the_page_of_the_api_has_every_call_and_its_role() -> None:
    page = (EXAMPLE.parent / "docs" / "api.md").read_text()
    table = page.partition("| call | role | result |\n|---|---|---|\n")[2].partition("\n\n")[0]
    documented: dict[tuple[str, str], str] = {}
    for line in table.splitlines():
        calls, role = line.removeprefix("| ").split(" | ")[:2]
        first, *others = re.findall(r"`([^`]+)`", calls)
        method, _, path = first.partition(" /api/")
        for document in (path, *(path.rpartition("/")[0] + other for other in others)):
            documented[method, document] = role
    known = {
        (method, re.sub(r"\{(\w+)\}", lambda part: PLACES.get(part[1], part[1].upper()), path)): who
        for method, path, who in ROUTES.values()
    }
    assert documented.keys() == known.keys()
    with_role = {call: who for call, who in known.items() if who not in ("anybody", "signature")}
    assert {call: documented[call] for call in with_role} == with_role


def test_the_host_checks_no_keys_because_every_function_decides_itself(deployed: dict[str, Any]) -> None:
    levels = {name: deployed[name].get_trigger().get_dict_repr()["authLevel"] for name in ROUTES}
    assert set(levels.values()) == {func.AuthLevel.ANONYMOUS}


@pytest.fixture(scope="module")
def url(identity: IdentityServer) -> Iterator[str]:
    with served(MemoryCloud().ports, AuthSettings(identity.authority, (API,))) as address:
        yield address


def ask(url: str, function: str, headers: Mapping[str, str]) -> int:
    method, path, _ = ROUTES[function]
    address = f"{url}/api/{path.format(name='one', pool='apps', commit='0' * 40, number=1)}"
    return httpx.request(method, address, headers=dict(headers), json={}, **DIRECT).status_code


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


API_ROUTES = sorted(ROUTES.keys() - {"github", "flux", "system_approval", "ready"})


def reached(url: str, headers: Mapping[str, str]) -> Mapping[str, int]:
    """Return what each function answers to a caller: its status if it refuses the caller, otherwise 200."""
    answers = {function: ask(url, function, headers) for function in API_ROUTES}
    return {name: status if status in (401, 403) else 200 for name, status in answers.items()}


@pytest.mark.parametrize("account", ACCOUNTS, ids=lambda account: account.name)
def test_each_account_reaches_what_its_role_may_and_nothing_else(
    url: str, identity: IdentityServer, account: Any
) -> None:
    allowed = {name: 200 if ROUTES[name][2] in MAY[account.name] else 403 for name in API_ROUTES}
    assert reached(url, bearer(identity.issue(API, account)[0])) == allowed


@pytest.mark.parametrize("role", ["reader", "operator", "approver", "admin"])
def test_a_key_has_exactly_its_role(url: str, role: str) -> None:
    allowed = {name: 200 if ROUTES[name][2] in MAY[role] else 403 for name in API_ROUTES}
    assert reached(url, {"x-functions-key": f"local-key-of-an-{role}"}) == allowed


def principal(**changes: Any) -> str:
    claims = [{"typ": "oid", "val": "1"}, {"typ": "roles", "val": "Admin"}, {"typ": "name", "val": "Mallory"}]
    text = json.dumps({"auth_typ": "aad", "claims": claims, **changes})
    return base64.b64encode(text.encode()).decode()


def worthless(identity: IdentityServer) -> Mapping[str, Mapping[str, str]]:
    """Return what a caller may send without proving anything."""
    admin = next(account for account in ACCOUNTS if account.name == "admin")
    claims = {**admin.claims(API), "iss": ISSUER, "exp": int(system_clock().timestamp()) + 3600}
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    early = lambda: system_clock() - timedelta(days=2)  # noqa: E731
    with IdentityServer(header="h", clock=early) as old:
        old._key = identity._key
        expired = old.issue(API, admin)[0]
    named = {"kid": "local"}
    return {
        "nothing": {},
        "a forged header": {"X-MS-CLIENT-PRINCIPAL": principal()},
        "a forged header in other letters": {"x-ms-Client-principal": principal()},
        "a forged header with underscores": {"X_MS_CLIENT_PRINCIPAL": principal()},
        "every forged header": {
            "X-MS-CLIENT-PRINCIPAL": principal(),
            "X-MS-CLIENT-PRINCIPAL-ID": "1",
            "X-MS-CLIENT-PRINCIPAL-NAME": "admin@example.com",
            "X-MS-CLIENT-PRINCIPAL-IDP": "aad",
            "X-MS-TOKEN-AAD-ID-TOKEN": "a.b.c",
        },
        "another audience": bearer(identity.issue("https://management.azure.com", admin)[0]),
        "an expired token": bearer(expired),
        "the key of a stranger": bearer(jwt.encode(claims, stranger, "RS256", headers=named)),
        "no signature": bearer(jwt.encode(claims, "", "none", headers=named)),
        "an unknown key": bearer(jwt.encode(claims, stranger, "RS256", headers={"kid": "other"})),
        "another issuer": bearer(
            jwt.encode({**claims, "iss": "https://evil.example/"}, identity._key, "RS256", headers=named)
        ),
        "no expiry": bearer(
            jwt.encode({k: v for k, v in claims.items() if k != "exp"}, identity._key, "RS256", headers=named)
        ),
        "no token": bearer("nonsense"),
        "a wrong key": {"x-functions-key": "local-key-of-an-admi"},
        "an empty key": {"x-functions-key": ""},
        "a session of nobody": {"Cookie": "AppServiceAuthSession=guess"},
        "the header of earlier versions": {"x-roadstead-actor": "admin"},
    }


def test_what_proves_nothing_opens_nothing(url: str, identity: IdentityServer) -> None:
    answers = {
        (function, what): ask(url, function, headers)
        for what, headers in worthless(identity).items()
        for function in (sample(what, API_ROUTES, 10) if headers else API_ROUTES)
    }
    assert {answer for answer, status in answers.items() if status != 401} == set()


def test_what_proves_nothing_is_led_from_each_page_to_the_sign_in(url: str, identity: IdentityServer) -> None:
    for what, headers in worthless(identity).items():
        for page in ("/", "/clusters/one", "/nothing"):
            reply = httpx.get(f"{url}{page}", headers=dict(headers), **DIRECT)
            led = reply.headers.get("location", "").startswith("/.auth/login/aad?")
            assert (reply.status_code, led) == (302, True), (what, page)


def test_a_forged_header_beside_a_token_gives_no_other_role(url: str, identity: IdentityServer) -> None:
    reader = next(account for account in ACCOUNTS if account.name == "reader")
    headers = {**bearer(identity.issue(API, reader)[0]), "X-MS-CLIENT-PRINCIPAL": principal()}
    assert (ask(url, "clusters", headers), ask(url, "dismiss", headers)) == (200, 403)


@pytest.mark.parametrize("content", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_a_form_of_another_site_acts_for_nobody(url: str, content: str) -> None:
    headers = {"x-functions-key": "local-key-of-an-admin", "Content-Type": content}
    for function in ("replay", "takeover", "approve", "dismiss"):
        address = f"{url}/api/{ROUTES[function][1].format(name='one', pool='apps', commit='0' * 40)}"
        assert httpx.post(address, headers=headers, content=b"{}", **DIRECT).status_code == 415


def test_no_header_is_believed_while_the_platform_does_not_verify_it() -> None:
    with served(MemoryCloud().ports) as url:
        assert ask(url, "clusters", {"X-MS-CLIENT-PRINCIPAL": principal()}) == 401


def test_anybody_may_ask_whether_the_app_is_ready_and_learns_nothing_else(
    url: str, identity: IdentityServer
) -> None:
    for headers in ({}, *worthless(identity).values()):
        reply = httpx.get(f"{url}/api/ready", headers=dict(headers), **DIRECT)
        assert reply.json().keys() == {"live", "ready"}


def test_the_webhook_takes_a_signature_and_no_role(url: str, identity: IdentityServer) -> None:
    admin = next(account for account in ACCOUNTS if account.name == "admin")
    assert ask(url, "github", bearer(identity.issue(API, admin)[0])) == 401


class Compared(dict[str, Role]):
    """Keys that nobody looks up; ``times`` is how many were given out to be compared."""

    times = 0

    def __getitem__(self, key: str) -> Role:
        raise AssertionError("a key is looked up")

    def items(self) -> Any:
        for item in super().items():
            self.times += 1
            yield item


@pytest.mark.parametrize("given", [*KEYS, "local-key-of-an-admi", "l", "wröng"])
def test_a_key_is_compared_with_every_key_whichever_it_is(given: str) -> None:
    keys = Compared(KEYS)
    caller = SignIn(keys=keys).caller({KEY: given})
    assert (caller.principal.roles if caller else {*()}) == {KEYS[key] for key in KEYS if key == given}
    assert keys.times == len(KEYS)
