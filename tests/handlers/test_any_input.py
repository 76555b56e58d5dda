"""Whatever a request has in its address, headers and body, the answer is no 5xx and says what is wrong."""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any

import azure.functions as func
from hypothesis import example, given
from hypothesis import strategies as st

from handlers.sign_in import KEY, PRINCIPAL, SignIn
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.access import Role
from tests.support import fleet_files
from tests.support.function_calls import ADMIN, APPROVAL_KEYS, functions
from tests.support.hypothesis_settings import GENERATED
from tests.support.pipeline_runs import push
from tests.support.webhook_deliveries import payload, sign


def _app() -> tuple[dict[str, Any], str]:
    cloud = MemoryCloud()
    commit = push(cloud, fleet_files.fleet("one"))
    cloud.run()
    return functions(cloud.ports), commit


APP, COMMIT = _app()
"""A fleet with one cluster; no test changes it but by requests."""
LONG = "1" * 5000
WORDS = st.one_of(
    st.text(),
    st.sampled_from(
        ["", "0", "-1", "1e9", "٣", LONG, "one", COMMIT, "a/b", "\x00", "\ud800", "%00", "x" * 9000]
    ),
    st.integers().map(str),
    st.datetimes().map(str),
    st.sampled_from(["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-W01", "20260101T00Z"]),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
PARAMETERS = [
    *("limit", "after", "before", "resource", "reason", "cluster", "clusters", "phase", "environment"),
    *("location", "class", "label", "condition", "commit", "prefix", "sort"),
]
SELECTIONS = ["Ready", "Ready,", "Ready=Maybe", "=", ",", "name", "phase", "a=b=c", "one,one"]
FIELDS = [
    *("clusters", "deadLetters", "reason", "all", "correction", "override", "route", "from", "to", "what"),
    *("stage", "cluster"),
]
RANDOM = Random(1)
UNLIKE = ["".join(map(chr, RANDOM.choices(range(0x4E00, 0x9FFF), k=63))) for _ in range(10_000)]
"""Names that no cluster has, and that no compression makes smaller."""
SIGNED = ("github", "flux", "system_approval")
"""Those whose bodies have a signature, and that answer 401 to everything here."""
REQUESTS = sorted(
    name for name, document in APP.items() if document.get_trigger().get_dict_repr()["type"] == "httpTrigger"
)


def _names(function: str) -> list[str]:
    route = APP[function].get_trigger().get_dict_repr().get("route", "")
    return [part[1:-1] for part in route.split("/") if part.startswith("{")]


def _answer(request: func.HttpRequest, function: str) -> tuple[int, Any]:
    reply = APP[function].get_user_function()(request)
    text = reply.get_body().decode()
    return reply.status_code, {"error": text[-1000:]} if reply.mimetype == "text/html" else json.loads(text)


def _is_readable(status: int, body: Any) -> bool:
    return status < 400 or (status < 500 and isinstance(body["error"], str) and len(body["error"]) < 2000)


@given(
    function=st.sampled_from(REQUESTS),
    route=st.lists(WORDS, min_size=2, max_size=2),
    query=st.dictionaries(st.sampled_from(PARAMETERS), WORDS | st.sampled_from(SELECTIONS)),
    headers=st.dictionaries(st.sampled_from(["x-forwarded-for", "user-agent", "x-github-event"]), WORDS),
    body=st.binary(max_size=20)
    | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)).map(json.dumps).map(str.encode),
)
@example("clusters", ["", ""], {"limit": LONG}, {}, b"")
@example("plan", [COMMIT, ""], {"limit": LONG}, {}, b"")
@example("events", ["one", ""], {"limit": LONG}, {}, b"")
@example("takeover", ["\ud800", ""], {}, {}, b"")
@example("approve", [COMMIT, ""], {}, {"user-agent": "\ud800"}, b'{"clusters": ["\\ud800"]}')
@example("approve", [COMMIT, ""], {}, {}, json.dumps({"clusters": UNLIKE}).encode())
@example("promote", ["", ""], {}, {}, json.dumps({"from": "x" * 9000, "to": "development"}).encode())
@example("dismiss", ["", ""], {}, {}, b'{"deadLetters": ' + b"[" * 50_000)
@GENERATED
def test_no_request_of_the_api_ends_with_a_server_error(
    function: str, route: list[str], query: dict[str, str], headers: dict[str, str], body: bytes
) -> None:
    given = dict(zip(_names(function), route, strict=False))
    method = APP[function].get_trigger().get_dict_repr()["methods"][0].value
    known = {**headers, **ADMIN, "Content-Type": "application/json"}
    request = func.HttpRequest(method, "/api", body=body, route_params=given, params=query, headers=known)
    status, answer = _answer(request, function)
    assert function in SIGNED or status != 401, "the test would show nothing"
    assert _is_readable(status, answer)


