"""The whole comment on a pull request; no manifest can break out of its Markdown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.app.pull_requests.comment import (
    COMMENT_LIMIT,
    OUTDATED,
    PROBLEMS_SHOWN,
    PullPlan,
    check_of,
    comment_of,
    marker,
    outdated,
    status_of,
)
from shared.app.pull_requests.markdown import code, fence, fit, prose, table
from shared.azure.changes.field_effects import Effect
from shared.language.resolve.problems import Problem
from shared.plan.differences import FieldChange
from shared.plan.holds import Hold, HoldKind
from shared.plan.plan import Action, Item, Plan
from shared.ports import Annotation, CommitStatus
from shared.ports.git_host import status_line

BASE, HEAD = "a" * 40, "b" * 40


def document(name: str, count: int = 1) -> dict[str, Any]:
    pools = [{"name": "system", "count": count}]
    return {"name": name, "spec": {"location": "eastus", "nodePools": pools}, "components": "c"}


def view(*items: Item, **changes: Any) -> PullPlan:
    return PullPlan("acme", "main", BASE, HEAD, plan=Plan(HEAD, items), **changes)


MISTAKE = Problem("clusters/red/cluster.yaml", 7, 3, "spec.loaction", "there is no such field | @ops")
COUNT = FieldChange("spec.nodePools[system].count", "1", "3", Effect.IN_PLACE, "classes/small.yaml:9")
UPDATE = Item("blue", Action.UPDATE, 2, changes=(COUNT,))
STAYS = Hold(HoldKind.VERSION_STAYS, {"field": "spec.kubernetesVersion", "runs": "1.37.1", "git": "1.36"})
MIXED = view(
    Item("amber", Action.CREATE, 1),
    UPDATE,
    Item("green", Action.UNCHANGED, 4),
    Item("grey", Action.DELETE, 3),
    Item("red", Action.INVALID, 1, hold=Hold(HoldKind.INVALID_MANIFEST, {"problem": str(MISTAKE)})),
    Item("white", Action.ON_HOLD, 1, hold=Hold(HoldKind.INVALID_FLEET_FILE)),
    problems=(MISTAKE,),
    documents={
        "amber": (None, document("amber")),
        "blue": (document("blue"), document("blue", 3)),
        "grey": (document("grey"), None),
        "red": (document("red"), None),
        "white": (document("white"), None),
    },
)

MIXED_TEXT = f"""\
<!-- roadstead:plan acme base={BASE} head={HEAD} -->
### Roadstead: what `bbbbbbbb` would do

Merged into `main` at `aaaaaaaa`: **1 create, 1 update, 1 delete, 1 unchanged, \
1 on hold, 1 invalid**.

#### Problems

| place | field | problem |
|---|---|---|
| `clusters/red/cluster.yaml:7:3` | `spec.loaction` | there is no such field \\| @\u200bops |

#### `red`: **invalid: keeps its last valid spec**

#### `white`: **delete, on hold**

nothing is deleted while fleet.yaml is invalid

#### `grey`: **delete the cluster and everything that runs there, and its \
resource group if Roadstead created it and nothing else is in it**

#### `blue`: update

| field | old | new | effect | from |
|---|---|---|---|---|
| `nodePools[system].count` | `1` | `3` | in place | `classes/small.yaml:9` |

<details><summary>Resolved YAML</summary>

```diff
--- recorded
+++ this
@@ -1,4 +1,4 @@
 location: eastus
 nodePools:
-- count: 1
+- count: 3
   name: system
```

</details>

#### `amber`: create

<details><summary>Resolved YAML</summary>

```diff
--- recorded
+++ this
@@ -0,0 +1,4 @@
+location: eastus
+nodePools:
+- count: 1
+  name: system
```

