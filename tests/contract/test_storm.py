"""500 clusters fail at once, and receivers on sockets meanwhile: few messages, each notification once."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

from localcloud.common.certificates import Authority
from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.notification_routes import NotificationRoutes
from shared.app.recovery.missed_work import wake_notifier
from shared.cluster.record_parts import Phase
from shared.notifications.digest import MOST_MESSAGES
from shared.notifications.record import MOST_PENDING
from tests.support import fleet_files
from tests.support.notifications import notifying, storm
from tests.support.pipeline_runs import cloud_with, phases, push
from tests.support.receivers import https_inbox, mail_server

pytestmark = pytest.mark.lives

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ROUTES = (
    "{name: slack, type: slack, address: SLACK}",
    "{name: hook, type: webhook, address: HOOK}",
    "{name: mail, type: email, address: MAIL}",
    "{name: chat, type: apprise, address: CHAT}",
)
EVENTS = 500
NAMES = [f"aks-{n:03d}" for n in range(EVENTS)]


def times_named(text: str) -> Counter[int]:
    """Return how many of the clusters a text names how often, as a person would count."""
    named = Counter(re.findall(r"(aks-\d{3}) \d\d:\d\d:\d\d", text))
    return Counter(named[name] for name in NAMES)


def stormy_fleet() -> dict[str, bytes]:
    """Return a fleet of 500 clusters in two regions, and one more."""
    files = notifying(fleet_files.fleet("a-fine", *NAMES), *ROUTES)
    for name in NAMES[::2]:
        path = f"clusters/{name}/cluster.yaml"
        files[path] = files[path].replace(b"eastus", b"westeurope")
    return files


def test_a_storm_of_500_events_is_few_messages_that_lose_no_fact(trusted: Authority) -> None:
    assert EVENTS <= MOST_PENDING
    cloud = MemoryCloud()
    for n, name in enumerate(NAMES):
        code = "InvalidParameter" if n % 3 else "LocationRequired"
        cloud.azure.interventions.fail_next(name, code, "no vCPUs are left")
    with (
        https_inbox(trusted) as slack,
        https_inbox(trusted) as hook,
        https_inbox(trusted) as chat,
        mail_server() as mail,
    ):
        addresses = {
            "SLACK": f"{slack.url}/services/T0/B0/secret",
            "HOOK": hook.url,
            "HOOK_SECRET": KEY,
            "MAIL": f"mailto://127.0.0.1:{mail.port}/?from=fleet@example.com&to=ops@example.com",
            "CHAT": f"{chat.url.replace('https', 'jsons')}/chat",
        }
        routes = NotificationRoutes(addresses, clock=lambda: datetime.now(UTC))
        cloud.with_ports(lambda ports: replace(ports, services=replace(ports.services, routes=routes)))
        slack.answers = [(429, {"Retry-After": "30"}, "rate_limited"), (500, {}, "")]
        hook.answers = [(503, {}, "")] * 3
        chat.answers = [(502, {}, "")]
        mail.refuse = "452 4.3.1 Insufficient system storage"
        push(cloud, stormy_fleet())
        cloud.run(300)
        assert (mail.got, phases(cloud)["a-fine"]) == ([], Phase.READY)
        mail.refuse = ""
        cloud.run(3600)
        assert Counter(phases(cloud).values()) == {Phase.FAILED: EVENTS, Phase.READY: 1}
        texts = "\n".join(json.loads(body)["text"] for _, _, body in slack.got[2:])
        chats = "\n".join(json.loads(body)["message"] for _, _, body in chat.got[1:])
        hooks = [Webhook(KEY).verify(body, headers) for _, headers, body in hook.got[3:]]
        mails = "\n".join(message.get_content() for message in mail.got)
    for text in (texts, chats, mails):
        assert times_named(text) == {1: EVENTS}
    notifications = [
        notification for hook in hooks for group in hook["groups"] for notification in group["notifications"]
    ]
    assert Counter(
        notification["subject"] for notification in notifications if notification["subject"] in NAMES
    ) == dict.fromkeys(NAMES, 1)
    assert max(Counter(notification["id"] for notification in notifications).values()) == 1
    for got in (slack.got, hook.got, chat.got, mail.got):
        assert len(got) <= 3 * MOST_MESSAGES


@pytest.mark.parametrize("events", [1, EVENTS])
def test_the_number_of_messages_hardly_depends_on_the_number_of_events(events: int) -> None:
    cloud = cloud_with(notifying(fleet_files.fleet("one"), ROUTES[0]))
    for notification in storm(events, cloud.clock()):
        cloud.state.add_notification(notification)
    wake_notifier(cloud.ports)
    cloud.run(60)
    assert len(cloud.routes.delivered["slack"]) <= 3
