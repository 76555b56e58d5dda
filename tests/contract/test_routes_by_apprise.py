"""E-mail and the services of Apprise against real receivers."""

from __future__ import annotations

import gc
import json

import pytest

from localcloud.common.certificates import Authority
from localcloud.common.http_server import HttpServer
from shared.cluster.failures.errors import Dependency, Unavailable, Unexpected
from shared.language.model.notification_kinds import RouteType
from tests.support.notification_routes import login, send
from tests.support.receivers import Inbox, https_inbox, mail_server
from tests.support.webhook_receiver import Receiver

pytestmark = pytest.mark.lives


def test_mail_is_delivered_as_plain_text() -> None:
    with mail_server() as box:
        send(RouteType.EMAIL, f"mailto://127.0.0.1:{box.port}/?from=fleet@example.com&to=ops@example.com")
    (mail,) = box.got
    assert mail["Subject"] == "example: 2 clusters failed in westeurope: QuotaExceeded"
    assert mail.get_content_type() == "text/plain"
    assert "Which: one 12:00:00, two 12:00:00" in mail.get_content()
    assert box.recipients == ["ops@example.com"]


def test_mail_over_tls_needs_the_password(trusted: Authority) -> None:
    with mail_server(trusted) as box:
        send(RouteType.EMAIL, login(box, "mail-pass-9d41c7"))
        assert len(box.got) == 1
        with pytest.raises(Unavailable):
            send(RouteType.EMAIL, login(box, "wrong-pass-000000"))
    assert len(box.got) == 1


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_password_that_smtp_cannot_send_is_an_error_of_ours_without_it(trusted: Authority) -> None:
    """AUTH has ASCII, and the library lets the error of Python's SMTP client through."""
    with mail_server(trusted) as box:
        with pytest.raises(Unexpected, match=r"^Apprise cannot deliver to the address: UnicodeEncodeError$"):
            send(RouteType.EMAIL, login(box, "p%C3%A4ss-9d41c7"))
        gc.collect()  # the library leaves its connection to the collector
        assert box.got == []


def test_a_mail_server_that_refuses_or_is_not_there_is_unavailable() -> None:
    with mail_server() as box:
        address = f"mailto://127.0.0.1:{box.port}/?from=fleet@example.com&to=ops@example.com"
        box.refuse = "452 4.3.1 Insufficient system storage"
        with pytest.raises(Unavailable):
            send(RouteType.EMAIL, address)
    with pytest.raises(Unavailable):
        send(RouteType.EMAIL, address)


def test_a_route_for_mail_takes_no_other_address(inbox: Inbox) -> None:
    with pytest.raises(Dependency, match="mailto"):
        send(RouteType.EMAIL, inbox.url.replace("https", "jsons"))
    assert inbox.got == []


def test_any_service_of_apprise_is_reached_by_its_address(inbox: Inbox) -> None:
    send(RouteType.APPRISE, f"{inbox.url.replace('https', 'jsons')}/hook")
    ((_, _, body),) = inbox.got
    assert json.loads(body)["title"] == "example: 2 clusters failed in westeurope: QuotaExceeded"
    with pytest.raises(Dependency, match="none that Apprise knows"):
        send(RouteType.APPRISE, "nonsense://somewhere")
    inbox.default = (500, {}, "")
    with pytest.raises(Unavailable):
        send(RouteType.APPRISE, f"{inbox.url.replace('https', 'jsons')}/hook")


@pytest.mark.parametrize("asked", ["", "?redirect=yes"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_apprise_follows_no_redirect_whatever_its_address_says(
    inbox: Inbox, trusted: Authority, asked: str, status: int
) -> None:
    with https_inbox(trusted) as other:
        inbox.default = (status, {"Location": f"{other.url}/elsewhere"}, "")
        with pytest.raises(Unavailable):
            send(RouteType.APPRISE, f"{inbox.url.replace('https', 'jsons')}/hook{asked}")
        assert (len(inbox.got), other.got) == (1, [])


@pytest.mark.parametrize("address", ["json://127.0.0.1:{port}/hook", "xml://user:{port}@127.0.0.1:{port}"])
def test_a_service_with_tls_is_not_sent_plain_text(address: str) -> None:
    taken = Receiver()
    with HttpServer(taken.app) as server:
        port = server.url.rpartition(":")[2]
        with pytest.raises(Dependency, match=r"sends plain text; the scheme with TLS is (jsons|xmls)://"):
            send(RouteType.APPRISE, address.format(port=port))
    assert taken.seen == []
