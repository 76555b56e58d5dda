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

from shared.fleet.resolve.problems import Problem

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 25_000
"""GitHub refuses a SARIF run with more."""
_RULE, _RETIREMENT = "invalid-manifest", "retirement"

Shown = Callable[[str], str]


def sarif(problems: Sequence[Problem], shown: Shown, warnings: Sequence[Problem] = ()) -> dict[str, Any]:
    """Return a SARIF 2.1.0 log; a notification states how many problems the run omits.

    ``warnings`` are of retirements: no manifest is invalid because of them.
    """
    listed = sorted(problems)[:MOST_RESULTS]
    warned = sorted(warnings)[: MOST_RESULTS - len(listed)]
    run: dict[str, Any] = {
        "tool": {"driver": _driver()},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The root of the repository."}}},
        "results": [*_results(listed, shown), *_results(warned, shown, rule=1)],
    }
    omitted = len(problems) - len(listed) + len(warnings) - len(warned)
    if omitted:
        text = f"{omitted} more problems are not shown."
        notification = {"level": "warning", "message": {"text": text}}
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": [notification]}]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _driver() -> dict[str, Any]:
    text = "A manifest of the fleet repository is invalid; its clusters keep their last valid spec."
    rule = {
        "id": _RULE,
        "name": "InvalidManifest",
        "shortDescription": {"text": "An invalid manifest"},
        "fullDescription": {"text": text},
        "help": {"text": f"{text} Each result states the problem and its remedy."},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["roadstead"], "problem.severity": "error"},
    }
    warned = "AKS has retired something that a manifest asks for, or will retire it within 180 days."
    retirement = {
        "id": _RETIREMENT,
        "name": "Retirement",
        "shortDescription": {"text": "A retirement of AKS"},
        "fullDescription": {"text": warned},
        "help": {"text": f"{warned} Each result states the day, the source and what to do."},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": ["roadstead"], "problem.severity": "warning"},
    }
    return {"name": "Roadstead", "semanticVersion": version("roadstead"), "rules": [rule, retirement]}


def _results(problems: Iterable[Problem], shown: Shown, *, rule: int = 0) -> Iterator[dict[str, Any]]:
    """Yield results; a fingerprint stays the same when lines above it change."""
    seen: Counter[str] = Counter()
    for problem in problems:
        uri = quote(shown(problem.file))
        digest = hashlib.sha256(f"{uri}\n{problem.field}\n{problem.message}".encode()).hexdigest()[:16]
        seen[digest] += 1
        yield {
            "ruleId": (_RULE, _RETIREMENT)[rule],
            "ruleIndex": rule,
            "level": ("error", "warning")[rule],
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
    """Yield a workflow command for each problem; ``level`` is error or warning."""
    for problem in sorted(problems):
        place = f"file={_property(shown(problem.file))},line={problem.line},col={problem.column}"
        yield f"::{level} {place},title=Roadstead::{_data(_text(problem))}"


def _text(problem: Problem) -> str:
    return f"{problem.field}: {problem.message}" if problem.field else problem.message


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