@given(
    header=st.sampled_from([PRINCIPAL, KEY]),
    value=WORDS | JSON.map(lambda each: base64.b64encode(json.dumps(each).encode()).decode()),
)
@example(KEY, "\ud800")
@example(PRINCIPAL, "\ud800")
@example(PRINCIPAL, base64.b64encode(b"[" * 50_000).decode())
@GENERATED
def test_no_proof_of_an_identity_ends_with_a_server_error(header: str, value: str) -> None:
    sign_in = SignIn("entra", platform_verifies=True, keys={"a-key": Role.READER})
    assert sign_in.caller({header: value}) is None


PUSH = {
    "ref": st.sampled_from(["refs/heads/main", "refs/heads/"]) | JSON,
    "after": st.sampled_from(["f" * 40, "f" * 1_000_000]) | JSON,
    "deleted": JSON,
    "repository": st.fixed_dictionaries(
        {"full_name": st.sampled_from(["example/fleet"]) | JSON}, optional={"pushed_at": JSON}
    )
    | JSON,
}
PULL = {
    "action": st.sampled_from(["opened", "edited"]) | JSON,
    "number": st.sampled_from([7, 10**4000]) | JSON,
    "pull_request": st.fixed_dictionaries(
        {
            "head": st.fixed_dictionaries({"sha": st.sampled_from(["f" * 40, "f" * 1_000_000]) | JSON}),
            "base": st.fixed_dictionaries({"ref": st.sampled_from(["main"]) | JSON}),
        }
    )
    | JSON,
    "changes": JSON,
    "repository": st.just({"full_name": "example/fleet"}),
}


@given(
    event=st.sampled_from(["push", "pull_request", "ping"]) | WORDS,
    delivery=st.just("d1") | WORDS,
    body=st.one_of(
        st.fixed_dictionaries(PUSH).map(json.dumps).map(str.encode),
        st.fixed_dictionaries(PULL).map(json.dumps).map(str.encode),
        st.binary(max_size=50),
    ),
    signature=st.none() | WORDS,
)
@example("push", "d1", payload(after="f" * 1_000_000), None)
@example("push", "\ud800", payload(), None)
@example("push", "d1", payload(), "\ud800")
@GENERATED
def test_no_delivery_ends_with_a_server_error(
    event: str, delivery: str, body: bytes, signature: str | None
) -> None:
    headers = {
        "x-hub-signature-256": sign(body) if signature is None else signature,
        "x-github-event": event,
        "x-github-delivery": delivery,
    }
    assert _is_readable(
        *_answer(func.HttpRequest("POST", "/api/github", body=body, headers=headers), "github")
    )


@given(
    identity=WORDS,
    seconds=WORDS | st.sampled_from(["0", "99999999999", "1767225600"]),
    signature=WORDS | WORDS.map("v1,{}".format),
    body=st.binary(max_size=20),
)
@example("\ud800", "0", "v1,x", b"{}")
@example("x", "0", "v1,\ud800", b"{}")
@GENERATED
def test_no_approval_of_a_system_ends_with_a_server_error(
    identity: str, seconds: str, signature: str, body: bytes
) -> None:
    headers = {"webhook-id": identity, "webhook-timestamp": seconds, "webhook-signature": signature}
    (system,) = APPROVAL_KEYS
    request = func.HttpRequest("POST", "/api", body=body, route_params={"system": system}, headers=headers)
    status, answer = _answer(request, "system_approval")
    assert status == 401
    assert _is_readable(status, answer)
