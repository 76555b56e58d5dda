"""``roadstead promote``: what it asks for, and what it shows of promotions."""

from __future__ import annotations

import json

import pytest
import yaml

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.promotions import RULE, change, files, fleet_with, merge, pulls
from tests.support.roadstead_command import on_terminal, plain, roadstead

pytestmark = pytest.mark.lives

FORMATS = ("json", "yaml", "name")


@pytest.fixture
def cloud() -> MemoryCloud:
    return fleet_with(files())


def test_a_promotion_is_asked_for_and_shown(url: str, cloud: MemoryCloud) -> None:
    empty = roadstead("promote", ROADSTEAD_URL=url)
    assert empty.stdout == "nothing was promoted yet, and fleet.yaml has no promotions\n"
    change(cloud, files(test="1.36"))
    asked = roadstead("promote", "development", "production", "--reason", "tested", ROADSTEAD_URL=url)
    assert asked.stdout == (
        "development to production: a pull request for 2 clusters is queued\n"
        "  kubernetesVersion: 1.36\n"
        "roadstead promote shows its address\n"
    ), asked.stderr
    cloud.run()
    (pull,) = pulls(cloud)
    shown = roadstead("promote", ROADSTEAD_URL=url)
    assert shown.stdout.startswith("development to production, when somebody asks\n  open  https://")
    assert "kubernetesVersion: 1.36" in shown.stdout
    merge(cloud, pull.number)
    refused = roadstead("promote", "development", "production", "--what", "version", ROADSTEAD_URL=url)
    assert "version: production has 1.36 already" in refused.stderr


def test_a_promotion_that_is_asked_for_has_the_formats_too(url: str, cloud: MemoryCloud) -> None:
    change(cloud, files(test="1.36"))
    asked = [roadstead("promote", "development", "production", "-o", o, ROADSTEAD_URL=url) for o in FORMATS]
    assert json.loads(asked[0].stdout)["values"] == [{"field": "kubernetesVersion", "value": "1.36"}]
    assert yaml.safe_load(asked[1].stdout) == json.loads(asked[0].stdout)
    assert asked[2].stdout == "environment/production\n"


def test_what_a_rule_waits_for_and_what_it_never_gives_is_shown(url: str, cloud: MemoryCloud) -> None:
    change(cloud, files(test="1.36", extra=RULE))
    merge(cloud, pulls(cloud)[0].number)
    change(cloud, files(test="1.36", extra=RULE))
    shown = plain(on_terminal("promote", ROADSTEAD_URL=url)[1])
    assert "development to production, by a rule" in shown
    assert "kubernetesVersion: 1.36  on hold: a commit took it back;" in " ".join(shown.split("\n"))
    assert max(len(line) for line in shown.splitlines()) <= 80
    names = roadstead("promote", "-o", "name", ROADSTEAD_URL=url)
    assert names.stdout == "environment/production\n"


def test_one_environment_alone_is_a_mistake(url: str) -> None:
    assert "give two environments" in roadstead("promote", "development", ROADSTEAD_URL=url).stderr
