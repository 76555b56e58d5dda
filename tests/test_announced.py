"""What the release notes of AKS announce after the day of the table is listed, and nothing older."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from shared.azure.availability.announcements import AS_OF
from tools.announced import OF_RELEASE, announced, main

NOTES = """# Azure Kubernetes Service Changelog

## Release Notes - 2026-10-02

### Announcements of upcoming changes and retirements

* Revision `asm-1-29` of the add-on has been deprecated.
* Kubernetes patch versions 1.37.1 are now available.

## Release Notes 2026-09-04

* The preview X will be retired on May 1, 2027.

## Release 2025-08-29

- The tag Y is no longer supported.
"""


def test_what_ends_is_listed_with_the_day_of_its_notes_if_that_is_newer() -> None:
    newest = (date(2026, 10, 2), "Revision `asm-1-29` of the add-on has been deprecated.")
    assert [*announced(NOTES, date(2026, 9, 8))] == [newest]
    assert [day.isoformat() for day, _ in announced(NOTES, date(2025, 1, 1))] == [
        *("2026-10-02", "2026-09-04", "2025-08-29"),
    ]


@pytest.mark.parametrize(("day", "code"), [("2099-01-01", 1), ("2020-01-01", 0)])
def test_the_exit_code_says_whether_anything_is_new(
    day: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "CHANGELOG.md"
    notes.write_text(f"## Release Notes - {day}\n\n* X is retired.\n")
    assert main([str(notes)], AS_OF) == code
    assert f"announcements after {AS_OF}" in capsys.readouterr().err


def test_a_release_is_refused_once_the_table_is_older_than_a_quarter_of_a_year(
    capsys: pytest.CaptureFixture[str],
) -> None:
    last = AS_OF + OF_RELEASE
    assert (main([], last), capsys.readouterr().err) == (0, "")
    assert main([], last + timedelta(days=1)) == 1
    said = capsys.readouterr().err
    assert f"is of {AS_OF}, {OF_RELEASE.days + 1} days old" in said
    assert "move AS_OF" in said
