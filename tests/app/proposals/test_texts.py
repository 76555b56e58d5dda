"""What a proposal says: who changed what, and nothing of it has an effect on GitHub or shows a secret."""

from __future__ import annotations

import re

from shared.masking import Masker
from shared.ports.masked import masked
from tests.support.drift_proposals import PROPOSE, changed_lines, notes, pull_requests
from tests.support.one_cluster import ONE, ready, record
from tests.support.sweeps import sweep, tag_by_hand

TAGS = "  tags: {cost: a}\n"
TOKEN = "ghp_" + "a1" * 18


def without_code(body: str) -> str:
    """Return a text without its code spans, in which nothing has an effect."""
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", body)


def test_the_text_says_who_changed_it_and_what_merging_and_closing_do() -> None:
    cloud = ready(TAGS + PROPOSE)
    with cloud.azure.called_by("ann@example.com"):
        tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    (pull,) = pull_requests(cloud)
    assert pull.title == "Take what Azure has of one into its manifest"
    assert re.search(r"may have been changed 2026-01-01 00:\d\d UTC by ann@\u200bexample.com", pull.body)
    assert "**Merge** this to take the values of Azure into `clusters/one/cluster.yaml`" in pull.body
    assert "**Close** it to decline these values" in pull.body
    assert "`roadstead replay one`" in pull.body


def test_text_of_azure_has_no_effect_on_github() -> None:
    hostile = "@acme/team #12 https://evil.example $x$ `<img src=x>` |"
    cloud = ready(TAGS + PROPOSE)
    with cloud.azure.called_by("@acme/team <b>#1</b> https://evil.example $x$"):
        tag_by_hand(cloud, ONE, cost=hostile)
    sweep(cloud)
    (pull,) = pull_requests(cloud)
    shown = without_code(pull.body)
    assert "acme/team" in shown, "the caller is shown"
    for effect in ("@acme", "#1", "://evil", "<b>", "<img", "$x$"):
        assert effect not in shown


def test_a_value_that_may_be_a_secret_is_not_proposed_and_nothing_repeats_it() -> None:
    cloud = ready(TAGS + PROPOSE)
    cloud.with_ports(lambda ports: masked(ports, Masker(())))
    tag_by_hand(cloud, ONE, cost=TOKEN, own="x")
    sweep(cloud)
    (pull,) = pull_requests(cloud)
    assert changed_lines(cloud)[1] == "+tags: {cost: a, own: x}"
    assert notes(cloud)["tags.cost"] == "the value may contain a secret"
    stored = [repr(record(cloud)), repr(cloud.state.proposals()), pull.body]
    assert not [value for value in stored if TOKEN in value]
    tag_by_hand(cloud, ONE, cost="a")
    sweep(cloud)
    assert len(pull_requests(cloud)) == 1
