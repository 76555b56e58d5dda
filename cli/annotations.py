"""Problems in GitHub's forms: SARIF for code scanning, and workflow commands that annotate a diff.

Both name files by their path in the checked-out repository. Rules:
docs.github.com/code-security/reference/code-scanning/sarif-files/sarif-support (what of SARIF 2.1.0 counts,
and how much) and actions/toolkit docs/commands.md (workflow commands).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from shared.language.resolve.problems import Problem
from shared.sentences import not_shown

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 25_000
"""GitHub refuses a SARIF run with more."""
_RULES = (
    (
        *("invalid-manifest", "InvalidManifest", "An invalid manifest", "error"),
        "A manifest of the fleet repository is invalid; its clusters keep their last valid spec.",
        "Each result states the problem and its remedy.",
    ),
    (
        *("retirement", "Retirement", "A retirement of AKS", "warning"),
        "AKS has retired something that a manifest asks for, or will retire it within 180 days.",
        "Each result states the day, the source and what to do.",
    ),
    (
        *("ending-exemption", "EndingExemption", "An exemption from drift that ends", "warning"),
        "An exemption of a drift policy has ended, or will end within 30 days.",
        "Each result states the day, and who answers for the exemption.",
    ),
    (
        *("past-start", "PastStart", "A maintenance window that begins in the past", "warning"),
        "AKS refuses a window with such a day, and Roadstead leaves the day out.",
        "Each result states the day.",
    ),
)
"""The id, the name, the title and the level of each kind of result, and two sentences about it."""

Shown = Callable[[str], str]


def sarif(problems: Sequence[Problem], shown: Shown, *warnings: Sequence[Problem]) -> dict[str, Any]:
    """Return a SARIF 2.1.0 log; a notification states how many problems the run omits.

    ``warnings`` are of retirements, of exemptions, then of windows: no manifest is invalid because of them.
    """
    found = [(rule, problem) for rule, part in enumerate((problems, *warnings)) for problem in sorted(part)]
    run: dict[str, Any] = {
        "tool": {"driver": _driver()},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The root of the repository."}}},
        "results": list(_results(found[:MOST_RESULTS], shown)),
    }
    if len(found) > MOST_RESULTS:
        text = not_shown(len(found) - MOST_RESULTS, "problem")
        notification = {"level": "warning", "message": {"text": text}}
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": [notification]}]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _driver() -> dict[str, Any]:
    rules = [
        {
            "id": rule,
            "name": name,
            "shortDescription": {"text": title},
            "fullDescription": {"text": text},
            "help": {"text": f"{text} {more}"},
            "defaultConfiguration": {"level": level},
            "properties": {"tags": ["roadstead"], "problem.severity": level},
        }
        for rule, name, title, level, text, more in _RULES
    ]
    return {"name": "Roadstead", "semanticVersion": version("roadstead"), "rules": rules}


def _results(found: Iterable[tuple[int, Problem]], shown: Shown) -> Iterator[dict[str, Any]]:
    """Yield the results of rules; a fingerprint stays the same when lines above it change."""
    seen: Counter[str] = Counter()
    for rule, problem in found:
        uri = quote(shown(problem.file))
        digest = hashlib.sha256(f"{uri}\n{problem.field}\n{problem.message}".encode()).hexdigest()[:16]
        seen[digest] += 1
        yield {
            "ruleId": _RULES[rule][0],
            "ruleIndex": rule,
            "level": _RULES[rule][3],
            "message": {"text": _text(problem)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"},
                        "region": {"startLine": problem.line, "startColumn": problem.column},
                    }
                }
            ],
            "partialFingerprints": {"primaryLocationLineHash": f"{digest}:{seen[digest]}"},
        }


def commands(problems: Iterable[Problem], shown: Shown, level: str = "error") -> Iterator[str]:
    """Yield a workflow command for each problem; ``level`` is error, warning or notice."""
    for problem in sorted(problems):
        place = f"file={_property(shown(problem.file))},line={problem.line},col={problem.column}"
        yield f"::{level} {place},title=Roadstead::{_data(_text(problem))}"


def _text(problem: Problem) -> str:
    return f"{problem.field}: {problem.message}" if problem.field else problem.message


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
