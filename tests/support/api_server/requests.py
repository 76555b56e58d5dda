"""Requests to an API server, in an order in which each finds what it needs; data, for any server.

The answers of a real one are recorded in ``tests/localcloud/recorded``; the stand-in must give the same. A
name is unique; ``ns`` in a path is the namespace of the run.
"""

from __future__ import annotations

from tests.support.api_server import custom_resources, deletes, forms, writes
from tests.support.api_server.objects import Call


def calls() -> tuple[Call, ...]:
    """Return every request in order."""
    groups = (
        writes.applies,
        writes.creates,
        writes.patches,
        forms.options,
        forms.forms,
        forms.selectors,
        custom_resources.custom,
        custom_resources.definitions,
        deletes.deletes,
        writes.fixed,
        writes.conflicts,
        forms.watches,
    )
    return tuple(call for group in groups for call in group())
