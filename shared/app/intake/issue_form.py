"""The text of an issue that was opened with the form for clusters by request. Pure.

GitHub writes each answer below a heading with its label, and ``_No response_`` for none (docs.github.com,
"Syntax for issue forms"; github.com/issue-ops/parser has an example of a text). Anybody can open an issue
with any text. So only this form is read: each heading once, in its order, with an answer of one line; the
last one, the reason, is the rest of the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NAME, REASON = "Name of the cluster", "Reason"
HEADINGS: Mapping[str, str] = {
    "name": NAME,
    "class": "Class",
    "environment": "Environment",
    "lifetime": "Lifetime",
    "location": "Region",
    "reason": REASON,
}
"""The heading of each field of a request, in order."""
LONGEST = 4000
"""Characters of a text that is read."""
NONE = "_No response_"
_LINES = (rf"### {heading}\n\n(?P<{name}>[^\n]*)" for name, heading in HEADINGS.items() if heading != REASON)
_FORM = re.compile(r"\n\n".join((*_LINES, rf"### {REASON}\n\n(?P<reason>(?s:.*))")))


def is_form(body: str) -> bool:
    """Return whether a text begins as the form does: any other issue is none of ours."""
    return body.startswith(f"### {NAME}\n") or body.startswith(f"### {NAME}\r\n")


def read_form(body: str) -> Mapping[str, str] | None:
    """Return the answers by their field, "" for one that is left out; None for a text of another form."""
    found = _FORM.fullmatch(body.replace("\r\n", "\n").lstrip()) if len(body) <= LONGEST else None
    if found is None:
        return None
    answers = {name: answer.strip() for name, answer in found.groupdict().items()}
    return {name: "" if answer == NONE else answer for name, answer in answers.items()}
