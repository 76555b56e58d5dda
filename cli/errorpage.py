"""Writes docs/errors.md: ``python -m cli.errorpage > docs/errors.md``."""

from __future__ import annotations

import sys

from shared.jobs.errors import ReconcileError
from shared.jobs.remedies import ADVICE, does, suggested_action
from shared.jobs.retry import policy_for

HEAD = """# Errors

<!-- Made by python -m cli.errorpage from shared/jobs/remedies.py; do not edit. -->

Every error of a job has a class, and the class says what happens next. `roadstead why NAME` tells the class,
the service's own words and its request id, and how often it was tried. How often is a setting, `RETRY_LIMITS`
([settings](settings.md)); a service's `Retry-After` wins, up to an hour. A failed job is begun anew by
`roadstead replay`, and by the next commit that changes the cluster.

What keeps the repository from being read has the same classes, and is the fleet's problem: `roadstead status`
and `why` tell it of every cluster. It is read again by itself, by the planning timer at the latest, and
nothing is planned before; `roadstead replay` is for jobs alone.

| class | what it means | what Roadstead does | what a person does |
|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    rows = (
        f"| {kind.__name__} | {advice.meaning} | {does(kind)} | {_person(kind)} |\n"
        for kind, advice in ADVICE.items()
    )
    return HEAD + "".join(rows)


def _person(kind: type[ReconcileError]) -> str:
    words = suggested_action(kind.__name__, failed=policy_for(kind).attempts is not None)
    deleting = ADVICE[kind].deleting
    return f"{words} For a delete: {deleting}" if deleting else words


if __name__ == "__main__":
    sys.stdout.write(page())
