"""``POST /api/flux/NAME``: from the local Flux over a socket, and from whoever sends something else."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import azure.functions as func
import httpx
from hypothesis import example, given
from hypothesis import strategies as st

from localcloud.flux.http_posts import HttpPosts
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.events import FLUX_REPORTED
from tests.support.function_calls import functions
from tests.support.hypothesis_settings import GENERATED
from tests.support.pipeline_runs import phases, push
from tests.support.reporting_flux import cloud_with_key, event, reporting, reporting_files, signed
from tests.support.served_api import served
from tests.support.waiting import until

CLOUD = reporting()
FLUX = functions(CLOUD.ports)["flux"].get_user_function()
WORDS = st.text() | st.sampled_from(["", "one", "two", "a/b", "\x00", "\ud800", "x" * 9000])


def test_the_flux_of_a_cluster_reports_over_a_socket_what_it_does() -> None:
    cloud = cloud_with_key()
    with served(cloud.ports) as url, closing(HttpPosts()) as posts:
        cloud.posts = posts
        cloud.with_ports(lambda ports: replace(ports, config=replace(ports.config, public_url=url)))
        push(cloud, reporting_files())
        cloud.run()
        assert phases(cloud) == {"one": Phase.READY}
        push(cloud, reporting_files() | {"platform/broken.yaml": b"kind: [unfinished"})
        cloud.run(seconds=120, until=lambda: False)

        def heard() -> list[bool]:
            found = cloud.state.events("one", 500)
            return [stored_event.warning for stored_event in found if stored_event.reason == FLUX_REPORTED]

        until(lambda: {True, False} <= set(heard()))
        body = event(cloud)
        wrong = httpx.post(f"{url}/api/flux/one", content=body, headers=signed(body, "x"), trust_env=False)
        right = httpx.post(f"{url}/api/flux/one", content=body, headers=signed(body), trust_env=False)
        assert (wrong.status_code, right.status_code) == (401, 202)


@given(
    cluster=WORDS,
    body=st.binary(max_size=40)
    | st.sampled_from([b"[" * 50_000, b"{}", b'{"timestamp": 1e999}', b"\xff", b"x" * 70_000]),
    signature=WORDS | st.none(),
)
@example("one", b"[" * 50_000, None)
@example("one", b"{}", "sha256=\ud800")
@GENERATED
def test_nothing_that_is_sent_ends_with_a_server_error(
    cluster: str, body: bytes, signature: str | None
) -> None:
    headers = signed(body) if signature is None else {"X-Signature": signature}
    request = func.HttpRequest(
        "POST", "/api/flux", body=body, route_params={"cluster": cluster}, headers=headers
    )
    assert 400 <= FLUX(request).status_code < 500
