"""What differs between two inventories, and what does not."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shared.frozen import replace
from shared.platform.changes.comparison import compare, object_differences
from shared.platform.inventory import BuiltObject, Inventory, ObjectId, Owner
from tests.platform.inventories import (
    claim,
    deployment,
    inventory,
    manifest,
    owner,
    owner_id,
    release,
    stateful_set,
)


def test_files_that_move_change_nothing() -> None:
    before = owner("core", deployment("platform/gateway"), claim("platform/data"))
    moved = {name: BuiltObject(built.manifest, "other.yaml") for name, built in before.objects.items()}
    after = Owner(before.id, before.spec, "elsewhere.yaml", dict(reversed(moved.items())))
    assert not compare(inventory(before), inventory(after)).owners


def with_sizes(cpu: str, memory: str) -> dict[str, Any]:
    found = deployment("platform/web")
    container = found["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": cpu, "memory": memory}}
    return found


def secret(**fields: Any) -> dict[str, Any]:
    return manifest("Secret", "platform/web", **fields)


@pytest.mark.parametrize(
    ("old", "new", "differ"),
    [
        (with_sizes("1000m", "1Gi"), with_sizes("1", "1024Mi"), False),
        (with_sizes("1000m", "1Gi"), with_sizes("1", "1000Mi"), True),
        (stateful_set("10Gi"), stateful_set("10240Mi"), False),
        (deployment("platform/web"), deployment("platform/web") | {"status": {}}, False),
        (release("platform/web"), release("platform/web") | {"status": {"a": 1}}, True),
        (secret(stringData={"host": "db"}), secret(data={"host": "ZGI="}), False),
        (secret(stringData={"host": "db"}), secret(data={"host": "ZGIy"}), True),
    ],
)
def test_what_the_api_server_stores_alike_does_not_differ(
    old: dict[str, Any], new: dict[str, Any], differ: bool
) -> None:
    assert bool(object_differences(old, new)) == differ


def test_an_object_that_moves_leaves_one_kustomization_and_comes_to_another() -> None:
    before = inventory(owner("core", claim("platform/data")), owner("edge"))
    after = inventory(owner("core"), owner("edge", claim("platform/data")))
    found = compare(before, after)
    assert [found.owners[owner_id(name)].objects[0].sign for name in ("core", "edge")] == ["-", "+"]


def test_a_kustomization_with_another_name_and_the_same_path_is_renamed() -> None:
    before = inventory(owner("monitoring", claim("monitoring/samples")), owner("other"))
    after = inventory(owner("observability", claim("monitoring/samples"), path="./platform/monitoring/"))
    found = compare(before, after).owners
    assert found[owner_id("monitoring")].renamed == owner_id("observability")
    assert found[owner_id("observability")].renamed == owner_id("monitoring")
    assert found[owner_id("other")].renamed is None


def test_a_kustomization_whose_path_moves_with_its_name_is_known_by_its_objects() -> None:
    before = inventory(owner("monitoring", claim("monitoring/samples")))
    after = inventory(owner("observability", claim("monitoring/samples")))
    assert compare(before, after).owners[owner_id("monitoring")].renamed == owner_id("observability")


def test_each_field_of_a_spec_is_a_difference() -> None:
    before, after = owner("core", force=False), owner("core", force=True, targetNamespace="other")
    found = compare(inventory(before), inventory(after)).owners[owner_id("core")]
    assert [(field.path, field.old, field.new) for field in found.fields] == [
        ("spec.force", "false", "true"),
        ("spec.targetNamespace", "", "other"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            deployment("a/b", "registry.example/app:1"),
            deployment("a/b", "registry.example/app:2"),
            "spec.template.spec.containers[b].image registry.example/app:1 registry.example/app:2",
        ),
        (
            stateful_set("10Gi"),
            stateful_set("20Gi"),
            "spec.volumeClaimTemplates[data].spec.resources.requests.storage 10Gi 20Gi",
        ),
        (
            manifest("Ingress", "a/b", spec={"rules": [{"host": "a"}]}),
            manifest("Ingress", "a/b", spec={"rules": [{"host": "b"}]}),
            "spec.rules[0].host a b",
        ),
        (manifest("X", "a", list=[1, 2]), manifest("X", "a", list=[2, 1]), "list [1, 2] [2, 1]"),
        (manifest("X", "a", value=""), manifest("X", "a"), 'value "" '),
    ],
)
def test_a_difference_names_the_field(old: dict[str, Any], new: dict[str, Any], expected: str) -> None:
    (found,) = object_differences(old, new)
    assert f"{found.path} {found.old} {found.new}" == expected


def test_the_order_of_containers_counts_and_that_of_keys_does_not() -> None:
    one, two = {"name": "one", "image": "a"}, {"name": "two", "image": "b"}
    first, second, third = (
        manifest("Pod", "a/b", spec={"initContainers": given}, other=1)
        for given in ([one, two], [two, one], [dict(reversed(one.items())), two])
    )
    assert object_differences(first, second)
    assert not object_differences(first, dict(reversed(third.items())))


def test_items_with_the_same_name_are_all_compared() -> None:
    old, new = ([{"name": "A", "value": "1"}, {"name": "A", "value": value}] for value in "23")
    assert object_differences(manifest("X", "a", env=old), manifest("X", "a", env=new))


def test_no_value_of_a_secret_is_in_a_difference() -> None:
    note = {"kubectl.kubernetes.io/last-applied-configuration": '{"data": "b2xkLXBhc3N3b3Jk"}'}
    old = manifest("Secret", "a/b", data={"password": "b2xkLXBhc3N3b3Jk"}, type="Opaque")
    new = manifest(
        "Secret", "a/b", stringData={"password": "new-password"}, data={"password": "x", "more": "y"}
    )
    new["metadata"] |= {"annotations": note, "labels": {"team": "one"}}
    found = {field.path: (field.old, field.new) for field in object_differences(old, new)}
    assert found["data.password"] == ("(secret)", "(secret)")
    assert found["data.more"] == ("", "(secret)")
    assert found["metadata.labels"] == ("", '{"team": "one"}')
    assert found["type"] == ("Opaque", "")
    text = str(found)
    assert "b2xkLXBhc3N3b3Jk" not in text
    assert "new-password" not in text


def test_what_is_not_built_differs_with_its_files_and_not_otherwise() -> None:
    one, two = (replace(owner("p", unbuilt="no kustomize"), digest=digest) for digest in ("one", "two"))
    unknown = owner("p", unbuilt="no kustomize")
    assert not compare(inventory(one), inventory(one)).owners
    assert compare(inventory(one), inventory(two)).owners
    assert compare(inventory(unknown), inventory(unknown)).owners
    built = replace(owner("p", claim("a/b")), digest="one")
    assert compare(inventory(built), inventory(two)).owners
    (change,) = compare(inventory(built), inventory(one)).owners.values()  # a variable without value
    assert not change.objects
    assert not compare(inventory(built), inventory(replace(built, file="other.yaml"))).owners


def _value(random_: random.Random, depth: int) -> Any:
    if depth == 0 or random_.random() < 0.3:
        return random_.choice([0, 1, "a", "b", "", None, "10Gi"])
    if random_.random() < 0.5:
        return {key: _value(random_, depth - 1) for key in random_.sample("abcd", random_.randint(0, 3))}
    names = random_.sample("xyz", random_.randint(0, 3))
    if random_.random() < 0.5:
        return [{"name": name, "value": _value(random_, depth - 1)} for name in names]
    return [_value(random_, depth - 1) for _ in names]


def _inventory(random_: random.Random) -> Inventory:
    owners = []
    for name in random_.sample(["one", "two", "three"], random_.randint(0, 3)):
        objects = [
            manifest(kind, f"a/{own}", spec=_value(random_, 3))
            for kind in ("ConfigMap", "Secret")
            for own in random_.sample("pqr", random_.randint(0, 3))
        ]
        owners.append(owner(name, *objects, force=random_.choice([True, False])))
    return inventory(*owners)


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nothing(inner) for key, inner in value.items() if inner is not None}
    return [_without_nothing(inner) for inner in value] if isinstance(value, list) else value


def _contents(given: Inventory) -> dict[ObjectId, tuple[Any, dict[ObjectId, Any]]]:
    return {
        name: (
            known.spec,
            {own: _without_nothing(built.manifest) for own, built in known.objects.items()},
        )
        for name, known in given.owners.items()
    }


def test_before_with_the_changes_is_after() -> None:
    for seed in range(200):
        random_ = random.Random(seed)
        before, after = _inventory(random_), _inventory(random_)
        found = _contents(before)
        for name, change in compare(before, after).owners.items():
            if change.after is None:
                del found[name]
                continue
            objects = dict(found[name][1]) if name in found else {}
            for different in change.objects:
                if different.after is None:
                    del objects[different.id]
                else:
                    objects[different.id] = _without_nothing(different.after.manifest)
            found[name] = (change.after.spec, objects)
        assert found == _contents(after), seed
        assert not compare(before, before).owners, seed
