"""Quotas, limits, priorities, webhooks, policies and definitions are those that the API server takes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.platform.judged_objects import OBJECTS, priority
from tests.support.built_platforms import NAMESPACE, Platform


@pytest.mark.parametrize(("given", "problem"), OBJECTS)
def test_what_governs_a_cluster_is_what_the_api_server_takes(given: dict[str, Any], problem: str) -> None:
    found = Platform(NAMESPACE, yaml.safe_dump(given)).problems
    assert [problem in text for text in found] == ([True] if problem else [])


def test_one_priority_is_the_default() -> None:
    both = [priority(number, name, globalDefault=True) for number, name in enumerate(("low", "high"))]
    (problem,) = Platform(*map(yaml.safe_dump, both)).problems
    assert "PriorityClass low and PriorityClass high are the default of all pods" in problem
    both[0]["globalDefault"] = False
    assert Platform(*map(yaml.safe_dump, both)).problems == []
