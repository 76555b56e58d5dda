"""The OpenAPI document: it has every route for which a role is needed, and each answer is as it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from handlers.acts import ACTS
from handlers.routes import who_may_call
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.access import Role
from tests.support import fleet_files
from tests.support.checks import check
from tests.support.function_calls import call, functions
from tests.support.one_cluster import ONE
from tests.support.one_cluster import ready as ready_one
from tests.support.pipeline_runs import failed, push, ready
from tests.support.staged_fleets import ready_fleet, staged, tags
from tests.support.sweeps import sweep, tag_by_hand

IN_NO_DOCUMENT = {"console", "openapi"}


def document(cloud: MemoryCloud) -> Any:
    status, found = call(cloud.ports, "openapi")
    assert status == 200
    return found


def operations(found: Any) -> dict[str, Any]:
    return {
        operation["operationId"]: operation for path in found["paths"].values() for operation in path.values()
    }


def test_the_document_has_every_route_that_needs_a_role() -> None:
    cloud = MemoryCloud()
    found = functions(cloud.ports)
    with_role = {name for name, made in found.items() if who_may_call(made.get_user_function()) in set(Role)}
    assert operations(document(cloud)).keys() == with_role - IN_NO_DOCUMENT


def test_the_document_has_what_each_act_takes_and_answers() -> None:
    found = operations(document(MemoryCloud()))
    for entry in ACTS:
        operation = found[entry.name]
        answer = operation["responses"]["2XX"]["content"]["application/json"]["schema"]
        assert answer == {"$ref": f"#/components/schemas/{entry.answer.__name__}"}
        fields = {field.alias or name for name, field in entry.body.model_fields.items()}
        if entry.method == "POST":
            taken = operation["requestBody"]["content"]["application/json"]["schema"]["properties"]
            assert taken.keys() == fields
        else:
            assert {parameter["name"] for parameter in operation["parameters"]} == fields


def test_every_part_of_the_document_that_is_named_is_in_it() -> None:
    found = document(MemoryCloud())
    named = set()

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            named.update([part["$ref"]] if isinstance(part.get("$ref"), str) else [])
            for inner in part.values():
                walk(inner)
        elif isinstance(part, list):
            for inner in part:
                walk(inner)

    walk(found)
    assert named
    assert {name.removeprefix("#/components/schemas/") for name in named} <= found["components"][
        "schemas"
    ].keys()


def drifted() -> MemoryCloud:
    cloud = ready_one("  tags: {cost: a}\n")
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    check(cloud)
    return cloud


def rolling() -> MemoryCloud:
    cloud = ready_fleet()
    push(cloud, staged(extra=tags("new")))
    cloud.run(seconds=60)
    return cloud


def removed() -> MemoryCloud:
    cloud = ready("one", "two")
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    return cloud


@pytest.mark.lives
@pytest.mark.parametrize("fleet", [drifted, rolling, removed, lambda: failed()[0], MemoryCloud])
def test_each_answer_has_the_form_of_the_document(fleet: Callable[[], MemoryCloud]) -> None:
    cloud = fleet()
    found, answered = document(cloud), 0
    names = sorted({record.name for record in cloud.state.clusters()} | {"one", "two"})
    for path, methods in found["paths"].items():
        operation = methods.get("get")
        if operation is None:
            continue
        for name in names if "{name}" in path else names[:1]:
            query = {"clusters": name, "resource": ONE.resource}
            query |= {"environment": "production"} if path == "/api/log" else {}
            route = {"name": name, "commit": cloud.state.fleet().commit, "number": "1"}
            status, answer = call(cloud.ports, operation["operationId"], query=query, **route)
            said = "2XX" if status in (200, 503) and "error" not in answer else "default"
            form = operation["responses"][said]["content"]["application/json"]["schema"]
            jsonschema.validate(answer, {**form, "components": found["components"]})
            answered += said == "2XX"
    assert answered >= 10
