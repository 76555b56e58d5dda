"""Who else acts in a seed, by name: each in a small part of all seeds."""

from __future__ import annotations

import random
from collections.abc import Mapping

PULL_REQUESTS = "pull-requests"
SECOND_APP = "second-installation"
TEAM_REVIEWS = "team-reviews"
SWEEPS = "sweeps"
CHECKS = "checks"
LOST_WEBHOOKS = "lost-webhooks"
ROUTES = "routes"
ROLLOUTS = "rollouts"
SYSTEMS = "systems"
IDENTITY_ACCESS = "identity-access"
SECRETS = "secrets"
REBUILDS = "rebuilds"
REPLACEMENTS = "replacements"
ROLLBACKS = "rollbacks"
PROMOTIONS = "promotions"
PLATFORM = "platform"
AZURE_EVENTS = "azure-events"
PAUSES = "pauses"
VERSIONS = "versions"
SLEEPERS = "sleepers"
LIFETIMES = "lifetimes"
REQUESTS = "requests"
CHANNELS = "channels"

RARE: Mapping[str, float] = {
    PULL_REQUESTS: 0.1,
    SECOND_APP: 0.06,
    TEAM_REVIEWS: 0.08,
    SWEEPS: 0.08,
    CHECKS: 0.08,
    LOST_WEBHOOKS: 0.08,
    ROUTES: 0.08,
    ROLLOUTS: 0.15,
    SYSTEMS: 0.08,
    IDENTITY_ACCESS: 0.08,
    SECRETS: 0.08,
    REBUILDS: 0.08,
    REPLACEMENTS: 0.08,
    ROLLBACKS: 0.08,
    PROMOTIONS: 0.08,
    PLATFORM: 0.15,
    AZURE_EVENTS: 0.12,
    PAUSES: 0.08,
    VERSIONS: 0.08,
    SLEEPERS: 0.08,
    LIFETIMES: 0.08,
    REQUESTS: 0.08,
    CHANNELS: 0.08,
}

WITH_PULL_REQUESTS = frozenset(
    (PULL_REQUESTS, TEAM_REVIEWS, SWEEPS, PROMOTIONS, ROLLBACKS, LIFETIMES, REQUESTS, CHANNELS)
)
"""Who looks at all pull requests of a repository, as if they were all of one fleet."""


def rare_kinds(seed: int) -> frozenset[str]:
    """Return who else acts in a seed; drawn from a stream of its own."""
    chance = random.Random(f"{seed} rare kinds")  # noqa: S311
    return frozenset(kind for kind, part in RARE.items() if chance.random() < part)
