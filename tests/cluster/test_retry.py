"""How often errors are retried, how an operator changes that, and the Retry-After of a response."""

from __future__ import annotations

import pytest

from shared.cluster.failures.errors import Conflict, Stale, Throttled, Unavailable, Unexpected
from shared.cluster.failures.retry import DEFAULTS, policy_for, retry_after, wait_before_retry, with_limits
from shared.cluster.outcomes import Retry
from shared.cluster.transitions.apply_outcome import apply_outcome
from tests.support.cluster_records import NOW, record


def test_no_limits_are_the_defaults() -> None:
    assert with_limits("") == DEFAULTS


def test_a_limit_changes_the_attempts_and_the_longest_wait_of_its_class_only() -> None:
    changed = with_limits("Unexpected=3, Unavailable=forever/600")
    assert wait_before_retry(Unexpected("x"), 2, 1, changed) is not None
    assert wait_before_retry(Unexpected("x"), 3, 1, changed) is None
    assert wait_before_retry(Unavailable("x"), 10_000, 1, changed) == 600
    assert changed[Conflict] == DEFAULTS[Conflict]


def test_a_longest_wait_below_the_first_wait_shortens_the_first() -> None:
    assert with_limits("Unexpected=2/3")[Unexpected].wait(1, 1) == 3


def test_a_derived_class_has_the_policy_of_its_base_class() -> None:
    assert policy_for(Stale) == DEFAULTS[Conflict]


def test_a_job_fails_after_the_configured_attempts() -> None:
    tried = record(attempts={"Unexpected": 1})
    assert apply_outcome(tried, Retry(Unexpected("x")), now=NOW, jitter=0).job.active
    limits = with_limits("Unexpected=2")
    assert apply_outcome(tried, Retry(Unexpected("x")), now=NOW, jitter=0, retries=limits).failed


def test_every_retried_class_in_errors_md_can_be_limited() -> None:
    changed = with_limits("Stale=3 Interrupted=2")
    assert wait_before_retry(Stale("x"), 3, 1, changed) is None
    assert changed[Conflict] == DEFAULTS[Conflict]


def test_an_excessive_retry_after_counts_as_one_hour() -> None:
    assert wait_before_retry(Throttled("x", retry_after=1e15), 1, 1) == 3600


@pytest.mark.parametrize(
    ("text", "explanation"),
    [
        ("Unexpected", "must have the form Unexpected=3"),
        ("Unexpected=-1", "must have the form Unexpected=3"),
        ("Unexpected=0", "at least 1 attempt"),
        ("Unavailable=3/0", "1 to 3600 seconds"),
        ("Unavailable=3/99999", "1 to 3600 seconds"),
        ("Quota=3", "no limit can be set for 'Quota', only for: Throttled"),
        ("Immutable=3", "no limit can be set for 'Immutable'"),
        ("VaultUnavailable=3", "no limit can be set for 'VaultUnavailable', only for: Throttled"),
    ],
)
def test_invalid_limits_are_refused_with_an_explanation(text: str, explanation: str) -> None:
    with pytest.raises(ValueError, match=explanation):
        with_limits(text)


DATE = {"Date": "Thu, 01 Jan 2026 12:00:00 GMT"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        (" 1.5 ", 1.5),
        ("Thu, 01 Jan 2026 12:02:00 GMT", 120),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1e15", None),
        ("nan", None),
        ("٣", None),
        ("Thu, 01 Jan 2026 12:02:00 -0000", None),
    ],
)
def test_only_a_number_or_a_date_is_accepted(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text, **DATE}) == seconds


def test_a_date_counts_from_the_date_of_the_response() -> None:
    later = {"Retry-After": "Fri, 02 Jan 2026 12:00:00 GMT"}
    assert retry_after({**later, "date": "Fri, 02 Jan 2026 11:59:00 GMT"}) == 60
    assert retry_after(later) is None


def test_a_missing_header_means_no_wait() -> None:
    assert retry_after({}) is None
    assert retry_after(DATE) is None
