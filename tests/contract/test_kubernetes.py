"""Objects and lists of the Kubernetes port: one suite on the world in memory and on the adapter over TLS."""

from __future__ import annotations

import pytest

from localcloud.kubernetes.world.kinds import NAMESPACE, NODE
from localcloud.kubernetes.world.object_store import At, WriteMode
from shared.cluster.failures.errors import Dependency, InvalidManifest, NamespaceTerminating, Unavailable
from shared.json_tree import Json
from shared.resource_ids import ObjectRef
from tests.support.kubernetes_ports import CONFIG_MAP, NOWHERE, SETTINGS, Setting, config_map, widgets

pytestmark = pytest.mark.lives


def config_maps(setting: Setting, **selectors: str) -> list[Json]:
    """List the ConfigMaps without those of Kubernetes itself."""
    found = setting.api.list("v1", "ConfigMap", **selectors)
    return [document for document in found if document["metadata"]["namespace"] != "kube-system"]


def test_a_cluster_that_runs_passes_the_check(setting: Setting) -> None:
    setting.api.check()


def test_a_cluster_that_does_not_answer_is_unavailable(setting: Setting) -> None:
    with pytest.raises(Unavailable, match="nowhere"):
        setting.port.connect(NOWHERE).check()


def test_what_is_not_there_is_none(setting: Setting) -> None:
    assert setting.api.get(SETTINGS) is None
    assert setting.api.get(ObjectRef("v1", "ConfigMap", "settings", "no-such-namespace")) is None


def test_an_object_of_an_unknown_kind_is_none_and_cannot_be_applied(setting: Setting) -> None:
    gadget = ObjectRef("example.org/v1", "Gadget", "one", "default")
    manifest = {"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {"name": "one"}}
    assert setting.api.get(gadget) is None
    with pytest.raises(Dependency, match="does not serve"):
        setting.api.apply(manifest)


def test_apply_creates_and_get_reads_it_back(setting: Setting) -> None:
    created = setting.api.apply(config_map({"colour": "blue"}))
    found = setting.api.get(SETTINGS)
    assert found == created
    assert created["data"] == {"colour": "blue"}
    assert created["metadata"]["uid"]


def test_an_apply_that_changes_nothing_keeps_the_version(setting: Setting) -> None:
    first = setting.api.apply(config_map({"colour": "blue"}))
    setting.wait()
    assert setting.api.apply(config_map({"colour": "blue"})) == first


def test_a_field_that_is_no_longer_applied_is_removed_and_fields_of_others_stay(setting: Setting) -> None:
    setting.api.apply(config_map({"mine": "1", "also-mine": "2"}))
    at = At(CONFIG_MAP, "settings", "default")
    setting.world.apply(at, {"data": {"theirs": "3"}}, WriteMode(manager="someone"))
    after = setting.api.apply(config_map({"mine": "1"}))
    assert after["data"] == {"mine": "1", "theirs": "3"}


def test_an_apply_takes_over_a_field_of_another_manager(setting: Setting) -> None:
    at = At(CONFIG_MAP, "settings", "default")
    setting.world.apply(at, {"data": {"colour": "red"}}, WriteMode(manager="someone"))
    assert setting.api.apply(config_map({"colour": "blue"}))["data"] == {"colour": "blue"}
    owners = [entry["manager"] for entry in setting.world.get(at)["metadata"]["managedFields"]]
    assert owners == ["roadstead"]


def test_an_apply_into_a_namespace_that_is_missing_waits_for_it(setting: Setting) -> None:
    with pytest.raises(Dependency, match="not found"):
        setting.api.apply(config_map({}, namespace="team"))
    setting.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    setting.api.apply(config_map({}, namespace="team"))


def test_an_apply_into_a_namespace_that_is_being_deleted_is_a_conflict(setting: Setting) -> None:
    setting.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    setting.api.apply(config_map({}, namespace="team", name="held", finalizers=["example.org/hold"]))
    setting.world.delete(At(NAMESPACE, "team"))
    with pytest.raises(NamespaceTerminating, match="the namespace team is being deleted") as refused:
        setting.api.apply(config_map({}, namespace="team"))
    assert refused.value.namespace == "team"


def test_a_kind_is_served_once_its_definition_is_established(setting: Setting) -> None:
    widget = {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"size": 1},
    }
    ref = ObjectRef("example.org/v1", "Widget", "one", "default")
    setting.api.apply(widgets())
    definition = ObjectRef("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.org")

    def established() -> bool:
        status = (setting.api.get(definition) or {}).get("status") or {}
        return any(item["type"] == "Established" for item in status.get("conditions") or ())

    def served() -> bool:  # a moment after the definition is established
        try:
            setting.api.apply(widget)
        except Dependency:
            return False
        return True

    setting.until(established)
    setting.until(served)
    assert setting.api.apply(widget)["metadata"]["generation"] == 1
    assert setting.api.apply({**widget, "spec": {"size": 2}})["metadata"]["generation"] == 2
    found = setting.api.get(ref)
    assert found is not None
    assert found["spec"] == {"size": 2}


def test_an_object_that_the_cluster_refuses_is_an_invalid_manifest(setting: Setting) -> None:
    with pytest.raises(InvalidManifest, match=r"metadata\.name"):
        setting.api.apply(config_map({}, name="Not_A_Name"))


