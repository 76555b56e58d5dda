"""The rules of ``fleet.yaml`` for a whole fleet: guards, quotas, notifications, promotions, requests."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from shared.language.model.base import LabelKey, Labels, Location, Manifest, ObjectName, Uuid, rule, twice
from shared.language.model.change_windows import Lifetime
from shared.language.model.notification_kinds import NotificationKind, RouteType, Severity
from shared.language.model.rollout import Soak


class DeleteBudget(Manifest):
    """How many clusters one plan may delete; a plan with more deletes needs an approval for all of them.

    The smaller of both limits counts; ``percent`` is at least one cluster unless it is 0.
    """

    count: Annotated[StrictInt, Field(ge=0, le=10_000)] = 1
    """How many clusters one commit may delete."""
    percent: Annotated[StrictInt, Field(ge=0, le=100)] = 100
    """The same as a percentage of the recorded clusters, rounded down but at least one; 0 allows none."""
    objects: Annotated[StrictInt, Field(ge=0, le=100_000)] = 20
    """How many objects that Flux applies one commit may delete on a cluster; what destroys a namespace, a
    definition, a claim, a StatefulSet, a HelmRelease or a Kustomization needs an approval in any case."""

    def of(self, recorded: int) -> int:
        """Return how many of the recorded clusters one plan may delete."""
        share = max(1, recorded * self.percent // 100) if self.percent else 0
        return min(self.count, share)


class Guards(Manifest):
    """What a commit may not do without an approval."""

    delete_budget: DeleteBudget = DeleteBudget.model_construct()
    namespace_budget: Annotated[StrictInt, Field(ge=0, le=100_000)] = 0
    """How many namespaces of systems one commit may take from clusters, on every cluster; a commit
    that takes more needs an approval for all of them."""


# What a fleet may have: Azure's quotas as far as the owner of the fleet knows them, and budgets of teams.


class ClusterQuota(Manifest):
    """How much some clusters may have together.

    One with ``clusters`` alone that names no environment and no labels is a quota of Azure: it counts for
    each subscription and region by itself, and the one that names most of both counts.
    """

    subscription_id: Uuid | None = None
    """The subscription; every one by default."""
    location: Location | None = None
    """The region; every one by default."""
    environment: ObjectName | None = None
    """The environment; every one by default."""
    labels: Labels = Field(default_factory=dict)
    """The labels that a cluster has in metadata.labels; by default none."""
    per_label: LabelKey | None = None
    """A label, such as owner: each of its values has the quota by itself, clusters without it have none."""
    clusters: Annotated[StrictInt, Field(ge=0, le=5000)] | None = None
    """How many clusters git may have there."""
    nodes: Annotated[StrictInt, Field(ge=0, le=5_000_000)] | None = None
    """How many nodes they may have: the count of each pool, or the most that it scales to."""
    cores: Annotated[StrictInt, Field(ge=0, le=100_000_000)] | None = None
    """How many vCPUs their nodes may have, by the names of their sizes."""
    list_price: Annotated[StrictInt, Field(ge=0, le=1_000_000_000)] | None = None
    """What they may be listed at for a month, with autoscaled pools at their maximum, in the currency of
    ``prices.yaml``. What has no price there cannot be added."""

    @property
    def of_azure(self) -> bool:
        """Whether it is what Azure allows in a subscription and region, each by itself."""
        others = (self.environment, self.per_label, self.nodes, self.cores, self.list_price)
        return not self.labels and all(value is None for value in others)

    @property
    def precision(self) -> int:
        """How much it is about: of several quotas of Azure that fit, the one that names most counts."""
        return 2 * (self.subscription_id is not None) + (self.location is not None)

    def fits(self, subscription: str, location: str) -> bool:
        """Return whether it is about a subscription and region, both in lower case."""
        wanted = (self.subscription_id or subscription).lower(), (self.location or location).lower()
        return wanted == (subscription, location)

    def group(self, place: tuple[str, str], environment: str, labels: Mapping[str, str]) -> str | None:
        """Return with which clusters a cluster shares it, "" for all that it names; None for not at all."""
        if not self.fits(*place) or (self.environment is not None and self.environment != environment):
            return None
        if any(labels.get(key) != value for key, value in self.labels.items()):
            return None
        return labels.get(self.per_label) if self.per_label is not None else ""

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if all(limit is None for limit in (self.clusters, self.nodes, self.cores, self.list_price)):
            raise ValueError("needs a limit: clusters, nodes, cores or listPrice")
        return self


def differ(quotas: Sequence[ClusterQuota]) -> None:
    """Raise ValueError where two quotas are about the same."""
    places = [
        (
            *((quota.subscription_id or "").lower(), (quota.location or "").lower()),
            *(quota.environment or "", quota.per_label or "", *sorted(quota.labels.items())),
            quota.of_azure,
        )
        for quota in quotas
    ]
    if twice(places) is not None:
        raise ValueError("clusterQuotas has two quotas for the same clusters; keep one")


# Who is notified of which events. An address can be a secret, so git has only the name of its setting.

SettingName = Annotated[
    StrictStr,
    rule(
        r"[A-Z][A-Z0-9_]{0,127}",
        "the name of the setting with the address, such as TEAMS_WEBHOOK_URL; an address can be a secret and "
        "does not belong in git",
    ),
]


class RouteSpec(Manifest):
    """A route of notifications, and which facts it gets."""

    name: ObjectName
    """The route's name."""
    type: RouteType
    """The kind of route; ``issues`` writes issues of the fleet repository."""
    address: SettingName = ""
    """The name of the address, which can be a secret: the app setting ``NOTIFY_<address>`` has it. Every type
    but ``issues`` needs one."""
    severity: Severity = Severity.WARNING
    """The least severity of what is sent, unless ``events`` says what is."""
    events: Annotated[tuple[NotificationKind, ...], Field(min_length=1)] = ()
    """The kinds of notifications that are sent, whatever their severity; by default all of the severity."""
    environments: tuple[ObjectName, ...] = ()
    """The environments whose clusters count, and nothing of the fleet as a whole; by default all."""
    labels: Labels = Field(default_factory=dict)
    """The labels that a cluster must have in metadata.labels to count; by default none."""

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        if self.type == "issues" and self.address:
            raise ValueError("a route of this type writes issues of the fleet repository; remove address")
        if self.type != "issues" and not self.address:
            raise ValueError(f"{self.type} needs address: the name of the setting with the address")
        return self


