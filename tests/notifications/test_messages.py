"""What a message says, and that its size is bounded and no notification is missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from shared.language.model.notification_kinds import NotificationKind, Severity
from shared.notifications.digest import MOST_MESSAGES, Links, body_of, messages
from shared.notifications.notification import Notification, end_of
from shared.notifications.record import MOST_PENDING
from shared.notifications.routes import LIMITS
from tests.support.hypothesis_settings import GENERATED
from tests.support.notifications import after, notified

LINKS = Links("https://github.com/example/fleet", "https://app.example.com")


def test_a_message_says_what_where_since_when_why_what_next_and_where_to_look() -> None:
    notifications = [notified("one", seconds=1), notified("two", seconds=65)]
    (message,) = messages(notifications, fleet="example", limit=12_000, links=LINKS)
    commit = notifications[0].commit
    assert message.title == "example: 2 clusters failed in westeurope: QuotaExceeded"
    assert message.severity is Severity.CRITICAL
    assert message.text.splitlines() == [
        "2 clusters failed in westeurope: QuotaExceeded",
        "Since 2026-03-01 12:00:01 UTC, the last at 2026-03-01 12:01:05 UTC",
        "Why: the cluster one: no vCPUs are left",
        "Why: the cluster two: no vCPUs are left",
        "Next: Raise the quota.",
        "Which: one 12:00:01, two 12:01:05",
        "Page: https://app.example.com/clusters/one",
        "Page: https://app.example.com/clusters/two",
        f"Commit c0ffeec0: commit https://github.com/example/fleet/commit/{commit}, "
        f"plan https://app.example.com/plans/{commit}",
    ]


def test_what_is_over_within_one_digest_says_what_it_was_since_when_and_why_and_that_it_is_over() -> None:
    problem = replace(notified("one", seconds=1), diff="-count: 3\n+count: 5")
    other = notified("two", seconds=2)
    ends = [end_of(problem, after(60), "verified"), end_of(notified("old", seconds=-600), after(61))]
    (message,) = messages([problem, other, *ends], fleet="f", limit=12_000, links=LINKS)
    assert message.title == "f: 1 cluster failed in westeurope: QuotaExceeded, and 2 more"
    over = message.text.split("\n\n")[-1].splitlines()
    assert over[:6] == [
        "1 cluster failed in westeurope: QuotaExceeded; now no longer failed",
        "Since 2026-03-01 12:00:01 UTC until 2026-03-01 12:01:00 UTC",
        "Why: the cluster one: no vCPUs are left",
        "Diff:",
        "-count: 3",
        "+count: 5",
    ]
    assert "Next: " not in "\n".join(over)
    group = body_of(message)["groups"][-1]
    assert (group["over"], group["notifications"][0]["why"]) == (True, "the cluster one: no vCPUs are left")
    told_before = message.text.split("\n\n")[1].splitlines()
    assert told_before[0] == "1 cluster no longer failed in westeurope"
    assert set(message.notifications) == {notification.id for notification in (problem, other, *ends)}


def next_lines(*notifications: Notification) -> list[str]:
    (message,) = messages(notifications, fleet="f", limit=12_000, links=LINKS)
    lines = message.text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("Next"))
    end = next(number for number, line in enumerate(lines) if line.startswith("Wh") and number > start)
    return lines[start:end]


def held(cluster: str, action: str) -> Notification:
    return replace(notified(cluster, NotificationKind.HELD, reason=""), action=action)


def test_a_command_for_several_clusters_has_the_name_of_none() -> None:
    action = "Stop the other app, or take the cluster over with `roadstead takeover {0}`."
    one, two = (held(name, action.format(name)) for name in ("one", "two"))
    assert next_lines(one) == ["Next: " + action.format("one")]
    assert next_lines(one, two) == ["Next: " + action.format("NAME")]


def test_each_reason_of_a_group_has_what_it_asks_for_and_of_whom() -> None:
    contested = [held(f"aks-{n}", f"Stop it, or `roadstead takeover aks-{n}`.") for n in range(5)]
    drain = held("two", "Raise the budget, or `roadstead why two`.")
    assert next_lines(drain, *contested) == [
        "Next for aks-0, aks-1, aks-2 and 2 more: Stop it, or `roadstead takeover NAME`.",
        "Next for two: Raise the budget, or `roadstead why two`.",
    ]
    others = [held(f"other-{n}", f"Do number {n}.") for n in range(3)]
    assert next_lines(drain, *contested, *others)[1:] == [
        "Next for other-0: Do number 0.",
        "Next for other-1: Do number 1.",
        "2 more actions: `roadstead why NAME`.",
    ]


def test_a_word_that_is_also_the_name_of_the_cluster_stays() -> None:
    first, second = (held(name, f"Do replay it: `roadstead replay {name}`.") for name in ("replay", "two"))
    assert next_lines(first, second) == ["Next: Do replay it: `roadstead replay NAME`."]


def test_a_diff_is_shown_where_there_is_one() -> None:
    changed = replace(notified("one"), diff="-count: 3\n+count: 5")
    (message,) = messages([changed], fleet="f", limit=12_000, links=LINKS)
    assert "Diff:\n-count: 3\n+count: 5" in message.text


def test_what_is_worst_comes_first_and_an_end_is_no_reason_to_hurry() -> None:
    over = end_of(notified("old"), after(60))
    notifications = [over, notified("slow", NotificationKind.STALLED), notified("one")]
    (message,) = messages(notifications, fleet="f", limit=12_000, links=LINKS)
    kinds = [(group["kind"], group["over"]) for group in body_of(message)["groups"]]
    assert kinds == [("failed", False), ("stalled", False), ("failed", True)]
    (calm,) = messages([over], fleet="f", limit=12_000, links=LINKS)
    assert calm.severity is Severity.INFO


def test_the_same_facts_have_the_same_id_and_others_another() -> None:
    def identify(*names: str) -> str:
        (message,) = messages([notified(name) for name in names], fleet="f", limit=12_000, links=LINKS)
        return message.id

    assert identify("one", "two") == identify("two", "one") != identify("one")


@GENERATED
@given(
    st.lists(
        st.tuples(
            st.text("abcdefghijklmnopqrstuvwxyzäß-", min_size=1, max_size=63),
            st.sampled_from((NotificationKind.FAILED, NotificationKind.LOST, NotificationKind.READY)),
            st.sampled_from(("westeurope", "eastus", "northeurope")),
            st.text(max_size=300),
        ),
        max_size=300,
        unique_by=lambda drawn: drawn[0],
    ),
    st.sampled_from(sorted(set(LIMITS.values()))),
    st.booleans(),
)
def test_no_message_is_too_long_and_no_fact_is_in_none_or_in_two(
    drawn: list[tuple[str, NotificationKind, str, str]], limit: int, together: bool
) -> None:
    notifications = [
        replace(notified(name, kind, location=place), detail=detail) for name, kind, place, detail in drawn
    ]
    found = messages(notifications, fleet="f", limit=limit, links=LINKS, together=together)
    named = Counter(identifier for message in found for identifier in message.notifications)
    assert all(len(f"{message.title}\n{message.text}".encode()) <= limit for message in found)
    assert max(named.values(), default=1) == 1
    assert len(found) < MOST_MESSAGES + 1
    if len(found) < MOST_MESSAGES:
        assert set(named) == {notification.id for notification in notifications}
    for message in found:
        assert {
            document["id"] for group in body_of(message)["groups"] for document in group["notifications"]
        } == set(message.notifications)
        assert all(
            notification.subject in message.text
            for notification in notifications
            if notification.id in message.notifications
        )


def test_everything_that_a_route_may_have_missed_needs_few_digests() -> None:
    left = [notified(f"aks-production-{n:04d}", number=n) for n in range(MOST_PENDING)]
    digests = 0
    while left:
        found = messages(left, fleet="example", limit=12_000, links=LINKS)
        named = {identifier for message in found for identifier in message.notifications}
        left = [notification for notification in left if notification.id not in named]
        digests += 1
    assert digests <= 2


def test_one_more_reason_and_one_dropped_fact_are_one() -> None:
    notifications = [notified(name) for name in ("one", "two", "three", "four")]
    (message,) = messages(notifications, fleet="f", limit=12_000, links=LINKS, dropped=1)
    assert "1 more reason." in message.text.splitlines()
    assert message.text.endswith(
        "1 older notification was dropped while this route did not deliver: `roadstead events NAME`."
    )
