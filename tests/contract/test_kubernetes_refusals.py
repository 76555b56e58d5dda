"""What a cluster refuses is an error that names who refuses it, on the world and through the adapter."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localcloud.kubernetes.world.refusals import CASES, RefusedWrites
from shared.cluster.failures.catalogue import KUBERNETES, entry_of
from shared.cluster.failures.errors import ReconcileError, Throttled
from shared.json_tree import Json
from shared.ports import KubernetesApi
from tests.support.kubernetes_ports import SETTINGS, Others, Setting, config_map

pytestmark = pytest.mark.lives

SUBJECT = "ConfigMap settings in default: "
EXPECTED = {
    "gatekeeper": (
        "AdmissionWebhookDenied",
        "refused by the policies no-privilege, owners (the webhook validation.gatekeeper.sh): [no-privilege]",
    ),
    "azure-policy": (
        "AzurePolicyDenied",
        "refused by the policy azurepolicy-k8sazurev3noprivilege-1f2e3d of Azure Policy (the webhook",
    ),
    "kyverno": ("AdmissionWebhookDenied", "refused by the policy require-labels (the webhook validate.kyv"),
    "managed-by-arm": ("ManagedByArm", 'configmaps "settings" is forbidden: Updating/deleting namespace'),
    "validating-admission-policy": (
        "ValidatingAdmissionPolicyDenied",
        "refused by the ValidatingAdmissionPolicy replica-limit (binding all): too many replicas",
    ),
    "pod-security": (
        "PodSecurityDenied",
        "refused by the Pod Security level restricted:latest: runAsNonRoot != true",
    ),
    "webhook-without-endpoints": (
        "WebhookFailed",
        "the webhook guard.example.org does not answer: failed to call webhook: Post",
    ),
    "webhook-timeout": ("WebhookFailed", "the webhook guard.example.org does not answer: failed to call"),
    "webhook-certificate": ("WebhookFailed", "the webhook guard.example.org does not answer: failed to"),
    "conversion-webhook": ("ConversionWebhookFailed", "the conversion webhook of v1 ConfigMap fails: failed"),
    "webhook-without-dry-run": (
        "WebhookWithoutDryRun",
        "the webhook guard.example.org does not support dry run",
    ),
    "quota-demands-limits": ("QuotaDemandsLimits", 'configmaps "settings" is forbidden: failed quota: team'),
    "quota-not-counted": ("QuotaNotCounted", 'configmaps "settings" is forbidden: status unknown for quota'),
    "aks": ("AksDenied", "refused by the webhook aks-node-validating-webhook.azmk8s.io: the object belongs"),
    "forbidden": ("Forbidden", 'configmaps "settings" is forbidden: a plugin of the API server does not'),
    "leader-changed": ("Unavailable", "Internal error occurred: etcdserver: leader changed"),
    "exceeded-quota": (
        "ExceededQuota",
        "the ResourceQuota team-quota is used up: requested: count/configmaps",
    ),
    "limit-range": ("LimitRange", 'configmaps "settings" is forbidden: maximum memory usage per Container'),
    "immutable-field": ("ImmutableField", 'ConfigMap "settings" is invalid: spec.selector: Invalid value'),
    "stored-version": ("StoredVersion", 'ConfigMap "settings" is invalid: status.storedVersions[0]: Invalid'),
    "claim-not-resized": ("ClaimNotResized", 'ConfigMap "settings" is invalid: spec.resources.requests.'),
    "field-too-long": ("FieldTooLong", 'ConfigMap "settings" is invalid: data: Too long'),
    "request-too-large": ("RequestTooLarge", "Request entity too large: limit is 3145728"),
    "object-too-large": ("ObjectTooLarge", "etcdserver: request is too large"),
    "no-permission": ("PermissionDenied", 'configmaps "settings" is forbidden: User "6f1e" cannot patch'),
    "privilege-escalation": ("PrivilegeEscalation", 'configmaps "settings" is forbidden: user "6f1e"'),
    "starts-up": ("StartsUp", 'configmaps "settings" is forbidden: not yet ready to handle request'),
    "flow-control": ("TooManyRequests", "Too many requests, please try again later."),
    "aggregated-api-down": ("AggregatedApiDown", "service unavailable"),
}
"""The entry of the catalogue, and what the error says after its subject."""
WRITES: dict[str, Callable[[KubernetesApi, Json], object]] = {
    "apply": lambda api, live: api.apply(config_map({"new": "value"}, name=live["metadata"]["name"])),
    "replace": lambda api, live: api.replace({**live, "data": {"new": "value"}}),
    "delete": lambda api, live: api.delete(live),
}


ELSEWHERE = {
    *("NamespaceTerminating", "NamespaceProtected", "NotFound", "Conflict", "Unauthorized"),
    *("UnknownField", "Invalid", "BadRequest"),
}
"""What an API server answers by itself to a request: other contracts have it."""


def test_every_refusal_of_the_local_cluster_is_expected_and_no_entry_is_without_one() -> None:
    assert set(EXPECTED) == set(CASES)
    reached = {f"kubernetes/{name}" for name in {*ELSEWHERE, *(name for name, _ in EXPECTED.values())}}
    assert reached == {entry.key for entry in KUBERNETES.entries}


@pytest.mark.parametrize("case", EXPECTED)
def test_a_refused_write_says_who_refuses_it(case: str, setting: Setting) -> None:
    live = setting.api.apply(config_map({"a": "b"}))
    refuse(setting.world, RefusedWrites(case, kind="ConfigMap", name="settings"))
    name, message = EXPECTED[case]
    entry = entry_of(f"kubernetes/{name}")
    assert entry is not None
    for write in WRITES.values():
        with pytest.raises(ReconcileError) as refused:
            write(setting.api, live)
        assert (type(refused.value), refused.value.entry) == (entry.kind, entry.key)
        assert str(refused.value).startswith(f"{SUBJECT}{message}")
    assert setting.api.get(SETTINGS) is not None


def test_the_wait_that_the_api_server_asks_for_is_kept(setting: Setting) -> None:
    refuse(setting.world, RefusedWrites("flow-control"))
    with pytest.raises(Throttled) as refused:
        setting.api.apply(config_map({"a": "b"}))
    assert refused.value.retry_after == 1.0


@pytest.mark.parametrize("case", EXPECTED)
def test_a_refused_secret_shows_names_and_nothing_that_others_say(case: str, setting: Setting) -> None:
    refuse(setting.world, RefusedWrites(case))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hunter2", "namespace": "default"}}
    with pytest.raises(ReconcileError) as refused:
        setting.api.apply(secret)
    said = str(refused.value).removeprefix("Secret hunter2 in default: ")
    assert "hunter2" not in said
    assert said


def refuse(world: Others, rule: RefusedWrites) -> None:
    """Let the cluster refuse what the rule says from now on."""
    refused: list[RefusedWrites] = getattr(world, "refused")  # noqa: B009  # a real API server has none
    refused.append(rule)
