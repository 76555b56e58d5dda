"""The comment on a pull request shows in which stages a merge would reach the clusters."""

from __future__ import annotations

import pytest

from tests.support.proposals import Repo
from tests.support.staged_fleets import ALL_AT_ONCE, DEV, ready_fleet, staged, tags

pytestmark = pytest.mark.lives

WITH_APPROVAL = """\
  rollout:
    stages:
      - name: development
        select: {environments: [development]}
        groups: [{clusters: "1", soak: 90m}, {maxConcurrency: "2"}]
      - {name: production, select: {environments: [production]}, approval: true}
"""


def test_a_comment_has_the_stages_their_clusters_and_where_approvals_are_asked() -> None:
    repo = Repo(ready_fleet(WITH_APPROVAL))
    (body,) = repo.comments(repo.propose(staged(WITH_APPROVAL, tags("one"))))
    bounds = "1 at a time, failure budget 1"
    assert f"| `development` | 1 | 1: `a1` | {bounds}, then watched for 1h 30m |" in body
    assert "| `development` | 2 | 2: `a2`, `a3` | 2 at a time, failure budget 2 |" in body
    assert f"| `production` (**waits for an approval**) | 1 | 1: `b1` | {bounds} |" in body
    assert f"| `production` | 2 | 3: `b2`, `b3`, `b4` | {bounds} |" in body


def test_a_comment_shows_what_passes_the_pause_of_a_rollout_that_is_under_way() -> None:
    repo = Repo(ready_fleet())
    repo.cloud.azure.interventions.fail_next("a1", "InvalidParameter", "no vCPUs are left")
    repo.push(staged(extra=tags("one"), only=DEV))
    files = staged(extra=tags("one"), only=(*DEV, "b2"))
    (body,) = repo.comments(repo.propose(files))
    first, then = body.index("| `fix:production` | 1 | 1: `b2` |"), body.index("| `development` | 1 |")
    assert first < then


def test_a_fleet_without_stages_has_no_table_of_them() -> None:
    repo = Repo(ready_fleet(ALL_AT_ONCE))
    (body,) = repo.comments(repo.propose(staged(ALL_AT_ONCE, tags("one"))))
    assert "Rollout" not in body


GATED = """\
  rollout:
    strategies:
      - {name: usual, changes: [any]}
      - name: emergency
        pullRequestLabel: fix now
        stages:
          - name: everywhere
            groups: [{clusters: "1"}, {}]
            gate: {owner: "@somebody", reason: r, after: 2h, commitChecks: ["@a [b](https://c.example)"]}
"""


def test_a_label_selects_the_stages_of_a_comment_and_no_text_of_a_gate_is_in_it() -> None:
    repo = Repo(ready_fleet(GATED))
    number = repo.propose(staged(GATED, tags("one")))
    assert "The strategy `usual`." in repo.comments(number)[0]
    repo.cloud.repository.pulls.change(number, labels=("fix now",))
    head = repo.cloud.repository.push(staged(GATED, tags("two")), branch="topic")
    repo.tell(number, head)
    (body,) = repo.comments(number)
    assert "The strategy `emergency`." in body
    assert "| `everywhere` (**waits 2h, waits for 1 check**) | 1 |" in body
    assert "c.example" not in body.partition("<details>")[0]


FINAL = """\
  rollout:
    stages: [{name: everywhere, groups: [{maxConcurrency: "100%"}]}]
    finalGate: {owner: "@somebody", reason: r, after: 2h, commitChecks: ["@a [b](https://c.example)"]}
"""


def test_a_comment_says_what_the_rollout_waits_for_after_its_last_stage() -> None:
    repo = Repo(ready_fleet(FINAL))
    (body,) = repo.comments(repo.propose(staged(FINAL, tags("one"))))
    assert "| `everywhere` | 1 | 7:" in body
    assert "After the last stage, the rollout **waits 2h, waits for 1 check**." in body
    assert "c.example" not in body.partition("<details>")[0]
