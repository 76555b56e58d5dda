"""Promotions, as the API shows them."""

from __future__ import annotations

from typing import TypedDict, final


@final
class PromotionValue(TypedDict):
    """A field below ``spec``, with the value that an environment is to get."""

    field: str
    value: str


@final
class PromotionHold(TypedDict):
    """A value that no rule gives to the environment; a person still can."""

    field: str
    value: str
    reason: str


@final
class Promotion(TypedDict):
    """What an environment is to get: by a rule of fleet.yaml, or because somebody asked.

    ``state`` is open, merged, declined or none; ``problem`` is why nothing is proposed, "" for nothing.
    """

    target: str
    source: str
    rule: bool
    state: str
    values: list[PromotionValue]
    pullRequest: str
    by: str
    askedAt: str | None
    problem: str
    holds: list[PromotionHold]


@final
class Promotions(TypedDict):
    """``GET promotions``, by environment."""

    promotions: list[Promotion]


@final
class PromotionReceipt(TypedDict):
    """``POST promotions``: the pull request is queued, with these values for these clusters."""

    queued: str
    source: str
    target: str
    values: list[PromotionValue]
    clusters: list[str]
    by: str
