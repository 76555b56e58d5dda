"""Bootstrap secrets before Flux: what is applied, and what is left alone."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest

from localcloud.kubernetes.world.object_store import WriteMode
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.errors import Throttled, VaultForbidden, VaultUnavailable
from shared.cluster.record_parts import Phase
from shared.kubernetes.bootstrap_secrets import SECRETS_INVENTORY, VERSIONS
from shared.kubernetes.flux_objects import listed_in
from shared.resource_ids import ObjectRef
from tests.support.bootstrap_secrets import (
    AGE,
    NEXT,
    SOPS,
    VALUE,
    at,
    by_hand,
    hydrated,
    patched,
    value_of,
    with_value,
)
from tests.support.calls_inside import counted
from tests.support.one_cluster import advice, api, files, live, pool, ready, record, world
from tests.support.pipeline_runs import phases, push

pytestmark = pytest.mark.lives

REGISTRY = """\
    - name: registry
      secretName: pull
      namespace: vaulted
      type: kubernetes.io/dockerconfigjson
      vault: platform
      keys: {.dockerconfigjson: "registry-{name}"}
"""
PULL = ObjectRef("v1", "Secret", "pull", "vaulted")
SPACE = ObjectRef("v1", "Namespace", "vaulted")


def test_a_secret_is_there_before_anything_of_flux() -> None:
    cloud = with_value()
    push(cloud, files(AGE))
    with counted(cloud) as calls:
        cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert calls.applied[:3] == ["flux-system", "roadstead-secrets", "sops-age"]
    assert value_of(cloud) == VALUE


@pytest.mark.parametrize(
    ("secrets", "said"), [(AGE, "applied 1 Secret"), (AGE + REGISTRY, "applied 2 Secrets")]
)
def test_the_step_says_how_many_secrets_it_applied(secrets: str, said: str) -> None:
    cloud = with_value()
    cloud.vault.set("registry-one", "{}")
    push(cloud, files(secrets))
    cloud.run()
    applied = record(cloud).condition("SecretsApplied")
    assert applied is not None
    assert applied.message.split("; ")[-1] == said


def test_a_secret_has_the_name_namespace_type_labels_and_keys_of_the_manifest() -> None:
    cloud = with_value()
    cloud.vault.set("registry-one", '{"auths": {}}')
    push(cloud, files(AGE + REGISTRY))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert live(cloud, SOPS)["metadata"]["labels"] == {"team": "platform"}
    assert live(cloud, PULL)["type"] == "kubernetes.io/dockerconfigjson"
    assert value_of(cloud, PULL, ".dockerconfigjson") == '{"auths": {}}'
    assert listed_in(live(cloud, SECRETS_INVENTORY)) == {SOPS, PULL}


def test_a_second_job_writes_nothing() -> None:
    cloud = hydrated()
    before = live(cloud, SOPS)
    push(cloud, files(AGE + "  tags: {team: shop}\n"))
    with counted(cloud) as calls:
        cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert live(cloud, SOPS) == before
    assert {"sops-age", "roadstead-secrets"}.isdisjoint([*calls.applied, *calls.tried])


def test_a_namespace_is_created_without_owning_it_and_an_existing_one_is_left_as_it_is() -> None:
    cloud = with_value()
    cloud.vault.set("registry-one", "{}")
    push(cloud, files(AGE + REGISTRY))
    cloud.run()
    entries = live(cloud, SPACE)["metadata"].get("managedFields") or ()
    assert not [entry for entry in entries if entry["manager"] == "roadstead" and entry["fieldsV1"]]
    by_hand(cloud, SPACE, {"metadata": {"name": "vaulted", "labels": {"owner": "team"}}})
    before = live(cloud, SPACE)
    push(cloud, files(AGE + REGISTRY + pool()))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert live(cloud, SPACE) == before


def test_a_missing_secret_is_named_and_the_cluster_continues_once_it_exists() -> None:
    cloud = MemoryCloud(throttle=False)
    push(cloud, files(AGE))
    cloud.run(seconds=600)
    assert record(cloud).phase is Phase.PROVISIONING
    assert record(cloud).job.reason == (
        "SecretMissing: the secret fleet-age of the vault platform does not exist, or is deleted"
    )
    assert "spec.bootstrapSecrets" in advice(cloud)
    with_value(cloud)
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_missing_role_names_the_role() -> None:
    cloud = with_value()
    cloud.vaults.failing["platform"] = VaultForbidden("the identity of this app may not read it")
    push(cloud, files(AGE))
    cloud.run()
    assert record(cloud).phase is Phase.FAILED
    assert "Key Vault Secrets User" in advice(cloud)


def test_a_throttled_vault_is_asked_again_when_it_says() -> None:
    cloud = with_value()
    cloud.vaults.failing["platform"] = Throttled("slow down", retry_after=900)
    push(cloud, files(AGE))
    cloud.run(until=lambda: bool(cloud.vaults.reads))
    reads = len(cloud.vaults.reads)
    cloud.run(seconds=800)
    assert len(cloud.vaults.reads) == reads
    cloud.vaults.failing.clear()
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_a_vault_that_does_not_answer_keeps_no_other_change_of_a_cluster_that_has_its_secrets() -> None:
    cloud = hydrated()
    before = live(cloud, SOPS)
    cloud.vaults.failing["platform"] = VaultUnavailable("the vault platform did not answer")
    push(cloud, files(AGE.replace("  bootstrapSecrets", f"{pool()}  bootstrapSecrets")))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert live(cloud, SOPS) == before
    said = record(cloud).condition("SecretsApplied")
    assert said is not None
    assert said.message == (
        "the Secret flux-system/sops-age stays as it is, because the vault platform did not answer"
    )


def test_a_vault_that_does_not_answer_costs_no_kubeconfig() -> None:
    cloud = with_value()
    cloud.vaults.failing["platform"] = VaultUnavailable("the vault platform did not answer")
    push(cloud, files(AGE + "  aadProfile: {managed: true, enableAzureRBAC: true}\n"))
    cloud.run(seconds=600)
    assert record(cloud).job.step.attempts["VaultUnavailable"] > 2
    assert record(cloud).observation.api_server is not None


def test_a_secret_of_somebody_else_with_other_values_is_not_written_over() -> None:
    cloud = with_value(ready())
    by_hand(cloud, SOPS, {"data": {"age.agekey": "dGhlaXJz"}})
    before = live(cloud, SOPS)
    push(cloud, files(AGE))
    cloud.run()
    assert record(cloud).phase is Phase.FAILED
    assert record(cloud).job.reason.startswith("NotOwned: the Secret flux-system/sops-age has other values")
    assert advice(cloud).startswith("If the message names a Secret or a node pool, do what it says.")
    assert live(cloud, SOPS) == before


def test_a_secret_of_somebody_else_with_the_same_values_is_taken_over() -> None:
    cloud = hydrated()
    same = live(cloud, SOPS)["data"]
    other = with_value(ready())
    by_hand(other, SOPS, {"data": dict(same)})
    push(other, files(AGE))
    other.run()
    assert phases(other) == {"one": Phase.READY}
    assert VERSIONS in live(other, SOPS)["metadata"]["annotations"]


def test_a_type_that_kubernetes_does_not_change_is_refused_before_the_write() -> None:
    cloud = hydrated()
    push(cloud, files(AGE.replace("      vault", "      type: example.com/age\n      vault")))
    cloud.run()
    assert record(cloud).phase is Phase.FAILED
    assert record(cloud).job.reason.startswith(
        "Immutable: the Secret flux-system/sops-age has the type Opaque"
    )
    assert advice(cloud) == "Restore the old value, or do what the message says."


def test_a_job_applies_the_newest_version() -> None:
    cloud = hydrated()
    with_value(cloud, NEXT)
    push(cloud, files(AGE + "  tags: {team: shop}\n"))
    cloud.run()
    assert value_of(cloud) == NEXT


def test_an_entry_that_is_removed_removes_its_secret_after_the_rest() -> None:
    cloud = hydrated()
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert api(cloud).get(SOPS) is None
    assert listed_in(live(cloud, SECRETS_INVENTORY)) == frozenset()
    said = record(cloud).condition("Ready")
    assert said is not None
    assert "removed Secret sops-age in flux-system" in said.message


def test_a_removed_entry_leaves_a_secret_that_somebody_else_changed() -> None:
    cloud = hydrated()
    patched(cloud, {"data": {"identity": "a2V5"}})
    assert "the Secret sops-age in flux-system stays, because somebody else changed it" in _removed(cloud)


def test_a_removed_entry_leaves_a_secret_that_somebody_else_applies() -> None:
    cloud = hydrated()
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "sops-age", "namespace": "flux-system"},
    }
    world(cloud).apply(at(SOPS), manifest | {"data": {"more": "b25l"}}, WriteMode(manager="helm", force=True))
    assert "the Secret sops-age in flux-system stays, because it is also applied by helm" in _removed(cloud)


def _removed(cloud: MemoryCloud) -> str:
    """Remove the entry; return what the job says, while the Secret has its value."""
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert value_of(cloud) == VALUE
    said = record(cloud).condition("Ready")
    assert said is not None
    return said.message


def test_a_secret_that_flux_still_names_stays() -> None:
    reads = "  flux: {kustomizations: [{name: flux-system, postBuild: {substituteFrom: [VARIABLES]}}]}\n"
    reads = reads.replace("VARIABLES", "{kind: Secret, name: sops-age}")
    cloud = hydrated()
    push(cloud, files(reads))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert value_of(cloud) == VALUE
    said = record(cloud).condition("Ready")
    assert said is not None
    assert "the Secret sops-age in flux-system stays, because spec.flux names it" in said.message
    push(cloud, files())
    cloud.run()
    assert api(cloud).get(SOPS) is None


def test_a_secret_of_the_inventory_that_roadstead_did_not_apply_stays() -> None:
    cloud = hydrated()
    theirs = ObjectRef("v1", "Secret", "theirs", "flux-system")
    by_hand(cloud, theirs, {"data": {"a": "Yg=="}})
    by_hand(cloud, SECRETS_INVENTORY, {"data": {"objects": json.dumps([vars(theirs)])}})
    push(cloud, files(AGE + "  tags: {team: shop}\n"))
    cloud.run()
    assert live(cloud, theirs)["data"] == {"a": "Yg=="}


def test_a_vault_that_the_app_may_not_read_is_refused_in_the_plan_with_its_place() -> None:
    cloud = with_value()
    config = replace(cloud.ports.config, vaults=frozenset({"other"}))
    cloud.with_ports(lambda ports: replace(ports, config=config))
    commit = push(cloud, files(AGE))
    cloud.run(seconds=300)
    assert phases(cloud) == {}
    plan = cloud.state.plan(commit)
    assert plan is not None
    (problem,) = plan.plan.problems
    assert problem == (
        "clusters/one/cluster.yaml:13:7 spec.bootstrapSecrets[sops-age].vault: the app may not read the "
        "vault platform: KEY_VAULTS, a setting of the app, has other; name one of these, or let the app's "
        "operator add it"
    )
    assert not cloud.vaults.reads


def test_a_vault_that_the_settings_lose_later_keeps_the_cluster_as_it_is() -> None:
    cloud = hydrated()
    config = replace(cloud.ports.config, vaults=frozenset())
    cloud.with_ports(lambda ports: replace(ports, config=config))
    cloud.vaults.worlds.clear()
    push(cloud, files(AGE) | {"docs/a.md": b"text"})
    cloud.run(seconds=300)
    assert phases(cloud) == {"one": Phase.READY}
    assert value_of(cloud) == VALUE


BINARY = """\
  bootstrapSecrets:
    - {name: store, vault: platform, keys: {store.p12: store, password: word}, binary: [store.p12]}
