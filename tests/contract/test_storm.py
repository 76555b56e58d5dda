"""500 problems at once, to receivers on sockets that fail meanwhile: few messages, and every fact in one."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

from localcloud.common.certificates import Authority
from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.channels import AppChannels
from shared.jobs.record import Phase
from shared.notices.announced import MOST_PENDING
from shared.notices.digest import MOST_MESSAGES
from shared.pipeline.recovery.missed_work import wake_notifier
from tests.support import fleet_files
from tests.support.notices import notifying, storm
from tests.support.pipeline_runs import phases, push
from tests.support.receivers import https_inbox, mail_server

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ROUTES = (
    "{name: slack, type: slack, address: SLACK}",
    "{name: hook, type: webhook, address: HOOK}",
    "{name: mail, type: email, address: MAIL}",
)
EVENTS = 500
NAMES = [f"aks-{n:03d}" for n in range(EVENTS)]


def missing(text: str) -> list[str]:
    return [name for name in NAMES if f"{name} " not in text]


def test_a_storm_of_500_events_is_few_messages_that_lose_no_fact(trusted: Authority) -> None:
    assert EVENTS <= MOST_PENDING
    cloud = MemoryCloud()
    with https_inbox(trusted) as slack, https_inbox(trusted) as hook, mail_server() as mail:
        addresses = {
            "SLACK": f"{slack.url}/services/T0/B0/secret",
            "HOOK": hook.url,
            "HOOK_SECRET": KEY,
            "MAIL": f"mailto://127.0.0.1:{mail.port}/?from=fleet@example.com&to=ops@example.com",
        }
        channels = AppChannels(addresses, clock=lambda: datetime.now(UTC))
        cloud.with_ports(lambda ports: replace(ports, channels=channels))
        push(cloud, notifying(fleet_files.fleet("one"), *ROUTES))
        cloud.run()
        slack.answers = [(429, {"Retry-After": "30"}, "rate_limited"), (500, {}, "")]
        hook.answers = [(503, {}, "")] * 3
        mail.refuse = "452 4.3.1 Insufficient system storage"
        for notice in storm(EVENTS, cloud.clock()):
            cloud.state.add_notice(notice)
        wake_notifier(cloud.ports)
        push(cloud, notifying(fleet_files.fleet("one", "two"), *ROUTES))
        cloud.run(100)
        assert phases(cloud) == {"one": Phase.READY, "two": Phase.READY}
        mail.refuse = ""
        cloud.run(1800)
        texts = "\n".join(json.loads(body)["text"] for _, _, body in slack.got[2:])
        hooks = [Webhook(KEY).verify(body, headers) for _, headers, body in hook.got]
        mails = "\n".join(message.get_content() for message in mail.got)
    assert missing(texts) == []
    assert missing(mails) == []
    accepted = hooks[3:]
    facts = [fact for each in accepted for group in each["groups"] for fact in group["facts"]]
    assert [name for name in NAMES if name not in {fact["subject"] for fact in facts}] == []
    assert max(Counter(fact["id"] for fact in facts).values()) == 1
    for got in (slack.got, hook.got, mail.got):
        assert len(got) <= 3 * MOST_MESSAGES


@pytest.mark.parametrize("events", [1, EVENTS])
def test_the_number_of_messages_hardly_depends_on_the_number_of_events(events: int) -> None:
    cloud = MemoryCloud()
    push(cloud, notifying(fleet_files.fleet("one"), ROUTES[0]))
    cloud.run()
    for notice in storm(events, cloud.clock()):
        cloud.state.add_notice(notice)
    wake_notifier(cloud.ports)
    cloud.run(60)
    assert len(cloud.channels.delivered["slack"]) <= 3
