"""Whatever an API server answers, a call has a result or an error of ours, and every list ends."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from localcloud.common.certificates import Authority
from localcloud.common.clock import ManualClock
from shared.adapters.kubernetes import KubernetesConnections
from shared.adapters.kubernetes.answers import LONGEST_LINE, samples
from shared.cluster.failures.errors import Blocked, Unavailable
from shared.kubernetes.kubeconfig import Kubeconfig
from shared.ports import KubernetesApi
from shared.reachable_addresses import networks_of
from tests.support.kubernetes_ports import CLUSTER, SETTINGS, config_map
from tests.support.odd_bodies import JSON, refuses_any, takes_any
from tests.support.receivers import Inbox

pytestmark = pytest.mark.lives

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
KINDS = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}
METADATA = {
    **{"name": "settings", "namespace": "default", "uid": "u", "resourceVersion": "1"},
    **{"labels": {"a": "b"}, "annotations": {"a": "b"}, "creationTimestamp": "2026-01-01T12:00:00Z"},
    "ownerReferences": [{"kind": "Node", "name": "n"}],
    "managedFields": [{"manager": "roadstead", "fieldsV1": {"f:data": {}}}],
}
CONDITION = {"type": "Ready", "status": "True", "reason": "Fine", "message": "it is"}
OBJECT = {"metadata": METADATA, "data": {"a": "b"}, "spec": {}, "status": {"conditions": [CONDITION]}}
REFUSAL = {
    "reason": "Forbidden",
    "message": "no",
    "details": {"causes": [{"reason": "DisruptionBudget", "message": "the budget"}]},
}
CALLS: dict[str, tuple[Callable[[KubernetesApi], Any], Any]] = {
    "get": (lambda api: api.get(SETTINGS), OBJECT),
    "list": (lambda api: api.list("v1", "ConfigMap"), {"metadata": {"continue": ""}, "items": [OBJECT]}),
    "page": (
        lambda api: api.page("v1", "ConfigMap", metadata_only=True),
        {"metadata": {"continue": "b"}, "items": [OBJECT]},
    ),
    "metric": (lambda api: api.metric("apiserver_request_total"), {"samples": "none"}),
    "apply": (lambda api: api.apply(config_map({"a": "b"})), OBJECT),
    "create": (lambda api: api.create(config_map({"a": "b"})), OBJECT),
    "replace": (lambda api: api.replace(config_map({"a": "b"})), OBJECT),
    "cordon": (lambda api: api.cordon("node", NOW), OBJECT),
    "evict": (lambda api: api.evict("default", "pod"), {"status": "Success"}),
    "check": (lambda api: api.check(), {"status": {"allowed": True}}),
}


@pytest.fixture
def api(inbox: Inbox, trusted: Authority) -> Iterator[KubernetesApi]:
    opened = KubernetesConnections(
        lambda _: "", aad_token=None, clock=ManualClock(), networks=networks_of("127.0.0.0/8")
    )
    with closing(opened):
        connection = opened.open(CLUSTER, Kubeconfig(inbox.url, trusted.pem, token="a-token"))
        inbox.answers.append((200, JSON, json.dumps(KINDS)))
        inbox.default = (404, JSON, "{}")
        assert connection.get(SETTINGS) is None
        yield connection


@pytest.mark.parametrize("name", CALLS)
def test_a_call_has_a_result_or_an_error_of_ours(name: str, api: KubernetesApi, inbox: Inbox) -> None:
    call, body = CALLS[name]
    inbox.default = (200, JSON, json.dumps(body))
    call(api)
    takes_any(lambda: call(api), inbox, body)


@pytest.mark.parametrize("name", ["get", "evict"])
@pytest.mark.parametrize("status", [403, 422, 429, 500])
def test_a_refusal_is_an_error_of_ours_whatever_it_says(
    name: str, status: int, api: KubernetesApi, inbox: Inbox
) -> None:
    refuses_any(lambda: CALLS[name][0](api), inbox, status, REFUSAL)


def test_a_refusal_by_a_budget_is_known(api: KubernetesApi, inbox: Inbox) -> None:
    inbox.default = (429, JSON, json.dumps(REFUSAL))
    with pytest.raises(Blocked, match="the budget"):
        CALLS["evict"][0](api)


def test_the_kinds_of_a_cluster_may_have_any_form(api: KubernetesApi, inbox: Inbox) -> None:
    refuses_any(lambda: api.list("apps/v1", "Deployment"), inbox, 200, KINDS)


def test_what_is_no_object_is_no_answer_and_the_place_is_named(api: KubernetesApi, inbox: Inbox) -> None:
    for body, place in (("<html>", "metadata"), ('{"metadata": {"name": 5}}', "metadata.name")):
        inbox.default = (200, JSON, body)
        with pytest.raises(Unavailable, match=place):
            api.get(SETTINGS)


def test_a_list_whose_pages_continue_with_each_other_ends(api: KubernetesApi, inbox: Inbox) -> None:
    inbox.answers += [(200, JSON, json.dumps({"metadata": {"continue": page}})) for page in "ab" * 20]
    with pytest.raises(Unavailable, match="that was read"):
        api.list("v1", "ConfigMap")


def test_a_metric_is_found_wherever_the_text_is_divided() -> None:
    text = b'# TYPE a gauge\na{b="1"} 1\nab{b="2"} 1\na{b="\xff"} 1\na{c="3"} 2'
    for size in range(1, len(text)):
        parts = [text[start : start + size] for start in range(0, len(text), size)]
        assert list(samples(parts, "a")) == ['a{b="1"} 1', 'a{b="�"} 1', 'a{c="3"} 2']


def test_of_a_text_without_lines_little_is_stored_and_one_that_does_not_end_is_no_answer() -> None:
    assert list(samples([b"x" * LONGEST_LINE] * 5, "a")) == []
    with pytest.raises(Unavailable, match="do not end"):
        list(samples(itertools.repeat(b"x" * (1 << 20)), "a"))
