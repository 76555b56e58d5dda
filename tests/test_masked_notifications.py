"""The addresses of routes are masked part by part, and what identifies a notification is not."""

from __future__ import annotations

import io
import json
import logging
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared import logs
from shared.cluster.failures.errors import Unavailable
from shared.cluster.history import Act
from shared.configuration.load_settings import load_settings
from shared.language.model.notification_kinds import NotificationKind, RouteType
from shared.masking import Masker
from shared.notifications.digest import Links, body_of, messages
from shared.notifications.notification import Notification
from shared.notifications.routes import Route
from shared.ports.masked import masked
from tests.support.notifications import notified
from tests.support.replaced_ports import around

EXAMPLE: dict[str, str] = json.loads(
    (Path(__file__).parent.parent / "local.settings.example.json").read_text()
)["Values"]
ADDRESSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "Slack": (
        "https://hooks.slack.com/services/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",
        ("T024BE7LD", "B0HX7KQ2M", "x9Zk2LmPq7RtVw3YbNc5Df8G"),
    ),
    "Teams": (
        "https://prod-12.westeurope.logic.azure.com:443/workflows/5d2e8f0a7c914b6e93d1a4f7b8c26e50/triggers/manual"
        "/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0"
        "&sig=pX3kV9-mQ2wE7rT5yU8iO1aS4dF6gH0jK-lZxCvBnM_",
        ("5d2e8f0a7c914b6e93d1a4f7b8c26e50", "pX3kV9-mQ2wE7rT5yU8iO1aS4dF6gH0jK-lZxCvBnM_"),
    ),
    "a webhook": (
        "https://hooks.example.com/audit/roadstead?token=q7w8e9r0&key=correcthorsebatterystaple",
        ("q7w8e9r0", "correcthorsebatterystaple"),
    ),
    "a webhook with credentials": (
        "https://audit:tr0ub%40dor@hooks.example.com/production",
        ("tr0ub%40dor", "tr0ub@dor"),
    ),
    "SMTP": (
        "mailtos://apikey:SG.correct-horse@smtp.example.com:587/?from=fleet@example.com&to=ops@example.com",
        ("SG.correct-horse",),
    ),
    "Apprise, with a token as its host": (
        "tgram://123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/987654321/",
        ("AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", "987654321"),
    ),
    "Apprise, with tokens as host and path": (
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js/",
        ("4174216298", "JHMHI8qBe7bk2ZwO5U711o3dV_js"),
    ),
}
"""Addresses of routes with the formats of the vendors, and the parts of each that are secret."""
WORDS = (
    *("audit", "roadstead", "production", "services", "workflows", "triggers", "manual", "paths", "invoke"),
    *("apikey", "2016-06-01", "hooks.example.com", "prod-12.westeurope.logic.azure.com", "/production"),
    *("https://github.com/example/roadstead/commit/c0ffee", "<!-- roadstead 8f2e -->", "/audit"),
)


def of_addresses() -> Masker:
    notify = {f"NOTIFY_OPS_{n}": address for n, (address, _) in enumerate(ADDRESSES.values())}
    return Masker(load_settings(EXAMPLE | notify).secrets)


@pytest.mark.parametrize("secret", [part for _, parts in ADDRESSES.values() for part in parts])
def test_each_secret_part_of_an_address_is_masked_by_itself(secret: str) -> None:
    mask = of_addresses()
    for text in (secret, f"status 500 at /x/{secret}/y", quote(secret, safe=""), json.dumps({"a": secret})):
        shown = mask(text)
        assert "***" in shown
        assert secret not in shown


@pytest.mark.parametrize("secret", [part for _, parts in ADDRESSES.values() for part in parts])
def test_a_part_reaches_no_log_and_no_error(secret: str, written: io.StringIO) -> None:
    cloud, text = MemoryCloud(), f"the status 500 at /x/{secret}"
    logs.configure(of_addresses())
    logging.getLogger("some_client").warning("%s", text)
    (message,) = messages([notified("one")], fleet="f", limit=12_000, links=Links())
    around(cloud, "routes", send=lambda *_: (_ for _ in ()).throw(Unavailable(text)))
    ports, route = masked(cloud.ports, of_addresses()), Route("ops", RouteType.SLACK, "OPS")
    with pytest.raises(Unavailable) as caught:
        ports.services.routes.send(route, message)
    for shown in (written.getvalue(), str(caught.value)):
        assert "the status 500 at /x/***" in shown
        assert secret not in shown


