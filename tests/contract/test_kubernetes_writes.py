"""Dry runs, replacements and deletes of the Kubernetes port, on the world in memory and on the adapter."""

from __future__ import annotations

import pytest

from localcloud.kubernetes.world.object_store import At, WriteMode
from shared.cluster.failures.errors import Conflict, Dependency, InvalidManifest
from shared.json_tree import Json
from shared.kubernetes.field_ownership import is_held, same, transferred
from tests.support.kubernetes_ports import CONFIG_MAP, SETTINGS, Setting, config_map, widgets

pytestmark = pytest.mark.lives


def live(setting: Setting) -> Json:
    found = setting.api.get(SETTINGS)
    assert found is not None
    return found


def test_a_dry_run_returns_what_an_apply_would_leave_and_changes_nothing(setting: Setting) -> None:
    before = setting.api.apply(config_map({"colour": "blue"}))
    preview = setting.api.apply(config_map({"colour": "red"}), dry_run=True)
    assert preview["data"] == {"colour": "red"}
    assert live(setting) == before


def test_a_dry_run_of_a_new_object_creates_none(setting: Setting) -> None:
    assert setting.api.apply(config_map({"colour": "blue"}), dry_run=True)["data"] == {"colour": "blue"}
    assert setting.api.get(SETTINGS) is None


def test_an_object_is_replaced_as_a_whole(setting: Setting) -> None:
    before = setting.api.apply(config_map({"colour": "blue", "shape": "round"}))
    after = setting.api.replace({**before, "data": {"colour": "red"}})
    assert after == live(setting)
    assert after["data"] == {"colour": "red"}


def test_what_somebody_wrote_since_is_not_replaced_and_not_deleted(setting: Setting) -> None:
    before = setting.api.apply(config_map({"colour": "blue"}))
    setting.api.apply(config_map({"colour": "red"}))
    with pytest.raises(Conflict):
        setting.api.replace({**before, "data": {}})
    with pytest.raises(Conflict):
        setting.api.delete(before)
    assert live(setting)["data"] == {"colour": "red"}


def test_an_object_that_was_read_is_deleted_and_a_missing_one_is_success(setting: Setting) -> None:
    setting.api.apply(config_map({"colour": "blue"}))
    before = live(setting)
    setting.api.delete(before)
    assert setting.api.get(SETTINGS) is None
    setting.api.delete(before)
    with pytest.raises(Dependency):
        setting.api.replace(before)


def test_fields_that_are_transferred_to_us_go_with_our_next_apply(setting: Setting) -> None:
    setting.api.apply(config_map({"mine": "1"}))
    at = At(CONFIG_MAP, "settings", "default")
    setting.world.apply(at, {"data": {"theirs": "2"}}, WriteMode(manager="somebody"))
    assert setting.api.apply(config_map({"mine": "1"}))["data"] == {"mine": "1", "theirs": "2"}
    ours = transferred(live(setting), entirely=True)
    assert ours is not None
    setting.api.replace(ours)
    assert live(setting)["data"] == {"mine": "1", "theirs": "2"}
    assert setting.api.apply(config_map({"mine": "1"}))["data"] == {"mine": "1"}


@pytest.mark.parametrize(
    ("data", "force", "held"),
    [
        ({"mine": "2"}, True, False),
        ({"mine": "1"}, False, True),
        ({"theirs": "2"}, False, True),
        ({"mine": "3", "theirs": "2"}, True, False),
    ],
)
def test_an_object_shows_whether_another_apply_would_change_it(
    setting: Setting, data: dict[str, str], force: bool, held: bool
) -> None:
    manifest = config_map({"mine": "1"})
    setting.api.apply(manifest)
    assert is_held(manifest, live(setting))
    at = At(CONFIG_MAP, "settings", "default")
    setting.world.apply(at, {"data": data}, WriteMode(manager="somebody", force=force))
    assert is_held(manifest, live(setting)) == held
    assert same(live(setting), setting.api.apply(manifest, dry_run=True)) == held
    (listed,) = setting.api.list("v1", "ConfigMap", namespace="default", fields="metadata.name=settings")
    assert is_held(manifest, listed) == held


def test_what_was_transferred_to_us_is_not_held_before_we_apply(setting: Setting) -> None:
    manifest = config_map({"mine": "1"})
    setting.api.apply(manifest)
    at = At(CONFIG_MAP, "settings", "default")
    setting.world.apply(at, {"data": {"theirs": "2"}}, WriteMode(manager="somebody"))
    ours = transferred(live(setting), entirely=True)
    assert ours is not None
    setting.api.replace(ours)
    assert not is_held(manifest, live(setting))
    setting.api.apply(manifest)
    assert is_held(manifest, live(setting))


def test_an_unknown_field_is_an_invalid_manifest_that_names_it(setting: Setting) -> None:
    with pytest.raises(InvalidManifest, match=r"\.dta: field not declared in schema"):
        setting.api.apply({**config_map({}), "dta": {"colour": "blue"}})


def test_the_status_of_a_definition_is_replaced_alone(setting: Setting) -> None:
    setting.api.apply(widgets())
    ref = widgets()

    def found() -> Json:
        one = setting.api.list(
            "apiextensions.k8s.io/v1", ref["kind"], fields="metadata.name=widgets.example.org"
        )
        return one[0]

    setting.until(lambda: bool((found().get("status") or {}).get("storedVersions")))
    setting.wait()
    before = found()
    changed = {**before, "status": {**before["status"], "storedVersions": ["v1"]}, "spec": {}}
    assert setting.api.replace(changed, status=True)["spec"] == before["spec"]
