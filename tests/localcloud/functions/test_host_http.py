"""The development host's HTTP triggers, with the real azure.functions library over a socket."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import azure.functions as func
import httpx

from localcloud.functions.host import Host
from localcloud.functions.host_config import HostConfig
from localcloud.functions.worker.in_process import functions_of


@contextmanager
def serving(app: func.FunctionApp, config: HostConfig | None = None) -> Iterator[tuple[Host, httpx.Client]]:
    host = Host(functions_of(app, {}), config or HostConfig())
    host.start()
    try:
        with httpx.Client(base_url=host.url, trust_env=False) as client:
            yield host, client
    finally:
        host.close()


def test_a_function_gets_the_raw_request_and_its_reply_is_sent_as_it_is() -> None:
    app = func.FunctionApp()
    seen: list[func.HttpRequest] = []

    @app.route("clusters/{name}/{*rest}", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
    def receive(req: func.HttpRequest) -> func.HttpResponse:
        seen.append(req)
        reply = func.HttpResponse(b"\x00\xff", status_code=202, headers={"Retry-After": "7"})
        reply.headers.add("Set-Cookie", "a=1")
        reply.headers.add("Set-Cookie", "b=2")
        return reply

    with serving(app) as (host, client):
        reply = client.post(
            "/API/clusters/caf%C3%A9/a/b?x=1&x=2", content=b"\xfe raw", headers={"X-Hub-Signature": "s"}
        )

    (request,) = seen
    assert request.method == "POST"
    assert request.url == f"{host.url}/API/clusters/caf%C3%A9/a/b?x=1&x=2"
    assert dict(request.route_params) == {"name": "café", "rest": "a/b"}
    assert dict(request.params) == {"x": "1,2"}
    assert request.get_body() == b"\xfe raw"
    assert request.headers["x-hub-signature"] == "s"
    assert (reply.status_code, reply.content, reply.headers["Retry-After"]) == (202, b"\x00\xff", "7")
    assert reply.headers.get_list("Set-Cookie") == ["a=1", "b=2"]


def test_literal_routes_win_and_what_no_function_serves_is_404() -> None:
    app = func.FunctionApp()

    @app.route("plans/{commit}", methods=["GET"])
    def plan(req: func.HttpRequest) -> str:
        return f"one {req.route_params['commit']}"

    @app.route("plans/latest", methods=["GET"])
    def latest(req: func.HttpRequest) -> str:
        return "latest"

    @app.route("plans/{commit?}", methods=["PUT"])
    def write(req: func.HttpRequest) -> str:
        return str(dict(req.route_params))

    with serving(app, HostConfig(route_prefix="v1")) as (_, client):
        assert client.get("/v1/plans/latest").text == "latest"
        assert client.get("/v1/plans/abc/").text == "one abc"
        assert client.put("/v1/plans").text == "{}"
        assert client.delete("/v1/plans/abc").status_code == 404
        assert client.get("/api/plans/abc").status_code == 404
        assert client.get("/v1/plans/a/b").status_code == 404
        assert client.get("/admin/host/status").status_code == 200


def test_an_exception_or_a_wrong_value_is_an_empty_500() -> None:
    app = func.FunctionApp()

    @app.route("broken")
    def broken(req: func.HttpRequest) -> str:
        raise ValueError("a secret")

    @app.route("nothing")
    def nothing(req: func.HttpRequest) -> None:
        return None

    with serving(app) as (_, client):
        for path in ("/api/broken", "/api/nothing"):
            reply = client.get(path)
            assert (reply.status_code, reply.content) == (500, b"")


def test_several_functions_run_at_once_and_each_gets_its_own_context() -> None:
    app = func.FunctionApp()
    together = threading.Barrier(3, timeout=60)
    contexts: list[func.Context] = []

    @app.function_name("meet")
    @app.route("meet")
    def meet(req: func.HttpRequest, context: func.Context) -> str:
        contexts.append(context)
        together.wait()
        return str(context.function_name)

    with serving(app) as (host, _):
        calls = [threading.Thread(target=httpx.get, args=(f"{host.url}/api/meet",)) for _ in range(2)]
        for call in calls:
            call.start()
        together.wait()
        for call in calls:
            call.join()

    assert {context.function_name for context in contexts} == {"meet"}
    assert len({context.invocation_id for context in contexts}) == 2
