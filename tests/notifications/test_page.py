"""The page on notifications has the kinds of the code, and its example is a fleet."""

from __future__ import annotations

import re
from pathlib import Path

from shared.notifications.kinds import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "notifications.md").read_text()


def test_the_page_has_each_kind_with_its_severity_and_meaning() -> None:
    table = PAGE.partition("<!-- kinds -->")[2]
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| (.+) \|$", table, re.M)[: len(KINDS)]
    assert rows == [(kind.value, about.severity.value, about.meaning) for kind, about in KINDS.items()]
