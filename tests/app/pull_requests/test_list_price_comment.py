"""The list price in the comment of a pull request, in the API, and in the plan of a push."""

from __future__ import annotations

import pytest

from shared.app.api.views.plans import plan_view, pull_plan_view
from shared.prices.price_file import NO_FILE, written
from tests.support import fleet_files
from tests.support.proposals import Repo
from tests.support.recorded_prices import prices_of

pytestmark = pytest.mark.lives


def files(repo: Repo, *names: str, prices: bytes | None = None, **counts: int) -> dict[str, bytes]:
    """Return a fleet with the prices that it needs, or with this content of the price file."""
    found = fleet_files.fleet(*names)
    for name, count in counts.items():
        found[f"clusters/{name}/cluster.yaml"] = fleet_files.cluster(name, count=count)
    specs = [record.desired.spec for record in repo.cloud.state.clusters()]
    found["prices.yaml"] = written(prices_of(specs)).encode() if prices is None else prices
    return found


def test_the_comment_says_by_how_much_the_list_price_changes(repo: Repo) -> None:
    number = repo.propose(files(repo, "one", "two", one=3))

    (body,) = repo.comments(number)
    assert r"List price: \+<span>$</span>320 a month, prices of 2026-09-23." in body.splitlines()
    assert "not counted: network traffic" in body
    view = pull_plan_view(number, repo.cloud.ports)
    assert view is not None
    assert view["listPrice"] is not None
    assert view["listPrice"]["low"] == view["listPrice"]["high"] > 0
    assert [change["clusters"] for change in view["listPrice"]["changes"]] == [["one"]]
    assert view["listPrice"]["summary"] == "list price: +$320 a month, prices of 2026-09-23"


def test_without_a_price_file_the_plan_says_how_to_get_one_and_the_comment_nothing(repo: Repo) -> None:
    changed = fleet_files.fleet("one", "two")
    changed["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=3)

    number = repo.propose(changed)

    view = pull_plan_view(number, repo.cloud.ports)
    assert view is not None
    assert view["listPrice"] is not None
    assert view["listPrice"]["summary"] == f"list price: {NO_FILE}"
    assert "List price" not in repo.comments(number)[0]


def test_a_price_file_that_is_wrong_stops_no_plan(repo: Repo) -> None:
    (body,) = repo.comments(repo.propose(files(repo, "one", "two", one=3, prices=b"kind: Prices")))

    assert "**1 update, 1 unchanged**" in body
    (line,) = [line for line in body.splitlines() if line.startswith("List price: not known: ")]
    assert "prices.yaml:\u200b1:\u200b1: " in line
    assert line.endswith("write the file again with roadstead prices update.")


def test_a_price_file_of_one_long_key_leaves_the_plan_in_the_comment(repo: Repo) -> None:
    broken = files(repo, "one", "two", one=3)
    letters = "".join(chr(0x4E00 + number % 20_000) for number in range(80_000))
    broken["prices.yaml"] += f"? {letters}\n: 1\n".encode()

    (body,) = repo.comments(repo.propose(broken))

    assert "**1 update, 1 unchanged**" in body


def test_a_change_without_a_list_price_says_nothing_of_it(repo: Repo) -> None:
    (body,) = repo.comments(repo.propose(files(repo, "one", "two")))
    assert "List price" not in body


def test_the_plan_of_a_push_keeps_its_difference(repo: Repo) -> None:
    repo.push(files(repo, "one", "two", one=3))
    commit = repo.cloud.repository.head("main")
    view = plan_view(commit, repo.cloud.ports)

    assert view is not None
    assert view["listPrice"] is not None
    assert view["listPrice"]["low"] > 0
