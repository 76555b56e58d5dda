"""The local GitHub evaluates the patterns of rulesets as GitHub does."""

from __future__ import annotations

import pytest

from localcloud.github.rulesets import guards


@pytest.mark.parametrize(
    ("pattern", "branch", "expected"),
    [
        ("roadstead/pin/**/*", "roadstead/pin/example/4ae44d97", True),
        ("roadstead/pin/**/*", "roadstead/pin/example/try/4ae44d97", True),
        ("roadstead/pin/**/*", "roadstead/pin/4ae44d97", True),
        ("roadstead/pin/**/*", "roadstead/pin", False),
        ("roadstead/pin/*", "roadstead/pin/example/4ae44d97", False),
        ("roadstead/pin/**", "roadstead/pin/example/4ae44d97", False),
        ("roadstead/pin/*", "roadstead/pin/4ae44d97", True),
        ("main", "main", True),
        ("m??n", "main", True),
        ("release.1", "release-1", False),
    ],
)
def test_a_star_passes_no_slash_unless_two_stand_before_one(
    pattern: str, branch: str, expected: bool
) -> None:
    """docs.github.com, "Creating rulesets for a repository": ``qa/**/*`` has any number of slashes."""
    assert guards([pattern], branch) == expected