@pytest.mark.parametrize("address", [address for address, _ in ADDRESSES.values()])
def test_an_address_reaches_no_table_message_or_issue(address: str) -> None:
    cloud, text = MemoryCloud(), f"somebody wrote {address} there"
    ports = masked(cloud.ports, of_addresses())
    ports.state.add_notification(replace(notified("one"), detail=text))
    (message,) = messages([replace(notified("one"), detail=text)], fleet="f", limit=12_000, links=Links())
    ports.services.routes.send(Route("ops", RouteType.SLACK, "OPS"), message)
    ports.git_host.open_issue("a title", text)
    (stored,) = cloud.state.notifications(10)
    (delivered,) = cloud.routes.delivered["ops"]
    (issue,) = cloud.repository.pulls.issues.listed()
    for shown in (str(stored), str(body_of(delivered)), issue.body):
        assert "somebody wrote *** there" in shown
        assert address not in shown


@pytest.mark.parametrize("address", [address for address, _ in ADDRESSES.values()])
def test_an_address_is_masked_as_a_whole_and_without_its_scheme(address: str) -> None:
    for text in (address, address.partition("://")[2]):
        assert of_addresses()(f"POST {text}!") in ("POST ***!", "POST https://***!")


@pytest.mark.parametrize("word", WORDS)
def test_a_word_in_the_path_of_an_address_is_no_secret(word: str) -> None:
    assert of_addresses()(f"about {word} it is") == f"about {word} it is"


ANN, FLEET = "ann.smith2@example.com", "fleet-of-platform@example.com"
TO_PEOPLE = (
    f"mailtos://relay-1:Pa55word@smtp.example.com:587/?from={FLEET}&to={ANN}&mode=starttls",
    f"mailtos://relay-1:Pa55word@smtp.example.com/?from=Fleet+1&to={ANN},{FLEET}",
    f"mailtos://{quote(ANN)}:Pa55word@smtp.example.com/?FROM={FLEET}&cc=ann.smith2&bcc={ANN}&reply={FLEET}",
    f"mailto://ann.smith2:Pa55word@example.com?name={FLEET}",
    f"mailtos://{quote(ANN)}@example.com?+x-key=Pa55word",
    f"ses://fleet@example.com/accesskey/Pa55word/us-east-1/{ANN}/{FLEET}",
)


@pytest.mark.parametrize("address", TO_PEOPLE)
def test_an_act_names_who_did_it_although_that_person_is_sent_e_mail(address: str) -> None:
    mask = Masker(load_settings(EXAMPLE | {"NOTIFY_MAIL": address}).secrets)
    cloud = MemoryCloud()
    by = f"{ANN} and {FLEET}"
    act = Act(id="1", at=cloud.clock(), action="approve", target="c0ffee", by=by, by_id="", result="accepted")
    masked(cloud.ports, mask).state.save_act(act)
    assert cloud.state.acts(1) == [act]
    assert mask("the server says: Pa55word") == "the server says: ***"
    assert mask(f"cannot reach {address}") in ("cannot reach ***", "cannot reach mailto://***")


def test_a_value_of_another_address_is_secret_although_it_is_named_like_a_recipient() -> None:
    address = "https://hooks.example.com/audit?to=q7w8e9r0"
    assert Masker(load_settings(EXAMPLE | {"NOTIFY_OPS": address}).secrets)("at q7w8e9r0") == "at ***"


def test_a_fact_keeps_what_routes_and_records_are_found_by() -> None:
    cloud = MemoryCloud()
    words = ["production", "eastus", "platform", "cluster:platform", "failed:", "platform-of-the-fleet"]
    cloud.with_ports(lambda ports: masked(ports, Masker(words)))
    kept = Notification(
        "1",
        NotificationKind.FAILED,
        "cluster:platform",
        "platform",
        cloud.clock(),
        environment="production",
        location="eastus",
        labels={"team": "platform"},
        names=("platform",),
    )
    cloud.ports.state.add_notification(replace(kept, detail="in platform-of-the-fleet of production"))
    (stored,) = cloud.state.notifications(10)
    assert stored == replace(kept, detail="in *** of production")
