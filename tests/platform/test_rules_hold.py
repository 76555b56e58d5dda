"""What holds of the rules for all platforms: cycles, places, unseen secrets, the published kinds."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shared.platform.inventory import ObjectId
from shared.platform.rules import findings_of
from shared.platform.schemas.kinds import KindState, KnownKinds
from shared.platform.schemas.published import LIST, MAP, REFERENCE, definition, kinds, minors
from shared.platform.source.places import place_of
from tests.support.built_platforms import Platform
from tests.support.hypothesis_settings import GENERATED

NAMES = "abcde"
graphs = st.dictionaries(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES)), min_size=len(NAMES))


def in_a_cycle(graph: Mapping[str, set[str]], name: str) -> bool:
    seen: set[str] = set()
    front = set(graph[name])
    while front - seen:
        seen |= front
        front = {below for found in front for below in graph[found]}
    return name in seen


@given(graphs)
@GENERATED
def test_a_cycle_is_found_where_there_is_one_and_nowhere_else(graph: Mapping[str, set[str]]) -> None:
    platform = Platform()
    for name, wanted in graph.items():
        platform.kustomize(name, spec={"dependsOn": [{"name": other} for other in sorted(wanted)]})
    found = [text for text in platform.problems if "a cycle of dependsOn" in text]
    assert bool(found) == any(in_a_cycle(graph, name) for name in graph)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=12, max_size=60))
@GENERATED
def test_no_value_of_a_secret_and_no_base64_of_it_is_in_any_message(value: str) -> None:
    coded = base64.b64encode(value.encode()).decode()
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "namespace": "b"},
        "data": {"k": coded, "broken": f"{coded}!"},
        "stringData": {"password": value, "pin": 20261128},
    }
    platform = Platform(yaml.safe_dump(manifest))
    messages = "".join(finding.message for finding in findings_of(platform.platform, platform.read))
    assert coded not in messages
    assert value.strip() not in messages
    assert "20261128" not in messages


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=6, unique=True), st.data())
@GENERATED
def test_a_place_is_the_line_of_its_key(keys: list[str], data: st.DataObject) -> None:
    documents = [
        {"kind": "ConfigMap", "metadata": {"name": name}, "data": dict.fromkeys(keys, "x")} for name in keys
    ]
    content = yaml.safe_dump_all(documents, sort_keys=False).encode()
    name, key = data.draw(st.sampled_from(keys)), data.draw(st.sampled_from(keys))
    mark = place_of(content, "f", ObjectId("", "ConfigMap", "", name), ("data", key))
    lines = content.decode().splitlines()
    assert lines[mark.line - 1][mark.column - 1 :] == f"{key}: x"
    assert [line for line in lines[: mark.line] if line == f"  name: {name}"]


@pytest.mark.parametrize("minor", minors(), ids=lambda minor: ".".join(map(str, minor)))
def test_every_type_of_a_version_is_there(minor: tuple[int, ...]) -> None:
    seen: set[str] = set()
    front = [found.definition for found in kinds().values() if minor in found.versions]
    while front:
        name = front.pop()
        if name in seen:
            continue
        seen.add(name)
        types = [kind.lstrip(LIST + MAP) for kind in definition(name, minor).fields.values()]
        front += [kind.removeprefix(REFERENCE) for kind in types if kind.startswith(REFERENCE)]
    assert len(seen) > 400


def test_a_kind_is_known_to_the_versions_that_serve_it() -> None:
    for api_version, kind in sorted(kinds()):
        manifest = {"apiVersion": api_version, "kind": kind}
        for minor in minors():
            known = KnownKinds.of(".".join(map(str, minor)), ())
            is_served = minor in kinds()[api_version, kind].versions
            assert (known.standing(manifest)[0] is KindState.DEFINED) == is_served, (api_version, kind)
            assert list(known.faults({**manifest, "metadata": {}})) is not None, (api_version, kind)


def test_an_unknown_version_is_the_newest_and_an_old_one_the_oldest() -> None:
    assert KnownKinds.of("", ()).minor == minors()[-1]
    assert KnownKinds.of("1.20", ()).minor == minors()[0]
    assert KnownKinds.of("1.33.2", ()).minor == (1, 33)
