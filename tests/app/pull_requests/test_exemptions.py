"""Exemptions from drift that end, of the clusters that a pull request changes, on its comment."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.proposals import Repo


def exempt(repo: Repo, days: int) -> str:
    """Return YAML of a cluster with an exemption that ends in so many days."""
    end = repo.cloud.clock() + timedelta(days=days)
    rule = f"action: ignore, owner: shop, reason: a test, expires: {end:%Y-%m-%d}"
    return f"  drift: {{rules: [{{name: load, fields: [tags], {rule}}}]}}\n"


@pytest.mark.parametrize(
    ("days", "said"), [(20, "ends in 20 days, on "), (-1, "its fields are reported again")]
)
def test_an_exemption_that_ends_is_shown_with_its_place_its_owner_and_the_reason(
    repo: Repo, days: int, said: str
) -> None:
    comment = repo.proposed(exempt(repo, days))
    assert "#### Exemptions from drift that end" in comment
    assert "clusters/three/cluster.yaml:11" in comment
    assert "the exemption load of shop (a test) " in comment
    assert said in comment
    assert repo.status(repo.cloud.repository.head("topic"))[1] == "success", "a warning is no failure"


def test_one_that_lasts_is_not_shown(repo: Repo) -> None:
    assert "Exemptions" not in repo.proposed(exempt(repo, 31))
