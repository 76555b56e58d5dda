"""``python -m tools.wording``: find wording that ``tools/vocabulary.txt`` replaces.

Reads the documents, and of Python files the comments and strings. A reviewer reads names of variables, and
strings of one word, such as the "rows" of a protocol.
"""

from __future__ import annotations

import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VOCABULARY = ROOT / "tools" / "vocabulary.txt"
CHECKED = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "examples", "infra"),
    *("function_app.py", "handlers", "shared", "cli", "localcloud", "simulation", "bench", "tests"),
)
"""Files, and folders with their ``.md`` and ``.py`` files, and the tables of ``shared``."""


def vocabulary(text: str) -> Mapping[re.Pattern[str], str]:
    """Return the replacement of each expression."""
    entries = (line.rsplit(" = ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {_expression(pattern): instead for pattern, instead in entries}


def _expression(pattern: str) -> re.Pattern[str]:
    spaced = pattern.replace(" ", r"\s+(?:#\s+)?")
    return re.compile(rf"\b(?:{spaced})\b", re.IGNORECASE)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a file that are checked, each with the line that it begins on."""
    if path.suffix != ".py":
        yield 1, path.read_text(encoding="utf-8")
        return
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            word = token.string.strip("\"'").isidentifier()
            if token.type in (tokenize.COMMENT, tokenize.STRING) and not word:
                yield token.start[0], token.string


def findings(text: str, entries: Mapping[re.Pattern[str], str]) -> Iterator[tuple[int, str, str]]:
    """Yield the line (from 0), the wording and the replacement of each finding in a text."""
    for expression, instead in entries.items():
        for match in expression.finditer(text):
            yield text.count("\n", 0, match.start()), " ".join(match[0].split()), instead


def files(root: Path, checked: tuple[str, ...]) -> Iterator[Path]:
    """Yield every file to check."""
    for name in checked:
        path = root / name
        kinds = ("*.md", "*.py", "*.yaml") if name == "shared" else ("*.md", "*.py")
        yield from [path] if path.is_file() else sorted(file for kind in kinds for file in path.rglob(kind))


def main() -> int:
    """Print each finding with its place; return 1 when there is one."""
    entries = vocabulary(VOCABULARY.read_text(encoding="utf-8"))
    # Of small letters, which takes a third of the time; a few files have any, and are taken apart.
    any_of_them = re.compile("|".join(expression.pattern for expression in entries))
    found = [
        (path.relative_to(ROOT).as_posix(), start + line, wording, instead)
        for path in files(ROOT, CHECKED)
        if any_of_them.search(path.read_text(encoding="utf-8").lower())
        for start, text in texts(path)
        if any_of_them.search(text.lower())
        for line, wording, instead in findings(text, entries)
    ]
    for name, line, wording, instead in sorted(found):
        print(f"{name}:{line}: {wording!r}; write: {instead}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
