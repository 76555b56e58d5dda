"""The Retry-After of a response, as RFC 9110 defines it."""

from __future__ import annotations

import pytest

from shared.cluster.failures.retry import retry_after

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
