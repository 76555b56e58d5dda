"""Table Storage beyond entities: the limit of a page, and answers that are cut off or are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from werkzeug.wrappers import Request, Response

from localcloud.common.http_server import HttpServer
from shared.adapters.tables import storage_tables, table_service
from shared.cluster.failures.errors import Unavailable
from shared.ports import GroupMember, State
from shared.ports.state.clusters import CLUSTERS
from shared.ports.tables import Table
from tests.support.azurite import KEY
from tests.support.receivers import answering

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALLS: dict[str, Callable[[State], object]] = {
    "a read": lambda state: state.cluster("one"),
    "a query": lambda state: state.clusters(),
    "a write": lambda state: state.save_timer_run("sweep", NOW),
    "a transaction": lambda state: state.add_group_members(
        [("g", GroupMember(name, "uid")) for name in "ab"]
    ),
}


def tables_at(url: str) -> Mapping[str, Table]:
    text = f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={KEY}"
    service = table_service(
        connection_string=f"{text};TableEndpoint={url}/devstoreaccount1", endpoint=None, credential=None
    )
    return storage_tables(service)


def state_at(url: str) -> State:
    return State(tables_at(url), "example")


def pages(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer a query as the service does: with 400 to more than a thousand entities at a time.

    Source: learn.microsoft.com/rest/api/storageservices/query-operators-supported-for-the-table-service.
    """
    if int(Request(environ).args.get("$top", 1000)) > 1000:
        error = {"odata.error": {"code": "InvalidInput", "message": {"value": "one input is not valid"}}}
        return Response(json.dumps(error), 400, content_type="application/json")(environ, start_response)
    return Response('{"value": []}', content_type="application/json")(environ, start_response)


def test_more_than_a_page_is_asked_for_in_pages() -> None:
    with HttpServer(pages) as server:
        state = state_at(server.url)
        assert not [*state.notifications(10_000), *state.acts(10_000), *state.dead_letters(1001)]


class PagedTable:
    """Answers a query in pages of one entity, ``last`` of them; ``asked`` are those that were asked for.

    What it answers to the page ``broken`` is no answer of the service.
    """

    def __init__(self, last: int, broken: int = 0) -> None:
        self.asked, self._last, self._broken = list[int](), last, broken

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        number = int(Request(environ).args.get("NextRowKey", 1))
        self.asked.append(number)
        body = json.dumps({"value": [{"PartitionKey": "example", "RowKey": str(number)}]})
        reply = Response("<html>" if number == self._broken else body, content_type="application/json")
        if number < self._last:
            reply.headers["x-ms-continuation-NextPartitionKey"] = "example"
            reply.headers["x-ms-continuation-NextRowKey"] = str(number + 1)
        return reply(environ, start_response)


@pytest.mark.parametrize("last", [1, 2, 5])
def test_each_page_of_a_query_is_read_once_and_in_order(last: int) -> None:
    paged = PagedTable(last)
    with HttpServer(paged) as server:
        found = [entity["RowKey"] for entity in tables_at(server.url)[CLUSTERS].query("example")]
    assert (found, paged.asked) == ([str(number) for number in range(1, last + 1)], [*range(1, last + 1)])


def test_a_query_that_is_left_has_asked_for_one_page_more_at_most() -> None:
    paged = PagedTable(9)
    with HttpServer(paged) as server:
        found = tables_at(server.url)[CLUSTERS].query("example")
        assert [next(found)["RowKey"] for _ in range(2)] == ["1", "2"]
        found.close()  # type: ignore[attr-defined]
    assert paged.asked == [1, 2, 3]


@pytest.mark.parametrize("broken", [1, 2, 3])
def test_a_list_of_which_a_page_cannot_be_read_is_no_shorter_list(broken: int) -> None:
    with HttpServer(PagedTable(3, broken)) as server, pytest.raises(Unavailable, match="cannot be read"):
        list(tables_at(server.url)[CLUSTERS].query("example"))


def test_a_page_that_takes_two_requests_is_read_like_the_others() -> None:
    """As one of which the service asks to sign in again, which the client does by itself."""
    paged, led = PagedTable(4), set[int]()

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        number = int(request.args.get("NextRowKey", 1))
        if number in led:
            return paged(environ, start_response)
        led.add(number)
        return Response(status=307, headers={"Location": request.url})(environ, start_response)

    with HttpServer(answer) as server:
        found = [entity["RowKey"] for entity in tables_at(server.url)[CLUSTERS].query("example")]
    assert (found, paged.asked, led) == (["1", "2", "3", "4"], [1, 2, 3, 4], {1, 2, 3, 4})


def test_a_transaction_whose_answer_is_cut_off_is_unavailable() -> None:
    """Its answer has several parts, which the library reads as a stream."""
    head = b"HTTP/1.1 202 Accepted\r\nContent-Type: multipart/mixed; boundary=batch_1\r\n"
    cut_off = head + b"Content-Length: 500\r\n\r\n--batch_1\r\nContent-Ty"
    with answering(cut_off) as url, pytest.raises(Unavailable):
        CALLS["a transaction"](state_at(url))


@pytest.mark.parametrize("call", CALLS)
def test_an_answer_that_is_no_json_is_unavailable(call: str) -> None:
    """As that of a proxy: a refusal that no attempt mends would be one of the service."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    with answering(head + b"<html>") as url, pytest.raises(Unavailable, match="cannot be read"):
        CALLS[call](state_at(url))
