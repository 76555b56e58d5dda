"""Who is notified of which events. An address can be a secret, so git has only the name of its setting."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StrictStr, model_validator

from shared.fleet.manifests.base import Labels, Manifest, ObjectName, rule

SettingName = Annotated[
    StrictStr,
    rule(
        r"[A-Z][A-Z0-9_]{0,127}",
        "the name of the setting with the address, such as TEAMS_WEBHOOK_URL; an address can be a secret and "
        "does not belong in git",
    ),
]
EventName = Literal[
    "failed",
    "lost",
    "stalled",
    "held",
    "drift",
    "refused",
    "invalid",
    "plan",
    "credential",
    "expiring",
    "token",
    "sweep",
    "orphan",
    "dead-letter",
    "channel",
    "approved",
    "outputs",
    "ready",
    "deleted",
    "released",
]


class Route(Manifest):
    """A channel of notifications, and which facts it gets."""

    name: ObjectName
    """The route's name."""
    type: Literal["teams", "slack", "webhook", "email", "apprise", "github"]
    """The kind of channel; ``github`` writes issues of the fleet repository."""
    address: SettingName = ""
    """The name of the address, which can be a secret: the app setting ``NOTIFY_<address>`` has it. Every type
    but ``github`` needs one."""
    severity: Literal["info", "warning", "critical"] = "warning"
    """The least severity of what is sent, unless ``events`` says what is."""
    events: Annotated[tuple[EventName, ...], Field(min_length=1)] = ()
    """The kinds of facts that are sent, whatever their severity; by default all of the severity."""
    environments: tuple[ObjectName, ...] = ()
    """The environments whose clusters count, and nothing of the fleet as a whole; by default all."""
    labels: Labels = Field(default_factory=dict)
    """The labels that a cluster must have in metadata.labels to count; by default none."""

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        if self.type == "github" and self.address:
            raise ValueError("github writes issues of the fleet repository; remove address")
        if self.type != "github" and not self.address:
            raise ValueError(f"{self.type} needs address: the name of the setting with the address")
        return self
