"""Who may have a cluster by request: a pull request that adds its folder, which Roadstead writes."""

from typing import Annotated, Literal

from pydantic import Field, StrictInt, StrictStr

from shared.language.model.base import Location, Manifest, ObjectName, rule
from shared.language.model.change_windows import Lifetime

GitHubAccount = Annotated[
    StrictStr,
    rule(
        r"[A-Za-z0-9](-?[A-Za-z0-9]){0,38}(/[a-z0-9_-]{1,100})?",
        "a login of GitHub, or a team as organization/team",
    ),
]
Amount = Annotated[StrictInt, Field(ge=1, le=1_000_000_000)]


class PriceLimit(Manifest):
    """The most that a cluster by request may be listed at for a month, in the currency of prices.yaml.

    Autoscaled pools count at their maximum. A request whose list price is not known whole needs a person.
    """

    cluster: Amount | None = None
    """One cluster."""
    person: Amount | None = None
    """All clusters of a person by request together, in git and in open pull requests."""


class SelfServiceRule(Manifest):
    """Which clusters some people may ask for; a request needs one rule that allows all of it."""

    roles: Annotated[tuple[Literal["Reader", "Operator", "Approver", "Admin"], ...], Field(min_length=1)] = (
        "Operator",
    )
    """Who may ask: those with one of these roles, also where they have it in the environment alone."""
    github: Annotated[tuple[GitHubAccount, ...], Field(max_length=1000)] = ()
    """Who may ask by an issue of the fleet repository: logins of GitHub, and teams as organization/team.
    GitHub knows nobody's role of Entra; by default nobody may."""
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
    price_limit: PriceLimit = PriceLimit.model_construct()
    merge: Literal["person", "auto"] = "person"
    """Who merges the pull request: a person, or the git host by itself once the branch's rules allow it."""
