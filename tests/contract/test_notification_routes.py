"""The routes of notifications against real receivers: HTTPS and SMTP over sockets."""

from __future__ import annotations

import json
import logging
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from localcloud.common.certificates import Authority
from shared.adapters import notification_routes as https
from shared.cluster.failures.errors import (
    Dependency,
    ReconcileError,
    Retryable,
    Throttled,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unexpected,
)
from shared.language.model.notification_kinds import RouteType
from shared.notifications.digest import messages
from shared.notifications.routes import LIMITS
from tests.support.notification_routes import KEY, LINKS, login, message, send
from tests.support.notifications import notified
from tests.support.receivers import Inbox, answering, https_inbox, mail_server, silent_server

pytestmark = pytest.mark.lives

TOKEN = "T0KENc4n4ry/B0hook7f3e/secretsecret29ab"
SIGNATURE = "sig-canary-83bd01f7aa"


def test_slack_gets_the_text_as_it_is_at_the_whole_address(inbox: Inbox) -> None:
    hostile = replace(notified("one"), detail="<!channel> & <https://evil.example|click>")
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
    assert [action["title"] for action in card["actions"]] == [
        "one",
        "two",
        "commit c0ffeec0",
        "plan c0ffeec0",
    ]
    assert all(action["url"].startswith("https://") for action in card["actions"])


@pytest.mark.parametrize("letter", ["a", '"', "é", "\N{GRINNING FACE}", "\\"])
def test_a_card_is_never_larger_than_teams_takes(inbox: Inbox, letter: str) -> None:
    notifications = [
        replace(
            notified(f"aks-{n}", number=n, reason=f"Reason{n % 7}", location=f"region{n % 5}"),
            detail=letter * 300,
        )
        for n in range(400)
    ]
    for sent in messages(notifications, fleet="example", limit=LIMITS[RouteType.TEAMS], links=LINKS):
        send(RouteType.TEAMS, inbox.url, sent)
    assert max(len(body.decode().encode("utf-16-le")) for _, _, body in inbox.got) <= 28 * 1024


def test_a_webhook_is_signed_as_standard_webhooks_says(inbox: Inbox) -> None:
    sent = message(type_=RouteType.WEBHOOK)
    send(RouteType.WEBHOOK, f"{inbox.url}/hook", sent, OPS_SECRET=KEY)
    ((_, headers, body),) = inbox.got
    verified = Webhook(KEY).verify(body, headers)
    assert [document["subject"] for document in verified["groups"][0]["notifications"]] == ["one", "two"]
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
        ((500, {}, "a1" * 80), Unavailable, "status 500"),
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


@pytest.mark.parametrize(
    "more",
    [
        "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nno_se",
    ],
    ids=["no gzip", "cut off"],
)
def test_a_refusal_whose_text_cannot_be_read_has_the_class_of_its_status(
    more: str, trusted: Authority
) -> None:
    answer = f"HTTP/1.1 500 Internal Server Error\r\n{more}".encode()
    with answering(answer, trusted) as address, pytest.raises(Unavailable, match=r"status 500$"):
        send(RouteType.SLACK, address)


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


def test_no_error_and_no_line_of_the_log_has_an_address_or_a_secret(
    inbox: Inbox, trusted: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    texts = []
    inbox.default = (500, {}, f"bad path /services/{TOKEN}")
    with mail_server(trusted) as box, silent_server(closes=True) as broken:
        send(RouteType.EMAIL, login(box, "mail-pass-9d41c7"))
        for kind, address in (
            (RouteType.SLACK, f"{inbox.url}/services/{TOKEN}"),
            (RouteType.SLACK, f"{broken}/services/{TOKEN}"),
            (RouteType.SLACK, f"http://x/services/{TOKEN}"),
            (RouteType.TEAMS, f"https://127.0.0.1:1/x?sig={SIGNATURE}"),
            (RouteType.WEBHOOK, f"https://user:{SIGNATURE}@127.0.0.1:1/{TOKEN}"),
            (RouteType.EMAIL, login(box, SIGNATURE)),
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
