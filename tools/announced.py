"""``python -m tools.announced FILE``: what the release notes of AKS say of retirements since the table's day.

Without FILE it says whether the table is new enough for a release that is made today, and ends with 1 if it
is not: ``make release`` stops there, ``make check`` shows it. A commit does not depend on the day on which
it is tested.

FILE is ``CHANGELOG.md`` of github.com/Azure/AKS at its newest commit. The result has the notes after
``AS_OF`` of ``shared/azure/availability/announcements.py``, each with its sentences about what ends; a person
reads them, adds rows, and moves the day. It ends with 1 if there are any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

from shared.azure.availability.announcements import AS_OF
from shared.azure.availability.retirements import FRESH

OF_RELEASE = FRESH / 2
"""A release has a table that stays fresh for a quarter of a year."""
_NOTES = re.compile(r"#+ Release(?: Notes)?(?: -)? v?(\d{4})-?(\d{2})-?(\d{2})\b.*", re.IGNORECASE)
_ENDS = re.compile(
    r"retir|deprecat|no longer (support|produce)|end of (life|support)|out of support|will be removed"
    r"|not supported in|by default starting|starting (on|with)",
    re.IGNORECASE,
)


def announced(text: str, since: date) -> Iterator[tuple[date, str]]:
    """Yield the day of each newer release with each of its lines about what ends or begins by itself."""
    day: date | None = None
    for line in text.splitlines():
        if heading := _NOTES.fullmatch(line.strip()):
            day = date(int(heading[1]), int(heading[2]), int(heading[3]))
        elif day is not None and day > since and not line.startswith("#") and _ENDS.search(line):
            yield day, line.strip().lstrip("*- ")


def too_old(today: date) -> str:
    """Return a sentence when no release may be made of the table on that day, "" otherwise."""
    if today - AS_OF <= OF_RELEASE:
        return ""
    return (
        f"The table of retirements is of {AS_OF}, {(today - AS_OF).days} days old; a release needs one of at "
        f"most {OF_RELEASE.days} days. Give python -m tools.announced the CHANGELOG.md of "
        "github.com/Azure/AKS, add what it lists to shared/azure/availability/announcements.py, and move "
        "AS_OF there."
    )


def main(arguments: list[str], today: date) -> int:
    """Print what is new, or without a file whether the table is too old; return the exit code."""
    if not arguments:
        if said := too_old(today):
            print(said, file=sys.stderr)
        return 1 if said else 0
    found = [*announced(Path(arguments[0]).read_text(encoding="utf-8"), AS_OF)]
    for day, line in found:
        print(f"{day}  {line}")
    print(f"{len(found)} announcements after {AS_OF}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], datetime.now(tz=UTC).date()))
