"""A policy that refuses Flux, and a webhook that is away: who refuses is shown, then the cluster is Ready."""

from __future__ import annotations

import ssl
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from localcloud.runtime.options import Options
from localcloud.runtime.parts.part import kubeconfigs
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start

QUICK = {"RETRY_LIMITS": "PolicyDenied=60/1 WebhookDown=60/1", "POLL_SECONDS": "0.5"}
EXPECTED = {
    "gk-aks": (
        "azure-policy",
        "PolicyDenied",
        "the policy azurepolicy-k8sazurev3noprivilege-1f2e3d of Azure",
    ),
    "kv-aks": ("webhook-without-endpoints", "WebhookDown", "the webhook guard.example.org does not answer"),
}
"""The case that each cluster refuses Deployments with, and what is shown of it."""


def refuse(operator: Operator, name: str, *cases: str) -> None:
    """Let a cluster refuse its Deployments so from now on."""
    kubeconfig = yaml.safe_load(kubeconfig_of(operator, name).read_text())
    server = kubeconfig["clusters"][0]["cluster"]["server"]
    trust = ssl.create_default_context(cafile=str(operator.cloud.state / "ca.pem"))
    rules = [{"case": case, "kind": "Deployment"} for case in cases]
    httpx.put(f"{server}/_local/refused", json=rules, verify=trust, trust_env=False).raise_for_status()


def kubeconfig_of(operator: Operator, name: str) -> Path:
    return kubeconfigs(operator.cloud.state) / f"{name}.yaml"


def last_error(operator: Operator, name: str) -> Any:
    """Return the last error of the cluster's job, None for none."""
    return operator.api.get(f"clusters/{name}/why")["lastError"]


@pytest.mark.long
def test_a_refusal_names_the_policy_or_the_webhook_and_the_cluster_is_ready_once_it_ends(
    start: Start,
) -> None:
    operator = start(Options(create_seconds=15, extra=QUICK))
    operator.push(fleet_files.fleet(*EXPECTED))
    for name, (case, _, _) in EXPECTED.items():
        operator.wait(kubeconfig_of(operator, name).is_file, f"{name} has an API server", every=0.1)
        refuse(operator, name, case)
    for name, (_, kind, named) in EXPECTED.items():
        operator.wait(partial(last_error, operator, name), f"{name} refuses Flux")
        error = last_error(operator, name)
        assert error["class"] == kind
        assert named in error["message"]
        assert "in flux-system" in error["message"]
        assert "role" not in operator.api.get(f"clusters/{name}/why")["suggestedAction"]
        refuse(operator, name)
    operator.wait(lambda: set(operator.phases().values()) == {"Ready"}, "both are Ready")