# When Roadstead proposes by itself that an environment gets what is proven in the one before.

Promoted = Literal["version", "images", "components", "platform"]


class PromotionRule(Manifest):
    """A pull request that Roadstead opens by itself."""

    from_: Annotated[ObjectName, Field(alias="from")]
    """The environment in which something is proven: all of its clusters are Ready with the same value."""
    to: ObjectName
    """The environment that is to get it, which comes later in ``environments``."""
    what: Annotated[tuple[Promoted, ...], Field(min_length=1)] = (
        "version",
        "images",
        "components",
        "platform",
    )
    """What is promoted: ``version`` is ``kubernetesVersion``, ``images`` ``minNodeImageVersion``,
    ``components`` the Flux to install, and ``platform`` the tag or the commit that Flux pulls."""
    soak: Soak = "24h"
    """How long every cluster of ``from`` must have been Ready."""


def check_rules(rules: tuple[PromotionRule, ...], environments: tuple[str, ...]) -> None:
    """Raise ValueError unless each rule goes forward between environments, and each target has one rule."""
    for promotion in rules:
        unknown = next((name for name in (promotion.from_, promotion.to) if name not in environments), None)
        if unknown is not None:
            raise ValueError(f"promotions: {unknown} is not in environments; add it there, or name another")
        if environments.index(promotion.from_) >= environments.index(promotion.to):
            raise ValueError(f"promotions: {promotion.to} must come after {promotion.from_} in environments")
    target = twice(promotion.to for promotion in rules)
    if target is not None:
        raise ValueError(f"promotions: {target} has several rules; it has one pull request")


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
