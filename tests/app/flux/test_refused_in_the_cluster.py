"""What a policy, a webhook or a limit of the cluster refuses: who refuses it, and what happens."""

from __future__ import annotations

import pytest

from localcloud.kubernetes.world.refusals import RefusedWrites
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.failures.advice import after_refusal
from shared.cluster.record_parts import Phase
from tests.support.one_cluster import advice, files, record, world
from tests.support.pipeline_runs import phases, push

CASES = {
    "azure-policy": (
        "PolicyDenied",
        "the policy azurepolicy-k8sazurev3noprivilege-1f2e3d of Azure Policy",
        "`excludedNamespaces` of the assignment",
    ),
    "gatekeeper": ("PolicyDenied", "the policies no-privilege, owners", "Exempt the object or its namespace"),
    "validating-admission-policy": (
        "PolicyDenied",
        "the ValidatingAdmissionPolicy replica-limit",
        "Who acts: the owner of the policy.",
    ),
    "webhook-without-endpoints": (
        "WebhookDown",
        "the webhook guard.example.org does not answer",
        "Start the pods of the service behind the webhook",
    ),
    "exceeded-quota": ("Obstructed", "the ResourceQuota team-quota is used up", "Raise the quota"),
}
"""The case, and what the job, and the advice, say of it."""


def refusing(case: str) -> MemoryCloud:
    """Return a cloud whose cluster refuses the Deployments of Flux from the start."""
    cloud = MemoryCloud(throttle=False)
    cloud.kubernetes.refused.append(RefusedWrites(case, kind="Deployment"))
    push(cloud, files())
    cloud.run(until=lambda: bool(phases(cloud)) and record(cloud).job.step.failure is not None)
    return cloud


@pytest.mark.parametrize("case", CASES)
def test_a_refused_bootstrap_names_who_refuses_it_and_goes_on_once_that_is_changed(case: str) -> None:
    kind, named, action = CASES[case]
    cloud = refusing(case)
    reason = record(cloud).job.reason
    assert reason.startswith(f"{kind}: Deployment ")
    assert named in reason
    assert action in advice(cloud)
    assert "role to the identity" not in advice(cloud)
    world(cloud).refused.clear()
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


@pytest.mark.lives
def test_a_policy_that_stays_counts_as_failed_and_the_job_goes_on_once_it_is_changed() -> None:
    cloud = refusing("gatekeeper")
    assert not record(cloud).refused, "an exemption may take minutes to be everywhere"
    cloud.run(seconds=3600)
    assert (phases(cloud), record(cloud).refused) == ({"one": Phase.STALLED}, True)
    cloud.run(seconds=2 * 86_400)
    assert record(cloud).refused
    assert "the owner of the policy" in advice(cloud)
    assert "roadstead replay one" in advice(cloud)
    world(cloud).refused.clear()
    cloud.run(seconds=3600)
    assert phases(cloud) == {"one": Phase.READY}


@pytest.mark.parametrize(
    ("case", "action"),
    [
        ("exceeded-quota", "Raise the quota"),
        ("limit-range", "Change the LimitRange"),
        ("pod-security", "pod-security.kubernetes.io/enforce"),
    ],
)
def test_pods_of_flux_that_are_refused_say_why_and_the_advice_is_about_that(case: str, action: str) -> None:
    cloud = MemoryCloud(throttle=False)
    cloud.kubernetes.refused.append(RefusedWrites(case, kind="Pod"))
    push(cloud, files())
    cloud.run(until=lambda: bool(phases(cloud)) and "Flux rolls out" in record(cloud).job.reason)
    reason = record(cloud).job.reason
    assert "0 of 1 replicas are updated: FailedCreate: pods " in reason
    assert action in advice(cloud)
    assert "Who acts: " in advice(cloud)
    world(cloud).refused.clear()
    world(cloud).tick()
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_what_a_policy_refuses_of_flux_itself_has_the_advice_of_the_policy() -> None:
    message = (
        'Deployment/shop/web dry-run failed (Forbidden): admission webhook "validation.gatekeeper.sh" denied'
        " the request: [azurepolicy-1] privilege escalation is not allowed: web"
    )
    assert "excludedNamespaces" in after_refusal(message)
    rights = (
        'deployments.apps is forbidden: User "system:serviceaccount:a:b" cannot patch resource "deployments"'
    )
    assert after_refusal(rights) == ""
