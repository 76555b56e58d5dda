"""All faults, by name. A new fault needs a function and a line in the table of its topic."""

from __future__ import annotations

from collections.abc import Mapping

from simulation.actors.kinds import (
    CHANNELS,
    CHECKS,
    IDENTITY_ACCESS,
    PLATFORM,
    PROMOTIONS,
    PULL_REQUESTS,
    REBUILDS,
    REPLACEMENTS,
    ROLLBACKS,
    ROLLOUTS,
    ROUTES,
    SECOND_APP,
    SECRETS,
    SYSTEMS,
    TEAM_REVIEWS,
    VERSIONS,
)
from simulation.faults import calls, disasters, instances, services
from simulation.faults.calls import CallFault

FAULTS: Mapping[str, CallFault] = {**calls.FAULTS, **services.FAULTS}
"""Those of calls."""
KINDS = (*FAULTS, *instances.FAULTS, *disasters.FAULTS)
"""Those of calls, of instances and of whole tables."""
WITHOUT_SYSTEMS = frozenset({SECOND_APP, CHECKS, PULL_REQUESTS, ROLLOUTS, TEAM_REVIEWS})
"""With these no systems are changed: a pull request removes a cluster and not its name in a system, a check
reports the object with which a team tries to leave, and a rollout delays what a rule expects."""
WITHOUT_GRANTS = frozenset({SECOND_APP, ROLLOUTS})
"""With these nothing is granted to identities, and no secrets change: the rules know one app, and a rollout
delays what they expect."""
WITHOUT_REBUILDS = frozenset({PULL_REQUESTS, SECRETS, TEAM_REVIEWS})
"""With these nobody asks for a rebuild: a review or a pull request removes clusters for good, and a cluster
that goes takes its secrets along."""
WITHOUT_REPLACEMENTS = frozenset({PULL_REQUESTS, SECOND_APP, TEAM_REVIEWS})
"""With these nobody replaces a cluster by another one: a review or a pull request removes clusters for good,
and the rules of two apps know clusters by their names."""
WITHOUT_CHANNELS = frozenset({PROMOTIONS, ROLLBACKS, SECOND_APP})
"""With these no environment follows a channel: promotions have environments and a rollback has versions of
their own, and the rules know one app."""
WITH_ONE_APP = frozenset({PROMOTIONS, ROLLBACKS, ROLLOUTS, ROUTES, SECRETS, VERSIONS})
"""What has rules or a state of one app."""
WITHOUT_PLATFORM = frozenset({CHECKS})
"""With these nobody changes the platform: people delete a Kustomization, with all that it has applied."""


def compatible(kinds: frozenset[str]) -> frozenset[str]:
    """Return these kinds of faults and actors without those that a rule of another one excludes."""
    kinds = kinds - {SYSTEMS} if kinds & WITHOUT_SYSTEMS else kinds
    kinds = kinds - {IDENTITY_ACCESS, SECRETS} if kinds & WITHOUT_GRANTS else kinds
    kinds = kinds - {REBUILDS} if kinds & WITHOUT_REBUILDS else kinds
    kinds = kinds - {REPLACEMENTS} if kinds & WITHOUT_REPLACEMENTS else kinds
    kinds = kinds - {PLATFORM} if kinds & WITHOUT_PLATFORM else kinds
    kinds = kinds - WITH_ONE_APP if SECOND_APP in kinds else kinds
    kinds = kinds - {CHANNELS} if kinds & WITHOUT_CHANNELS else kinds
    return kinds - disasters.FAULTS.keys() if kinds & {SECOND_APP, ROUTES, VERSIONS} else kinds
