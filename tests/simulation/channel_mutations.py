"""Mutations of channels: what no list has, what nobody wants again, without a merge, or not at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import ANY

import pytest

from localcloud.azure.world.catalog import OFFERED, support_plans
from shared import promotions
from shared.app.planner import carry_out
from shared.app.proposals import channels, evaluation
from shared.app.proposals.evaluation import give, held_by
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import OwnBranch
from shared.azure.availability import channels as offered
from shared.azure.availability.channels import Known
from shared.ports import Ports
from shared.ports.state import Promotion
from shared.promotions import HoldReason
from simulation.actors.kinds import CHANNELS
from simulation.channel_values import CHANNEL as RULE
from simulation.invariants.proposed_promotions import MAIN
from simulation.invariants.proposed_promotions import RULE as PROMOTION
from tests.simulation.mutations import mutation


def a_channel_needs_no_pull_request(patch: pytest.MonkeyPatch) -> None:
    def merge(own: Promotion, pull: Any, found: Any, text: Any, head: Head) -> Promotion:
        given, ports = give(own, pull, found, text, head), head.ports
        ports.git_host.move_branch(ports.config.branch, head.commit, given.commits[-1])
        return given

    patch.setattr(channels, "give", merge)


def a_version_that_no_region_lists_is_proposed(patch: pytest.MonkeyPatch) -> None:
    everything = {version: frozenset(support_plans(version)) for version in OFFERED}
    patch.setattr(channels, "versions_in", lambda places, _: dict.fromkeys(places, everything))


def a_channel_gives_every_environment_its_version(patch: pytest.MonkeyPatch) -> None:
    of = promotions.channels_of
    patch.setattr(carry_out, "channels_of", lambda environments, _: of(environments, ()))


def _unheld(patch: pytest.MonkeyPatch, reason: HoldReason) -> None:
    def held(*args: Any) -> HoldReason | None:
        found = held_by(*args)
        return None if found is reason else found

    patch.setattr(channels, "held_by", held)


def a_channel_gives_what_a_commit_took_back(patch: pytest.MonkeyPatch) -> None:
    _unheld(patch, HoldReason.WITHDRAWN)


def a_channel_gives_what_somebody_declined(patch: pytest.MonkeyPatch) -> None:
    _unheld(patch, HoldReason.DECLINED)


def an_offered_version_is_never_proposed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(channels, "following", lambda *_: None)


def an_offered_image_is_never_proposed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(channels, "following_image", lambda *_: None)


def a_pull_request_of_a_channel_stays_at_the_first_version(patch: pytest.MonkeyPatch) -> None:
    def once(own: Promotion, pull: Any, *args: Any) -> Promotion:
        return own if pull is not None and pull.open else give(own, pull, *args)

    patch.setattr(channels, "give", once)


def a_branch_stays_at_what_git_had(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OwnBranch, "has", lambda *_: True)


def a_minor_is_left_when_it_has_ended(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(offered, "EARLY", timedelta())


def nothing_is_proposed_while_nobody_says_what_it_fixes(patch: pytest.MonkeyPatch) -> None:
    original = channels._active

    def active(release: str, ports: Ports) -> Known:
        ports.services.vulnerabilities.active(release)
        return original(release, ports)

    patch.setattr(channels, "_active", active)


def a_version_of_a_clusters_own_file_is_promoted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(evaluation, "present_value", lambda *_: ANY)


CHANNEL_MUTATIONS = (
    mutation(a_channel_needs_no_pull_request, CHANNELS, MAIN),
    mutation(a_version_that_no_region_lists_is_proposed, CHANNELS, RULE),
    mutation(a_channel_gives_every_environment_its_version, CHANNELS, RULE),
    mutation(a_channel_gives_what_a_commit_took_back, CHANNELS, RULE),
    mutation(a_channel_gives_what_somebody_declined, CHANNELS, RULE),
    mutation(an_offered_version_is_never_proposed, CHANNELS, RULE),
    mutation(an_offered_image_is_never_proposed, CHANNELS, RULE),
    mutation(a_pull_request_of_a_channel_stays_at_the_first_version, CHANNELS, RULE),
    mutation(a_branch_stays_at_what_git_had, CHANNELS, RULE),
    mutation(a_minor_is_left_when_it_has_ended, CHANNELS, RULE),
    mutation(nothing_is_proposed_while_nobody_says_what_it_fixes, CHANNELS, RULE),
    mutation(a_version_of_a_clusters_own_file_is_promoted, CHANNELS, PROMOTION, RULE),
)
