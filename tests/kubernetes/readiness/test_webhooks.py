"""Which webhooks refuse what an upgrade writes while nobody answers for them."""

from __future__ import annotations

from typing import Any

import pytest

from shared.json_tree import Json
from shared.kubernetes.readiness.webhooks import Service, node_webhooks, ready_endpoints, unanswered
from tests.support.upgrade_blockers import webhook

GUARD = Service("guard", "guard")


def on(configuration: Json) -> list[str]:
    return [name for found in node_webhooks([configuration]) for name in found.on]


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({}, ["pods"]),
        ({"resources": ["*"]}, ["nodes", "pods"]),
        ({"resources": ["pods/*"]}, ["pods", "pods/binding", "pods/eviction"]),
        ({"resources": ["pods/eviction"]}, ["pods/eviction"]),
        ({"resources": ["nodes"], "operations": ["*"]}, ["nodes"]),
        ({"resources": ["*/status"], "operations": ["UPDATE"]}, ["nodes/status", "pods/status"]),
        ({"operations": ["UPDATE"]}, []),
        ({"resources": ["deployments"], "apiGroups": ["apps"]}, []),
        ({"apiGroups": ["apps"]}, []),
        ({"scope": "Cluster"}, []),
        ({"scope": "Namespaced"}, ["pods"]),
        ({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CONNECT"]}, []),
    ],
)
def test_a_webhook_counts_for_what_an_upgrade_writes(rule: Json, found: list[str]) -> None:
    assert sorted(on(webhook(rule=rule))) == found


@pytest.mark.parametrize(
    "fields", [{"failurePolicy": "Ignore"}, {"clientConfig": {"url": "https://guard.example"}}]
)
def test_one_that_lets_pass_or_is_elsewhere_is_left_out(fields: dict[str, Any]) -> None:
    assert on(webhook(**fields)) == []


def test_a_webhook_refuses_by_default() -> None:
    written = webhook()
    del written["webhooks"][0]["failurePolicy"]
    assert on(written) == ["pods"]


def test_an_endpoint_is_ready_unless_it_says_otherwise() -> None:
    slices: list[Json] = [
        {"endpoints": [{"conditions": {"ready": True}}, {"conditions": {"ready": False}}]},
        {"endpoints": [{}, {"conditions": {}}]},
        {"endpoints": None},
    ]
    assert ready_endpoints(slices) == 3


def test_a_webhook_whose_endpoints_are_unknown_is_not_called_unanswered() -> None:
    found = list(node_webhooks([webhook()]))
    assert list(unanswered(found, {GUARD: 0})) == found
    assert list(unanswered(found, {GUARD: 1})) == []
    assert list(unanswered(found, {})) == []
