"""The channels of notifications against real receivers: HTTPS and SMTP over sockets."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from localcloud.common.certificates import Authority
from localcloud.common.http_server import HttpServer
from shared.adapters.channels import AppChannels, https
from shared.jobs.failures.errors import (
    Dependency,
    ReconcileError,
    Retryable,
    Throttled,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unexpected,
)
from shared.notices.digest import Links, Outgoing, messages
from shared.notices.routes import LIMITS, Route, RouteType
from tests.support.notices import fact
from tests.support.receivers import Inbox, Mailbox, https_inbox, mail_server, silent_server
from tests.support.webhook_receiver import Receiver

TOKEN = "T0KENc4n4ry/B0hook7f3e/secretsecret29ab"
SIGNATURE = "sig-canary-83bd01f7aa"
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"""The example of the Standard Webhooks specification."""
LINKS = Links("https://github.com/example/fleet", "https://app.example.com")


@pytest.fixture
def inbox(trusted: Authority) -> Iterator[Inbox]:
    with https_inbox(trusted) as inbox:
        yield inbox


def now() -> datetime:
    return datetime.now(UTC)


def message(*names: str, type_: RouteType = RouteType.SLACK) -> Outgoing:
    facts = [fact(name) for name in names or ("one", "two")]
    return messages(facts, fleet="example", limit=LIMITS[type_], links=LINKS)[0]


def channels(address: str, **more: str) -> AppChannels:
    return AppChannels({"OPS": address, **more}, clock=now)


def send(kind: RouteType, address: str, sent: Outgoing | None = None, **more: str) -> None:
    channels(address, **more).send(Route("ops", kind, "OPS"), sent or message(type_=kind))


def test_slack_gets_the_text_as_it_is_at_the_whole_address(inbox: Inbox) -> None:
    hostile = replace(fact("one"), detail="<!channel> & <https://evil.example|click>")
    sent = messages([hostile], fleet="example", limit=12_000, links=LINKS)[0]
    send(RouteType.SLACK, f"{inbox.url}/services/{TOKEN}", sent)
    ((path, headers, body),) = inbox.got
    assert path == f"/services/{TOKEN}"
    assert headers["content-type"] == "application/json; charset=utf-8"
    shown = json.loads(body)
    assert shown["mrkdwn"] is False
    assert shown["text"].startswith("example: 1 cluster failed in westeurope: QuotaExceeded\n\n")
    assert "&lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;" in shown["text"]


def test_teams_gets_a_card_with_the_text_and_the_links(inbox: Inbox) -> None:
    address = f"{inbox.url}/workflows/abc/triggers/manual/paths/invoke?api-version=1&sig={SIGNATURE}"
    inbox.default = (202, {}, "")
    send(RouteType.TEAMS, address)
    ((path, _, body),) = inbox.got
    assert path.endswith(f"sig={SIGNATURE}")
    (attachment,) = json.loads(body)["attachments"]
    card: dict[str, Any] = attachment["content"]
    assert (json.loads(body)["type"], card["type"]) == ("message", "AdaptiveCard")
    texts = [run["text"] for block in card["body"] for run in block["inlines"]]
    assert "Which: one 12:00:00, two 12:00:00" in texts
    assert [action["url"].startswith("https://") for action in card["actions"]] == [True, True]


@pytest.mark.parametrize("letter", ["a", '"', "é", "\N{GRINNING FACE}", "\\"])
def test_a_card_is_never_larger_than_teams_takes(inbox: Inbox, letter: str) -> None:
    facts = [
        replace(
            fact(f"aks-{n}", number=n, reason=f"Reason{n % 7}", location=f"region{n % 5}"),
            detail=letter * 300,
        )
        for n in range(400)
    ]
    for sent in messages(facts, fleet="example", limit=LIMITS[RouteType.TEAMS], links=LINKS):
        send(RouteType.TEAMS, inbox.url, sent)
    assert max(len(body.decode().encode("utf-16-le")) for _, _, body in inbox.got) <= 28 * 1024


def test_a_webhook_is_signed_as_standard_webhooks_says(inbox: Inbox) -> None:
    sent = message(type_=RouteType.WEBHOOK)
    send(RouteType.WEBHOOK, f"{inbox.url}/hook", sent, OPS_SECRET=KEY)
    ((_, headers, body),) = inbox.got
    verified = Webhook(KEY).verify(body, headers)
    assert [each["subject"] for each in verified["groups"][0]["facts"]] == ["one", "two"]
    assert headers["webhook-id"] == verified["id"] == sent.id
    with pytest.raises(WebhookVerificationError):
        Webhook(KEY).verify(body + b" ", headers)


def test_a_message_that_is_sent_again_has_the_same_id(inbox: Inbox) -> None:
    for _ in range(2):
        send(RouteType.WEBHOOK, inbox.url, message("one"), OPS_SECRET=KEY)
    first, second = (headers["webhook-id"] for _, headers, _ in inbox.got)
    assert first == second


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ((429, {"Retry-After": "37"}, "rate_limited"), Throttled, "status 429: rate_limited"),
        ((500, {}, "oops, at /services/x"), Unavailable, "status 500"),
        ((503, {"Retry-After": "9"}, ""), Unavailable, "status 503"),
        ((403, {}, "invalid_token"), Unauthenticated, "status 403: invalid_token"),
        ((404, {}, "no_service"), Dependency, "status 404: no_service"),
        ((410, {}, "channel_is_archived"), Dependency, "status 410: channel_is_archived"),
        ((413, {}, ""), TooLarge, "status 413"),
        ((400, {}, "invalid_payload"), Unexpected, "status 400: invalid_payload"),
    ],
)
def test_a_refusal_becomes_an_error_of_its_class(
    inbox: Inbox, answer: tuple[int, dict[str, str], str], error: type[ReconcileError], said: str
) -> None:
    inbox.default = answer
    with pytest.raises(error) as caught:
        send(RouteType.SLACK, f"{inbox.url}/services/{TOKEN}")
    assert str(caught.value).endswith(said)
    wait = answer[1].get("Retry-After")
    assert (isinstance(caught.value, Retryable) and caught.value.retry_after) in (
        [float(wait)] if wait else [None, False]
    )


def test_a_redirect_is_not_followed(inbox: Inbox, trusted: Authority) -> None:
    with https_inbox(trusted) as other:
        inbox.default = (307, {"Location": f"{other.url}/elsewhere"}, "")
        with pytest.raises(Unexpected, match="redirect is not followed"):
            send(RouteType.SLACK, inbox.url)
        assert other.got == []


@pytest.mark.parametrize("closes", [True, False])
def test_a_receiver_that_hangs_or_closes_is_unavailable(
    closes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(https, "READ_SECONDS", 0.3)
    monkeypatch.setattr(https, "CONNECT_SECONDS", 0.3)
    with silent_server(closes=closes) as address, pytest.raises(Unavailable):
        send(RouteType.SLACK, address)


def test_a_certificate_that_nobody_vouches_for_is_refused(
    trusted: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = tmp_path / "other.pem"
    Authority().write(stranger)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(stranger))
    with https_inbox(trusted) as inbox, pytest.raises(Unavailable, match="SSLError"):
        send(RouteType.SLACK, f"{inbox.url}/services/{TOKEN}")


@pytest.mark.parametrize("kind", [RouteType.SLACK, RouteType.TEAMS, RouteType.WEBHOOK])
@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:9/x", "ftp://example.com", "nonsense", "https://", "https://[::1", "file:///"],
)
def test_an_address_without_tls_is_not_requested(kind: RouteType, address: str) -> None:
    with pytest.raises(Dependency, match="is not an https:// URL"):
        send(kind, address, OPS_SECRET=KEY)


@pytest.mark.parametrize(
    "secret", ["", "short", "whsec_YWJj", "whsec_not base64!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2La"]
)
def test_a_webhook_without_a_key_is_not_sent(inbox: Inbox, secret: str) -> None:
    with pytest.raises(Dependency):
        send(RouteType.WEBHOOK, inbox.url, OPS_SECRET=secret)
    assert inbox.got == []


def test_a_setting_that_is_missing_or_not_resolved_is_named() -> None:
    with pytest.raises(Dependency, match="the app has no setting NOTIFY_OPS"):
        send(RouteType.SLACK, "")
    with pytest.raises(Dependency, match="NOTIFY_OPS: the Key Vault reference is not resolved"):
        send(RouteType.SLACK, "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/x)")


def test_mail_is_delivered_as_plain_text() -> None:
    with mail_server() as box:
        send(RouteType.EMAIL, f"mailto://127.0.0.1:{box.port}/?from=fleet@example.com&to=ops@example.com")
    (mail,) = box.got
    assert mail["Subject"] == "example: 2 clusters failed in westeurope: QuotaExceeded"
    assert mail.get_content_type() == "text/plain"
    assert "Which: one 12:00:00, two 12:00:00" in mail.get_content()
    assert box.recipients == ["ops@example.com"]


def _login(box: Mailbox, password: str) -> str:
    options = "mode=starttls&from=fleet@example.com&to=ops@example.com"
    return f"mailtos://mailer:{password}@127.0.0.1:{box.port}/?{options}"


def test_mail_over_tls_needs_the_password(trusted: Authority) -> None:
    with mail_server(trusted) as box:
        send(RouteType.EMAIL, _login(box, "mail-pass-9d41c7"))
        assert len(box.got) == 1
        with pytest.raises(Unavailable):
            send(RouteType.EMAIL, _login(box, "wrong-pass-000000"))
    assert len(box.got) == 1


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


def test_no_error_and_no_line_of_the_log_has_an_address_or_a_secret(
    inbox: Inbox, trusted: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    texts = []
    inbox.default = (500, {}, f"bad path /services/{TOKEN}")
    with mail_server(trusted) as box, silent_server(closes=True) as broken:
        send(RouteType.EMAIL, _login(box, "mail-pass-9d41c7"))
        for kind, address in (
            (RouteType.SLACK, f"{inbox.url}/services/{TOKEN}"),
            (RouteType.SLACK, f"{broken}/services/{TOKEN}"),
            (RouteType.SLACK, f"http://x/services/{TOKEN}"),
            (RouteType.TEAMS, f"https://127.0.0.1:1/x?sig={SIGNATURE}"),
            (RouteType.WEBHOOK, f"https://user:{SIGNATURE}@127.0.0.1:1/{TOKEN}"),
            (RouteType.EMAIL, _login(box, SIGNATURE)),
            (RouteType.APPRISE, f"slacks://{TOKEN}"),
            (RouteType.APPRISE, f"jsons://user:{SIGNATURE}@127.0.0.1:1/{TOKEN}"),
        ):
            with pytest.raises(ReconcileError) as caught:
                send(kind, address, OPS_SECRET=KEY)
            texts.append("".join(traceback.format_exception(caught.value)))
    lines = [record.getMessage() for record in caplog.records if record.name != "mail.log"]  # the receiver's
    shown = "\n".join([*texts, *lines])
    secrets = (TOKEN, *TOKEN.split("/"), SIGNATURE, KEY, "ops@example.com")
    # A traceback has the lines of this file, which name the variables and no value.
    assert [secret for secret in secrets if secret in shown] == []
