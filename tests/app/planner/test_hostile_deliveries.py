"""The deliveries of every git host: the same catalogue of honest and hostile ones on each."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.webhooks import READERS
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.accept import accept
from shared.app.intake.webhook import (
    MAX_BODY_BYTES,
    Delivery,
    DeliveryRefusal,
    IgnoredDelivery,
    PullChange,
    Push,
)
from shared.ports.git_host import Capability
from tests.support import fleet_files
from tests.support.git_hosts import CAPABILITIES
from tests.support.host_deliveries import GONE, HOSTS, Host
from tests.support.webhook_deliveries import COMMIT


def test_each_host_that_sends_webhooks_has_its_deliveries_here() -> None:
    readers = {name: read for name, (_, read) in READERS.items()}
    assert {name: found.read for name, found in HOSTS.items()} == readers
    for name in readers.keys() & CAPABILITIES.keys():
        assert bool(HOSTS[name].pull) is (Capability.PULLS in CAPABILITIES[name])


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Host:
    return HOSTS[request.param]


@pytest.fixture(params=[name for name, found in HOSTS.items() if found.pull])
def reporting(request: pytest.FixtureRequest) -> Host:
    """Return a host whose webhooks report pull requests."""
    return HOSTS[request.param]


def status(found: object) -> int:
    assert isinstance(found, DeliveryRefusal), found
    assert found.reason
    return found.status


def test_a_push_to_the_branch_is_read(host: Host) -> None:
    found = host.received(host.push)
    assert isinstance(found, Push)
    assert (found.commit, found.signed) == (COMMIT, host.signs)


def test_each_of_two_secrets_is_accepted_while_one_is_rotated(host: Host) -> None:
    for secret in host.secrets:
        assert isinstance(host.received(host.push, secret=secret), Push)


def test_a_delivery_without_the_secret_is_refused_before_it_is_parsed(host: Host) -> None:
    assert status(host.received(host.push, secret=host.wrong)) == 401
    assert status(host.received(b"not json", secret=host.wrong)) == 401
    headers, body = host.sent(host.push)
    for secrets in ((), ("",), ("", "")):
        found = host.read(headers, body, secrets=secrets, repository="example/fleet", branch="main")
        assert status(found) == 401
    for odd in ({}, dict.fromkeys(headers, ""), dict.fromkeys(headers, "\ud800é")):
        found = host.read(odd, body, secrets=host.secrets, repository="example/fleet", branch="main")
        assert status(found) == 401


def test_a_body_over_the_limit_is_refused(host: Host) -> None:
    headers, _ = host.sent(host.push)
    body = b" " * (MAX_BODY_BYTES + 1)
    found = host.read(headers, body, secrets=host.secrets, repository="example/fleet", branch="main")
    assert status(found) == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b"[" * 100_000])
def test_a_body_that_is_no_delivery_is_a_bad_request(host: Host, body: bytes) -> None:
    assert status(host.received(body)) == 400


@pytest.mark.parametrize("commit", [3, "", "c0ffee", "x" * 40, "A" * 40, "f" * 100_000])
def test_a_push_of_what_is_no_commit_is_a_bad_request(host: Host, commit: Any) -> None:
    assert status(host.received(host.changed("push", "commit", commit))) == 400


@pytest.mark.parametrize("number", ["7", True, 0, -1, 1 << 31, 1.5])
def test_a_pull_request_without_a_number_is_a_bad_request(reporting: Host, number: Any) -> None:
    wrong = reporting.changed("pull", "number", number)
    assert status(reporting.received(wrong, event=reporting.events[1])) == 400


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [
        ("ref", "refs/heads/topic", "the branch topic is not main"),
        ("ref", "refs/tags/main", "refs/tags/main is not"),
        ("ref", "refs/heads/main ", "is not main"),
        ("repository", "other", "other is not example/fleet"),
    ],
)
def test_a_push_that_is_not_to_the_branch_is_ignored_with_a_success(
    host: Host, part: str, value: str, reason: str
) -> None:
    ignored(host.received(host.changed("push", part, value)), value, reason)


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [("repository", "other", "other is not example/fleet"), ("base", "next", "goes into next, not main")],
)
def test_a_pull_request_that_is_not_into_the_branch_is_ignored_with_a_success(
    reporting: Host, part: str, value: str, reason: str
) -> None:
    changed = reporting.changed("pull", part, value)
    ignored(reporting.received(changed, event=reporting.events[1]), value, reason)


def ignored(found: Delivery, value: str, reason: str) -> None:
    assert isinstance(found, IgnoredDelivery)
    assert reason in found.reason or f"the branch {value} {reason[-6:]}" in found.reason
    assert accept(found, MemoryCloud().ports).status == 200


def test_a_deleted_branch_leaves_the_fleet_as_it_is(host: Host) -> None:
    found = host.received(host.changed("push", "commit", GONE) | {"deleted": True})
    assert found == IgnoredDelivery("the branch main was deleted; the fleet stays as it is")


def test_another_event_is_ignored_with_a_success(host: Host) -> None:
    found = host.received({**host.push, "eventType": "build.complete"}, event="Note Hook")
    assert isinstance(found, IgnoredDelivery)
    assert "is none of" in found.reason


def test_a_pull_request_is_read(reporting: Host) -> None:
    found = reporting.received(reporting.pull, event=reporting.events[1])
    assert isinstance(found, PullChange)
    assert (found.number, found.head) == (7, COMMIT if reporting.signs else "")
    cloud = MemoryCloud()
    assert accept(found, cloud.ports).status == 202
    assert cloud.broker.counts("previews").scheduled >= 1


def test_the_same_delivery_five_times_is_one_request(host: Host) -> None:
    cloud = MemoryCloud()
    answers = [accept(host.received(host.push), cloud.ports).status for _ in range(5)]
    assert answers == [202, 200, 200, 200, 200]
    counts = cloud.broker.counts("plans")
    assert (counts.active, counts.scheduled) == (int(host.signs), int(not host.signs))


def test_a_flood_of_forged_pushes_with_the_right_secret_changes_nothing(host: Host) -> None:
    cloud = MemoryCloud()
    accept(host.received(host.push), cloud.ports)
    commit = cloud.repository.push(fleet_files.fleet("one"))
    cloud.run()
    planned = cloud.state.fleet().commit
    for number in range(30):
        forged = host.changed("push", "commit", f"{number + 1:040x}")
        accept(host.received({**forged, "id": f"forged-{number}"}, identity=f"forged-{number}"), cloud.ports)
    cloud.run(seconds=120, until=lambda: False)
    assert cloud.state.fleet().commit == planned == commit
    assert cloud.state.fleet().problem is None
