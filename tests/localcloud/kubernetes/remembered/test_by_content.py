"""A rule of the API server works once for the same content of a built-in kind."""

from typing import Any

from localcloud.kubernetes.schema.by_content import MOST, by_content
from localcloud.kubernetes.schema.definitions import NOTHING_KNOWN, Type, definition

NAMESPACE = definition("io.k8s.api.core.v1.Namespace")


def _counted(seen: list[Any]) -> Any:
    @by_content
    def rule(_: Type, value: Any) -> str:
        seen.append(value)
        return str(value)

    return rule


def test_a_rule_works_once_for_the_same_content_of_a_type() -> None:
    seen: list[Any] = []
    rule = _counted(seen)
    found = [rule(kind, {"a": 1}) for kind in (NAMESPACE, NAMESPACE, NOTHING_KNOWN)]
    assert found == ["{'a': 1}"] * 3
    assert seen == [{"a": 1}] * 2


def test_contents_that_python_calls_equal_are_not_the_same() -> None:
    seen: list[Any] = []
    rule = _counted(seen)
    assert [rule(NAMESPACE, {"a": value}) for value in (1, True, 1.0)] == [
        "{'a': 1}",
        "{'a': True}",
        "{'a': 1.0}",
    ]


def test_nothing_of_a_custom_kind_is_stored() -> None:
    seen: list[Any] = []
    rule, custom = _counted(seen), Type({}, custom=True)
    rule(custom, {})
    rule(custom, {})
    assert len(seen) == 2


def test_the_memory_is_bounded() -> None:
    seen: list[Any] = []
    rule = _counted(seen)
    for number in (*range(MOST + 1), 0):
        rule(NAMESPACE, number)
    assert len(seen) == MOST + 2
