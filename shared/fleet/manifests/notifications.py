"""Who is notified of which events. An address can be a secret, so git has only the name of its setting."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictStr

from shared.fleet.manifests.base import Manifest, ObjectName, rule

SettingName = Annotated[
    StrictStr,
    rule(
        r"[A-Z][A-Z0-9_]{0,127}",
        "the name of the setting with the address, such as TEAMS_WEBHOOK_URL; an address can be a secret and "
        "does not belong in git",
    ),
]


class Route(Manifest):
    """A receiver of notifications; ``address`` is the name of a setting of the function app."""

    name: ObjectName
    """The route's name."""
    type: Literal["teams", "slack", "webhook", "email"]
    """The kind of receiver."""
    address: SettingName
    """The name of the setting with the address, which can be a secret."""
    events: Annotated[
        tuple[Literal["held", "refused", "invalid", "failed", "ready", "deleted"], ...], Field(min_length=1)
    ] = ("held", "refused", "failed")
    """The events that are sent; ``held``, ``refused`` and ``failed`` by default."""
