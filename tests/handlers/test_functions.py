"""The functions as the Functions host sees them: bindings, and HTTP replies."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import azure.functions as func
import pytest
from azure.functions.decorators.core import Trigger
from azure.functions.meta import Datum
from azure.functions.servicebus import ServiceBusMessageInConverter

from handlers import dead_letters
from localcloud.memory.memory_cloud import MemoryCloud
from shared.configuration.settings import CHECK_SCHEDULE, SWEEP_SCHEDULE, GitHostName
from shared.masking import Masker
from shared.ports.masked import masked
from tests.support import fleet_files
from tests.support.function_calls import call, function_app, functions
from tests.support.pipeline_runs import cloud_with, push
from tests.support.webhook_deliveries import COMMIT, payload, sign

pytestmark = pytest.mark.lives


def test_every_parameter_is_a_binding_by_name() -> None:
    all_functions = functions(MemoryCloud().ports)
    assert {"planner", "worker", "previewer"} <= set(all_functions)
    for name, all_function in all_functions.items():
        bindings = {binding.name for binding in all_function.get_bindings() if isinstance(binding, Trigger)}
        assert set(inspect.signature(all_function.get_user_function()).parameters) == bindings, name


def test_the_queues_have_sessions_and_the_schedules_are_settings() -> None:
    triggers = {
        name: function.get_trigger().get_dict_repr()
        for name, function in functions(MemoryCloud().ports).items()
    }
    assert triggers["planner"]["queueName"] == "plans"
    assert triggers["worker"]["queueName"] == "jobs"
    assert triggers["changer"]["queueName"] == "changes"
    assert triggers["deleter"]["queueName"] == "deletes"
    with_sessions = ("planner", "previewer", "worker", "changer", "deleter")
    assert all(triggers[name]["isSessionsEnabled"] for name in with_sessions)
    assert triggers["previewer"]["queueName"] == "previews"
    assert triggers["dead_previews"]["queueName"] == "previews/$deadletterqueue"
    assert triggers["dead_plans"]["queueName"] == "plans/$deadletterqueue"
    assert triggers["dead_jobs"]["queueName"] == "jobs/$deadletterqueue"
    assert triggers["dead_changes"]["queueName"] == "changes/$deadletterqueue"
    assert triggers["dead_deletes"]["queueName"] == "deletes/$deadletterqueue"
    assert triggers["azure_events"]["queueName"] == "events"
    assert triggers["dead_events"]["queueName"] == "events/$deadletterqueue"
    assert not triggers["azure_events"].get("isSessionsEnabled")
    queues = [trigger for trigger in triggers.values() if trigger["type"] == "serviceBusTrigger"]
    assert [trigger["dataType"] for trigger in queues] == [func.DataType.BINARY] * 12, (
        "bytes, as they were sent"
    )
    assert triggers["plan_missed_head"]["schedule"] == "%PLAN_SCHEDULE%"
    assert triggers["purge_expired"]["schedule"] == "%RETENTION_SCHEDULE%"
    assert triggers["resend_overdue"]["schedule"] == "%RESEND_SCHEDULE%"
    assert triggers["sweep"]["schedule"] == SWEEP_SCHEDULE, "also where an older deployment has no setting"
    assert triggers["check"]["schedule"] == CHECK_SCHEDULE


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"{}", b'{"schema_version": 99}'])
@pytest.mark.parametrize("name", ["dead_jobs", "dead_changes", "dead_plans", "dead_deletes", "dead_previews"])
def test_any_dead_letter_is_handled_without_an_error(name: str, body: bytes) -> None:
    cloud = MemoryCloud()
    metadata = {"SequenceNumber": Datum("7", "json")}
    message = ServiceBusMessageInConverter.decode_single_message(
        Datum(body, "bytes"), trigger_metadata=metadata
    )
    functions(cloud.ports)[name].get_user_function()(message)
    assert cloud.state.count_dead_letters() + bool(cloud.state.fleet().problem) == 1


def test_a_dead_letter_is_saved_without_secrets_even_in_its_id() -> None:
    cloud, app = MemoryCloud(), func.FunctionApp()
    app.register_functions(
        dead_letters.blueprint(masked(cloud.ports, Masker(["a-long-secret-of-ours"])), "jobs")
    )
    trigger = next(
        function for function in app.get_functions() if function.get_function_name() == "dead_jobs"
    )
    reason = {
        "DeadLetterReason": "is a-long-secret-of-ours",
        "DeadLetterErrorDescription": "as a-long-secret-of-ours",
    }
    metadata = {
        "MessageId": Datum("is a-long-secret-of-ours", "string"),
        "ApplicationProperties": Datum(json.dumps(reason), "json"),
    }
    body = Datum(b"{a-long-secret-of-ours", "bytes")
    message = ServiceBusMessageInConverter.decode_single_message(body, trigger_metadata=metadata)
    trigger.get_user_function()(message)
    (letter,) = cloud.state.dead_letters(5)
    assert (letter.id, letter.body) == ("0:is ***", "{***")
    assert (letter.reason, letter.description) == ("is ***", "as ***")
    assert "a-long-secret-of-ours" not in repr(letter)


def test_a_signed_push_is_answered_with_a_receipt() -> None:
    headers = {"x-hub-signature-256": sign(payload()), "x-github-event": "push", "x-github-delivery": "d1"}
    request = func.HttpRequest("POST", "/api/github", body=payload(), headers=headers)
    cloud = MemoryCloud()
    reply = functions(cloud.ports)["github"].get_user_function()(request)
    assert (reply.status_code, json.loads(reply.get_body())) == (
        202,
        {"queued": "plan", "commit": COMMIT, "delivery": "d1"},
    )


def test_the_fleet_shows_every_cluster_with_its_wait() -> None:
    cloud = MemoryCloud()
    commit = push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(until=lambda: any(record.job.reason for record in cloud.state.clusters()))
    status, body = call(cloud.ports, "clusters")
    assert (status, body["fleet"], body["commit"]) == (200, "example", commit)
    waiting = next(cluster for cluster in body["clusters"] if cluster["reason"])
    assert (waiting["phase"], waiting["step"]) == ("Provisioning", "cluster")
    assert waiting["reason"] == "Azure is creating the cluster"
    assert waiting["nextCheckAt"] > waiting["since"]
    assert (waiting["generation"], waiting["observedGeneration"]) == (1, 0)


def test_a_cluster_shows_its_conditions_and_events_even_after_its_deletion() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    status, body = call(cloud.ports, "cluster", name="one")
    assert (status, body["phase"]) == (200, "Ready")
    assert {c["type"]: c["status"] for c in body["conditions"]}["Ready"] == "True"
    assert body["events"][0]["reason"] == "Ready"
    push(cloud, fleet_files.fleet())
    cloud.run()
    status, body = call(cloud.ports, "cluster", name="one")
    assert (status, body["phase"], body["events"][0]["reason"]) == (200, "Deleted", "Deleted")


def test_an_unknown_resource_is_404_with_a_message() -> None:
    ports = MemoryCloud().ports
    assert call(ports, "cluster", name="nope") == (
        404,
        {"error": "there is no cluster nope in the fleet example"},
    )
    status, body = call(ports, "plan", commit="abc")
    assert (status, body["error"][:24]) == (404, "the commit abc was not p")


def test_a_plan_shows_its_changes_and_progress() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    files = fleet_files.fleet("one")
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=3)
    commit = push(cloud, files)
    cloud.run()
    status, body = call(cloud.ports, "plan", commit=commit)
    assert (status, body["summary"], body["progress"]["ready"]) == (200, "1 update", 1)
    change = {
        "path": "spec.nodePools[system].count",
        "old": "1",
        "new": "3",
        "effect": "in place",
        "destroys": False,
        "source": "clusters/one/cluster.yaml:10",
    }
    assert body["items"][0]["changes"] == [change]
    assert body["status"] == "success: 1 of 1 clusters in sync (1 update)"


@pytest.mark.parametrize("name", ["planner", "worker", "deleter"])
@pytest.mark.parametrize("body", [b"", b"{}x", b'{"schema_version": 0}', b"[]", b'{"surprise": 1}'])
def test_an_unreadable_message_raises_and_stays_in_the_queue(name: str, body: bytes) -> None:
    handle: Callable[[Any], None] = functions(MemoryCloud().ports)[name].get_user_function()
    with pytest.raises(ValueError, match=r"validation error|schema_version is missing"):
        handle(func.ServiceBusMessage(body=body))


def test_the_api_calls_only_the_state() -> None:
    nothing: Any = None
    ports = replace(MemoryCloud().ports, git_host=nothing, azure=nothing, kubernetes=nothing)
    assert call(ports, "clusters")[0] == 200


@pytest.mark.parametrize("git_host", get_args(GitHostName))
def test_the_app_has_the_webhook_of_the_host_that_its_settings_name(git_host: str) -> None:
    route = {"github": "api/github", "git": ""}.get(git_host, "api/webhook")
    app = function_app(MemoryCloud().ports, git_host=git_host)
    made = [found for found in app.get_functions() if found.get_function_name() in ("github", "webhook")]
    webhooks = [json.loads(found.get_function_json())["bindings"][0]["route"] for found in made]
    assert webhooks == ([route] if route else [])
