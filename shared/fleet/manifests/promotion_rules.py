"""When Roadstead proposes by itself that an environment gets what is proven in the one before."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shared.fleet.manifests.base import Manifest, ObjectName
from shared.fleet.manifests.rollout import Soak

Promoted = Literal["version", "components", "platform"]


class PromotionRule(Manifest):
    """A pull request that Roadstead opens by itself."""

    from_: Annotated[ObjectName, Field(alias="from")]
    """The environment in which something is proven: all of its clusters are Ready with the same value."""
    to: ObjectName
    """The environment that is to get it, which comes later in ``environments``."""
    what: Annotated[tuple[Promoted, ...], Field(min_length=1)] = ("version", "components", "platform")
    """What is promoted: ``version`` is ``kubernetesVersion``, ``components`` the Flux to install, and
    ``platform`` the tag or the commit that Flux pulls."""
    soak: Soak = "24h"
    """How long every cluster of ``from`` must have been Ready."""


def check_rules(rules: tuple[PromotionRule, ...], environments: tuple[str, ...]) -> None:
    """Raise ValueError unless each rule goes forward between environments, and each target has one rule."""
    for rule in rules:
        unknown = next((name for name in (rule.from_, rule.to) if name not in environments), None)
        if unknown is not None:
            raise ValueError(f"promotions: {unknown} is not in environments; add it there, or name another")
        if environments.index(rule.from_) >= environments.index(rule.to):
            raise ValueError(f"promotions: {rule.to} must come after {rule.from_} in environments")
    targets = [rule.to for rule in rules]
    twice = next((name for name in targets if targets.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"promotions: {twice} has several rules; it has one pull request")
