"""Ranges of versions as Flux reads them."""

from __future__ import annotations

import pytest

from localcloud.flux.sources.semver_range import newest

TAGS = ["latest", "v0.2.0", "0.2.9", "1.2.0", "v1.10.0", "1.2.10", "2.0.0-rc.1", "2.0.0"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("1.x", "v1.10.0"),
        ("1.2.x", "1.2.10"),
        ("~1.2", "1.2.10"),
        ("^0.2.0", "0.2.9"),
        ("^1.2", "v1.10.0"),
        (">=1.0.0 <1.10.0", "1.2.10"),
        (">= 1.0.0, < 1.10.0", "1.2.10"),
        ("*", "2.0.0"),
        ("1.2.0", "1.2.0"),
        ("<=1.2.0", "1.2.0"),
        (">1.2", "2.0.0"),
        (">=2.0.0-0", "2.0.0"),
        ("3.x", None),
        ("nonsense", None),
    ],
)
def test_the_newest_tag_of_a_range_is_found(wanted: str, found: str | None) -> None:
    assert newest(TAGS, wanted) == found
