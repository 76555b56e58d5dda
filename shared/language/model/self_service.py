"""Who may have a cluster by request: a pull request that adds its folder, which Roadstead writes."""

from typing import Annotated, Literal

from pydantic import Field, StrictInt

from shared.language.model.base import Location, Manifest, ObjectName
from shared.language.model.cluster.lifetime import Lifetime


class SelfServiceRule(Manifest):
    """Which clusters some people may ask for; a request needs one rule that allows all of it."""

    roles: Annotated[tuple[Literal["Reader", "Operator", "Approver", "Admin"], ...], Field(min_length=1)] = (
        "Operator",
    )
    """Who may ask: those with one of these roles, also where they have it in the environment alone."""
    classes: Annotated[tuple[ObjectName, ...], Field(min_length=1)]
    """The classes of the clusters."""
    environments: Annotated[tuple[ObjectName, ...], Field(min_length=1)]
    """The environments of the clusters; the first one is that of a request which names none."""
    locations: tuple[Location, ...] = ()
    """The regions that a request may name; by default none, so that the place is that of shared files."""
    max_lifetime: Lifetime = "24h"
    """How long a cluster may last; each has a lifetime."""
    at_once: Annotated[StrictInt, Field(ge=1, le=1000)] = 1
    """How many clusters a person may have by request at once, in git and in open pull requests."""