</details>
"""


def test_items_not_carried_out_come_first_then_destructive_ones_then_the_rest() -> None:
    assert comment_of(MIXED) == MIXED_TEXT


def test_one_line_that_changes_many_clusters_is_one_table_with_their_names() -> None:
    names = [f"production-{number:02}" for number in range(12)]
    changed = [Item(name, Action.UPDATE, 2, changes=(COUNT,)) for name in names]
    other = Item("other", Action.UPDATE, 2, changes=(replace(COUNT, new="4"),))
    documents = {name: (document(name), document(name, 3)) for name in names}
    text = comment_of(view(*changed, other, documents=documents))
    assert text.count("| field | old |") == 2
    assert "#### Each of 12 clusters: update" in text
    assert all(text.count(f"`{name}`") == 1 for name in names)
    assert text.count("Resolved YAML of production-00, one of 12") == 1
    assert max(map(len, text.splitlines()[4:])) <= 80
    assert len(text.splitlines()) <= 40


def test_one_wrong_line_of_the_fleet_is_one_heading() -> None:
    wrong = replace(MISTAKE, file="fleet.yaml")
    hold = Hold(HoldKind.INVALID_MANIFEST, {"problem": str(wrong)})
    names = [f"production-{number:02}" for number in range(12)]
    items = [Item(name, Action.INVALID, 1, hold=hold) for name in names]
    documents = {name: (document(name), None) for name in names}
    text = comment_of(view(*items, problems=(wrong,), documents=documents))
    assert text.count("\n#### ") == 2
    assert "#### Each of 12 clusters: **invalid: keeps its last valid spec**" in text


def test_a_pull_request_from_a_fork_shows_no_recorded_state() -> None:
    plan = PullPlan("acme", "main", BASE, HEAD, problems=(MISTAKE,))
    assert comment_of(plan) == (
        f"<!-- roadstead:plan acme base={BASE} head={HEAD} -->\n"
        "### Roadstead: what `bbbbbbbb` would do\n\n"
        "This pull request comes from a fork: its manifests were validated, and the recorded state "
        "of the fleet is not shown.\n\n"
        "#### Problems\n\n"
        "| place | field | problem |\n|---|---|---|\n"
        "| `clusters/red/cluster.yaml:7:3` | `spec.loaction` | there is no such field \\| @\u200bops |\n"
    )
    good = PullPlan("acme", "main", BASE, HEAD)
    assert status_of(good) == CommitStatus(
        "pending",
        "the manifests are valid; nothing was planned, because this comes from a fork",
        "roadstead/plan",
    )


def test_problems_are_annotations_at_their_lines_and_the_conclusion_is_failure() -> None:
    check = check_of(MIXED)
    assert (check.name, check.conclusion) == ("roadstead/plan", "failure")
    assert check.title == (
        "1 create, 1 update, 1 delete, 1 unchanged, 1 on hold, 1 invalid; 1 problem in the manifests"
    )
    assert check.annotations == (
        Annotation("clusters/red/cluster.yaml", 7, "spec.loaction: there is no such field | @ops"),
    )
    assert check.summary in comment_of(MIXED)


@pytest.mark.parametrize(
    ("shown", "conclusion", "state"),
    [
        (view(UPDATE), "success", "success"),
        (view(Item("a", Action.ON_HOLD, 1, hold=Hold(HoldKind.AWAITS_DELETION))), "neutral", "success"),
        (view(replace(UPDATE, hold=STAYS)), "neutral", "success"),
        (
            view(replace(UPDATE, hold=Hold(HoldKind.NAMESPACE_BUDGET), retained=("shop",))),
            "neutral",
            "success",
        ),
        (view(UPDATE, note="there are conflicts"), "neutral", "success"),
        (view(UPDATE, problems=(MISTAKE,)), "failure", "failure"),
        (view(refusal="too much"), "failure", "failure"),
        (PullPlan("acme", "main", BASE, HEAD), "neutral", "pending"),
        (PullPlan("acme", "main", BASE, HEAD, problems=(MISTAKE,)), "failure", "failure"),
    ],
)
def test_what_waits_for_a_person_is_neutral_a_problem_a_failure_and_nothing_without_a_plan_a_success(
    shown: PullPlan, conclusion: str, state: str
) -> None:
    assert (shown.conclusion, status_of(shown).state) == (conclusion, state)


def test_a_comment_is_marked_as_out_of_date_once_and_not_for_its_own_base() -> None:
    body = comment_of(view(UPDATE))
    assert outdated(body, BASE) == body
    marked = outdated(body, "c" * 40)
    assert marked.startswith(f"{marker('acme')}base={BASE} head={HEAD} -->\n{OUTDATED}\n\n### Roadstead")
    assert outdated(marked, "d" * 40) == marked


def test_a_text_over_the_limit_of_github_is_shortened_between_parts_and_says_so() -> None:
    items = tuple(Item(f"cluster-{n}", Action.CREATE, 1) for n in range(2000))
    documents = {item.cluster: (None, document(item.cluster)) for item in items}
    body = comment_of(view(*items, documents=documents))
    assert COMMENT_LIMIT - 1000 < len(body) < 65_536
    assert body.endswith("a longer text is not accepted.**\n")
    assert body.count("<details>") == body.count("</details>")
    assert len(check_of(view(*items, documents=documents)).summary) <= 65_535


def test_a_long_diff_is_shortened_and_says_so() -> None:
    new = {"name": "a", "spec": {f"key{n:04}": n for n in range(1000)}, "components": ""}
    body = comment_of(view(Item("a", Action.CREATE, 1), documents={"a": (None, new)}))
    assert "(the rest of the diff is not shown)\n```\n\n</details>" in body
    assert "key0999" not in body


def test_deletes_that_one_guard_blocks_are_grouped() -> None:
    budget = Hold(HoldKind.DELETE_BUDGET, {"removed": "2", "budget": "1"})
    held = [Item(name, Action.ON_HOLD, 1, hold=budget) for name in ("a", "b")]
    other = Item("c", Action.ON_HOLD, 1, hold=Hold(HoldKind.DELETION_PROTECTION))
    documents = {name: (document(name), None) for name in "abc"}
    body = comment_of(view(*held, other, documents=documents))
    assert f"#### `c`: **delete, needs approval**\n\n{other.reason}\n" in body
    assert f"#### 2 clusters: **deletes that need approval**\n\n{budget}\n\n`a`, `b`\n" in body


def test_a_release_is_no_delete() -> None:
    held = Item("edge", Action.ON_HOLD, hold=Hold(HoldKind.DELETION_PROTECTION).of_release())
    budget = Hold(HoldKind.DELETE_BUDGET, {"removed": "2", "budget": "1"})
    both = [Item(name, Action.ON_HOLD, hold=budget.of_release()) for name in ("dock", "quay")]
    text = comment_of(view(Item("harbour", Action.RELEASE), held, *both))
    assert "#### `harbour`: release the cluster: everything that runs there stays" in text
    assert "#### `edge`: **release, needs approval**" in text
    assert "#### 2 clusters: **releases that need approval**" in text


def test_destructive_changes_are_bold() -> None:
    removed = FieldChange("spec.nodePools[batch]", "batch", "", Effect.POOL_DELETED)
    replaced = FieldChange("spec.nodePools[system].vmSize", "A", "B", Effect.REPLACEMENT, "fleet.yaml:3")
    proxy = FieldChange("spec.httpProxyConfig.httpProxy", "a", "b", Effect.REIMAGED, "fleet.yaml:4")
    body = comment_of(view(Item("blue", Action.UPDATE, 2, changes=(removed, replaced, proxy))))
    assert (
        "| `httpProxyConfig.httpProxy` | `a` | `b` | in place, nodes are reimaged | `fleet.yaml:4` |" in body
    )
    assert "| `nodePools[batch]` | `batch` |  | **the node pool is deleted** |  |" in body
    assert "| `nodePools[system].vmSize` | `A` | `B` | **node pool replacement** | `fleet.yaml:3` |" in body


def test_a_version_that_stays_is_described() -> None:
    lowered = FieldChange("spec.kubernetesVersion", "1.36", "1.35", Effect.NEVER_LOWERED, "fleet.yaml:3")
    body = comment_of(view(Item("blue", Action.UPDATE, 2, changes=(lowered,))))
    assert "| `1.36` | `1.35` | never lowered: a newer version that runs stays |" in body


def test_another_order_of_a_list_or_of_the_pools_is_not_in_the_diff() -> None:
    def with_pools(*pools: tuple[str, int, list[str]]) -> dict[str, Any]:
        node_pools = [{"name": name, "count": count, "nodeTaints": taints} for name, count, taints in pools]
        return {"name": "a", "spec": {"nodePools": node_pools}, "components": ""}

    old = with_pools(("one", 1, ["a=b:NoSchedule", "c=d:NoSchedule"]), ("two", 1, []))
    new = with_pools(("two", 1, []), ("one", 2, ["c=d:NoSchedule", "a=b:NoSchedule"]))
    body = comment_of(view(Item("a", Action.UPDATE, 2), documents={"a": (old, new)}))
    lines = body.split("```diff\n")[1].split("```")[0].splitlines()[2:]
    assert [line for line in lines if line[0] in "+-"] == ["-- count: 1", "+- count: 2"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "`plain`"),
        ("a | b", "`a \\| b`"),
        ("two\nlines\x00", "`two lines`"),
        ("`x`", "`` `x` ``"),
        ("", ""),
    ],
)
def test_a_value_is_shown_as_it_is(text: str, shown: str) -> None:
    assert code(text) == shown


def test_a_fence_has_no_control_characters() -> None:
    assert fence("a\x1b[31m\u202eb\n```\nc", "diff") == "````diff\na [31m b\n```\nc\n````"


def test_a_spec_of_thousands_of_lines_is_not_compared() -> None:
    old, new = ({"spec": {"labels": {f"k{n}": value for n in range(3000)}}} for value in ("a", "b"))
    changes = tuple(FieldChange(f"spec.labels.k{n}", "a", "b", Effect.IN_PLACE) for n in range(3000))
    item = Item("a", Action.UPDATE, 2, changes=changes)
    body = comment_of(view(item, documents={"a": (old, new)}))
    assert "lines are too many for a diff" in body
    assert "2,900 more fields are not shown." in body


def test_hidden_problems_are_counted() -> None:
    hidden = replace(MISTAKE, line=9, message="... and 8,900 more problems in this file", more=8900)
    shown = PullPlan("acme", "main", BASE, HEAD, problems=(MISTAKE, hidden))
    assert shown.title == "8901 problems in the manifests"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("two\nlines\r\n\x1b[31mof text\u2028", "two lines [31mof text"),
        ("x" * 140, "x" * 140),
        ("x" * 141, "x" * 137 + "..."),
        ("", ""),
    ],
)
def test_the_description_of_a_status_is_one_line_of_at_most_140_characters(text: str, line: str) -> None:
    assert status_line(text) == line


def test_prose_mentions_nobody_and_links_nowhere() -> None:
    assert prose("@team fixes #12 <b>*now*</b> at https://example.com\n|") == (
        "@\u200bteam fixes #\u200b12 &lt;b&gt;\\*now\\*&lt;/b&gt; at https://\u200bexample.com \\|"
    )


@given(st.text())
def test_no_text_breaks_a_table_or_a_fence(text: str) -> None:
    shown = table(("a", "b"), [(code(text), prose(text))])
    assert len(shown.split("\n")) == 3
    record = shown.split("\n")[2].replace("\\|", "")
    assert record.count("|") == 3
    block = fence(text)
    ticks = block.split("\n")[0]
    assert not any(line.strip() == ticks for line in block.split("\n")[1:-1])


@given(st.lists(st.text(max_size=30)), st.integers(20, 100))
def test_a_fitted_text_fits(parts: list[str], limit: int) -> None:
    assert len(fit(parts, limit, "cut")) <= limit


@pytest.mark.parametrize(
    ("number", "text"), [(1, "1 more problem is not shown."), (2, "2 more problems are not shown.")]
)
def test_problems_that_are_not_shown_are_counted(number: int, text: str) -> None:
    problems = tuple(replace(MISTAKE, line=n) for n in range(PROBLEMS_SHOWN + number))
    assert text in comment_of(PullPlan("acme", "main", BASE, HEAD, problems=problems))
