"""What the forms of a pin cost a git host on the real source-controller: decision 40."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.authority.pin_costs import REPOSITORY, Costs, CountingFront, forms, write_history
from tests.authority.real_flux import real_flux

pytestmark = pytest.mark.timeout(600)
_COMMITS, _FILES = 4_000, 200


def test_a_pin_costs_what_a_branch_costs_and_a_commit_the_whole_history(tmp_path: Path) -> None:
    with real_flux(tmp_path) as flux, closing(CountingFront(flux.host.url)) as front:
        pinned = write_history(flux.host.create_repository(REPOSITORY).path, commits=_COMMITS, files=_FILES)
        costs = Costs(flux, front)
        first, again = {}, {}
        for form, ref in forms(pinned).items():
            first[form] = costs.first(form, ref).sent
            again[form] = costs.again(form, "1").sent
            assert costs.status(form)["artifact"]["revision"].endswith(f"sha1:{pinned}") or form == "branch"
        assert first["own-branch"] < 1.1 * first["branch"]
        assert again["own-branch"] == again["branch"] < first["branch"]
        for form in ("branch-and-commit", "commit"):
            assert again[form] > 0.9 * first[form] > 4 * first["branch"]
        assert first["name-of-own-ref"] > 4 * first["branch"], "it is cloned whole"
        assert again["name-of-own-ref"] == again["branch"], "but not looked at twice"