def test_a_refused_secret_shows_nothing_but_the_reason(setting: Setting) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "Not_hunter2", "namespace": "default"},
        "stringData": {"password": "hunter2"},
    }
    with pytest.raises(InvalidManifest) as refused:
        setting.api.apply(secret)
    assert str(refused.value) == "Secret Not_hunter2 in default: Invalid"


def test_a_deployment_becomes_available(setting: Setting) -> None:
    setting.world.create(NODE, "", {"metadata": {"name": "one"}})
    labels = {"app": "web"}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "example.org/web:1"}]},
        },
    }
    metadata = {"name": "web", "namespace": "default"}
    setting.api.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    web = ObjectRef("apps/v1", "Deployment", "web", "default")

    def available() -> bool:
        status = (setting.api.get(web) or {}).get("status") or {}
        return bool(status.get("availableReplicas") == 2 and status["observedGeneration"] == 1)

    setting.until(available)


def test_lists_show_all_namespaces_or_one_and_obey_selectors(setting: Setting) -> None:
    setting.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    setting.api.apply(config_map({}, name="blue", labels={"colour": "blue", "old": "yes"}))
    setting.api.apply(config_map({}, name="sky", labels={"colour": "blue"}))
    setting.api.apply(config_map({}, name="red", namespace="team", labels={"colour": "red"}))

    def names(**selectors: str) -> list[str]:
        return [found["metadata"]["name"] for found in config_maps(setting, **selectors)]

    assert names() == ["blue", "sky", "red"]
    assert names(namespace="team") == ["red"]
    assert names(namespace="nowhere") == []
    assert names(labels="colour=blue") == ["blue", "sky"]
    assert names(labels="colour in (blue, red),!old") == ["sky", "red"]
    assert names(fields="metadata.name=red") == ["red"]
    assert names(namespace="default", fields="metadata.name!=sky") == ["blue"]


def test_what_is_listed_is_what_is_read_one_by_one(setting: Setting) -> None:
    created = setting.api.apply(config_map({"colour": "blue"}))
    assert config_maps(setting) == [created]


def test_an_invalid_selector_is_refused(setting: Setting) -> None:
    with pytest.raises(InvalidManifest, match=r"the list of v1 Pod: invalid (field )?selector"):
        setting.api.list("v1", "Pod", fields="spec.nodeName")


def test_a_list_of_an_unknown_kind_waits_for_it(setting: Setting) -> None:
    with pytest.raises(Dependency, match="does not serve"):
        setting.api.list("example.org/v1", "Gadget")


def test_a_long_list_is_read_to_its_end(setting: Setting) -> None:
    for number in range(1001):
        body = {"metadata": {"name": f"map-{number:04d}"}}
        setting.world.create(CONFIG_MAP, "default", body)
    found = config_maps(setting)
    assert [document["metadata"]["name"] for document in found] == [
        f"map-{number:04d}" for number in range(1001)
    ]


def test_a_page_has_what_a_list_has_and_the_metadata_alone_where_that_suffices(setting: Setting) -> None:
    for name in ("a", "b"):
        setting.api.apply(config_map({"of": name}, name=name, labels={"app": "web"}))
    page = setting.api.page("v1", "ConfigMap", namespace="default", labels="app=web")
    assert [(found["metadata"]["name"], found["data"]) for found in page.objects] == [
        ("a", {"of": "a"}),
        ("b", {"of": "b"}),
    ]
    assert page.after == ""
    bare = setting.api.page("v1", "ConfigMap", namespace="default", labels="app=web", metadata_only=True)
    assert [(found["kind"], "data" in found) for found in bare.objects] == [("ConfigMap", False)] * 2
    assert [found["metadata"]["labels"] for found in bare.objects] == [{"app": "web"}] * 2


def test_pages_follow_each_other_until_the_last_one(setting: Setting) -> None:
    for number in range(501):
        name = f"many-{number:03}"
        setting.world.create(CONFIG_MAP, "default", {"metadata": {"name": name, "labels": {"app": "many"}}})
    first = setting.api.page("v1", "ConfigMap", labels="app=many", metadata_only=True)
    second = setting.api.page("v1", "ConfigMap", labels="app=many", metadata_only=True, after=first.after)
    assert (len(first.objects), bool(first.after), len(second.objects), second.after) == (500, True, 1, "")


def test_a_page_of_an_unknown_kind_is_missing(setting: Setting) -> None:
    with pytest.raises(Dependency, match="does not serve"):
        setting.api.page("example.org/v1", "Gadget")


def test_the_api_server_counts_who_asks_for_a_deprecated_version(setting: Setting) -> None:
    old = widgets("parts", "Part")
    (version,) = old["spec"]["versions"]
    versions = [{**version, "deprecated": True}]
    setting.api.apply({**old, "spec": {**old["spec"], "versions": versions}})

    def counted() -> list[str]:
        try:
            setting.api.list("example.org/v1", "Part")
        except Dependency:
            return []
        lines = setting.api.metric("apiserver_requested_deprecated_apis")
        return [line for line in lines if 'resource="parts"' in line]

    setting.until(lambda: bool(counted()))
    (line,) = counted()
    assert all(label in line for label in ('group="example.org"', 'version="v1"', 'removed_release=""'))


def test_a_metric_without_a_sample_has_no_line(setting: Setting) -> None:
    assert setting.api.metric("no_such_metric") == []
