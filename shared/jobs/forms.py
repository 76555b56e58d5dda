"""The forms of what is stored and sent: the one place where an older one is read, and a newer one refused.

Each record and each message says the version of its form. A release that changes a form, so that an earlier
one would misread it, gives the form its next version, and adds to ``UPGRADES`` what turns an older one
into it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Json = Mapping[str, Any]
Upgrades = Mapping[tuple[str, int], Callable[[Json], Json]]

VERSION = "schema_version"
"""The field that has the version of a form."""
UPGRADES: Upgrades = {}
"""By the name of a form and a version of it: what returns the next version. No form has a second one yet."""


class NewerForm(Exception):
    """A record or a message has a newer form: it is left, as it is, to an instance that knows that."""

    def __init__(self, form: str, found: int, known: int) -> None:
        super().__init__(f"{form} has the form {found}, and this app knows {known}: a newer app handles it")


def present(form: str, known: int, stored: Json, upgrades: Upgrades = UPGRADES) -> Json:
    """Return what is stored in the version of its form that is ``known``.

    Raise NewerForm for a newer version, and ValueError for none.
    """
    found = stored.get(VERSION)
    if type(found) is not int or found < 1:
        raise ValueError(f"{VERSION} is missing, or is no version")
    if found > known:
        raise NewerForm(form, found, known)
    for version in range(found, known):
        stored = {**upgrades[form, version](stored), VERSION: version + 1}
    return stored