"""
STORE = ObjectRef("v1", "Secret", "store", "flux-system")


def test_a_binary_value_is_the_bytes_whose_base64_the_vault_has() -> None:
    cloud, content = MemoryCloud(throttle=False), bytes(range(256))
    cloud.vault.set("store", base64.encodebytes(content).decode())
    cloud.vault.set("word", "a-word-of-the-store")
    push(cloud, files(BINARY))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    data = live(cloud, STORE)["data"]
    assert base64.b64decode(data["store.p12"]) == content
    assert base64.b64decode(data["password"]) == b"a-word-of-the-store"


def test_a_key_that_becomes_binary_is_written_again() -> None:
    cloud, content = MemoryCloud(throttle=False), b"\x00\xff"
    cloud.vault.set("store", base64.b64encode(content).decode())
    cloud.vault.set("word", "a-word-of-the-store")
    push(cloud, files(BINARY.replace(", binary: [store.p12]", "")))
    cloud.run()
    push(cloud, files(BINARY))
    cloud.run()
    assert base64.b64decode(live(cloud, STORE)["data"]["store.p12"]) == content


def test_a_binary_value_that_is_no_base64_waits_and_is_not_shown() -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.vault.set("store", "no-base64-at-all!")
    cloud.vault.set("word", "a-word-of-the-store")
    push(cloud, files(BINARY))
    cloud.run(seconds=900, until=lambda: False)
    assert record(cloud).job.reason.startswith(
        "SecretMissing: the secret store of the vault platform is no base64"
    )
    assert "no-base64-at-all" not in record(cloud).job.reason
    cloud.vault.set("store", "AAEC")
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
