"""How the readiness of Flux objects is read; the statuses have the shape that the real controllers write."""

from __future__ import annotations

from typing import Any

import pytest

from shared.kubernetes.flux_readiness import (
    REQUESTED_AT,
    Attempt,
    FluxFailure,
    Progressing,
    Readiness,
    Ready,
    Suspended,
    advice,
    commit_of,
    readiness,
)
from tests.support.recorded_answers import recorded

REQUEST = "2026-01-01T00:00:00+00:00"
LATER = "2026-01-01T00:07:00Z"
HEAD = "main@sha1:1166103fef28aa52e28b61a15798a0999446aed5"
NO_BRANCH = (
    "failed to checkout and determine revision: unable to clone 'https://github.com/example/fleet': "
    'couldn\'t find remote ref "refs/heads/nope"'
)
NO_SUCH_PATH = "kustomization path not found: stat /tmp/kustomization-1/nope: no such file or directory"


def condition(sort: str, status: str, reason: str, message: str, generation: int = 2) -> dict[str, Any]:
    return {
        "type": sort,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:05Z",
        "observedGeneration": generation,
    }


def flux_object(*conditions: dict[str, Any], annotation: str = REQUEST, **status: Any) -> dict[str, Any]:
    """Return an object of generation 2 that Flux has seen with the request."""
    return {
        "metadata": {"name": "flux-system", "generation": 2, "annotations": {REQUESTED_AT: annotation}},
        "spec": {"interval": "1m0s"},
        "status": {"lastHandledReconcileAt": REQUEST, "conditions": list(conditions), **status},
    }


FETCHED = condition("Ready", "True", "Succeeded", f"stored artifact for revision '{HEAD}'")
APPLIED = condition("Ready", "True", "ReconciliationSucceeded", f"Applied revision: {HEAD}")
RECONCILING = condition("Reconciling", "True", "ProgressingWithRetry", "reconciliation in progress")
OF_THE_SPEC_BEFORE = condition("Ready", "True", "ReconciliationSucceeded", f"Applied revision: {HEAD}", 1)
UNSEEN = Progressing("Flux has not seen the request to reconcile it yet")
UNRECONCILED = Progressing("Flux has not reconciled its newest version yet")

TABLE: dict[str, tuple[dict[str, Any], Readiness]] = {
    "a source that was fetched": (
        flux_object(FETCHED, observedGeneration=2, artifact={"revision": HEAD}),
        Ready(HEAD),
    ),
    "a Kustomization that was applied": (
        flux_object(APPLIED, observedGeneration=2, lastAppliedRevision=HEAD, lastAttemptedRevision=HEAD),
        Ready(HEAD),
    ),
    "a new source with a wrong branch: status.observedGeneration stays at its default": (
        flux_object(
            RECONCILING,
            condition("Ready", "False", "GitOperationFailed", NO_BRANCH),
            condition("FetchFailed", "True", "GitOperationFailed", NO_BRANCH),
            observedGeneration=-1,
        ),
        FluxFailure("GitOperationFailed", NO_BRANCH),
    ),
    "a Kustomization with a wrong path, that was Ready before": (
        flux_object(
            RECONCILING,
            condition("Ready", "False", "ArtifactFailed", NO_SUCH_PATH),
            observedGeneration=1,
            lastAppliedRevision=HEAD,
        ),
        FluxFailure("ArtifactFailed", NO_SUCH_PATH, Attempt(applied=HEAD)),
    ),
    "a suspended Kustomization: its status.observedGeneration and its handled request are raised": (
        {
            **flux_object(OF_THE_SPEC_BEFORE, observedGeneration=2, lastAppliedRevision=HEAD),
            "spec": {"suspend": True},
        },
        Suspended(),
    ),
    "a change that Flux has not seen, while it saw the request": (
        flux_object(OF_THE_SPEC_BEFORE, observedGeneration=1, lastAppliedRevision=HEAD),
        UNRECONCILED,
    ),
    "a request that Flux has not seen": (
        {
            **flux_object(APPLIED, observedGeneration=2),
            "status": {"conditions": [APPLIED], "observedGeneration": 2, "lastHandledReconcileAt": "2025"},
        },
        UNSEEN,
    ),
    "an object that Flux never saw": ({"metadata": {"generation": 1}}, UNSEEN),
    "a later request of somebody else that Flux has seen": (
        flux_object(APPLIED, annotation=LATER, lastHandledReconcileAt=LATER, lastAppliedRevision=HEAD),
        Ready(HEAD),
    ),
    "a later request of somebody else that Flux has not seen, after it saw ours": (
        flux_object(APPLIED, annotation=LATER, lastAppliedRevision=HEAD),
        Ready(HEAD),
    ),
    "a reconciliation that runs": (
        flux_object(condition("Ready", "Unknown", "Progressing", "Reconciliation in progress")),
        Progressing("Progressing: Reconciliation in progress"),
    ),
    "a release that was rolled back: what failed, and not how that was undone": (
        flux_object(
            condition("Ready", "False", "RollbackSucceeded", "Helm rollback to a/web.v3 succeeded"),
            condition("Released", "False", "UpgradeFailed", "Helm upgrade failed: no such image"),
            condition("Remediated", "True", "RollbackSucceeded", "Helm rollback to a/web.v3 succeeded"),
            condition("Stalled", "True", "RetriesExceeded", "Failed to upgrade after 1 attempt(s)"),
        ),
        FluxFailure("UpgradeFailed", "Helm upgrade failed: no such image", gave_up=True),
    ),
    "a release whose rollback failed too": (
        flux_object(
            condition("Ready", "False", "ReconciliationFailed", "Helm rollback failed"),
            condition("Released", "False", "UpgradeFailed", "Helm upgrade failed"),
            condition("Remediated", "False", "RollbackFailed", "Helm rollback failed"),
        ),
        FluxFailure("ReconciliationFailed", "Helm rollback failed"),
    ),
    "a release with an older failure, of the version before": (
        flux_object(
            condition("Ready", "False", "SourceNotReady", "HelmChart is not ready"),
            condition("Released", "False", "UpgradeFailed", "Helm upgrade failed", 1),
        ),
        FluxFailure("SourceNotReady", "HelmChart is not ready"),
    ),
    "an object that Flux gave up, while Ready is unknown": (
        flux_object(
            condition("Ready", "Unknown", "Progressing", "Reconciliation in progress"),
            condition("Stalled", "True", "InvalidCELExpression", "failed to parse"),
        ),
        FluxFailure("InvalidCELExpression", "failed to parse", gave_up=True),
    ),
    "a Kustomization that stopped retrying, and now waits for another one": (
        flux_object(
            condition("Ready", "False", "DependencyNotReady", "dependency 'a/b' not found"),
            condition("Stalled", "True", "AccessDenied", "cannot access 'c/d'"),
        ),
        FluxFailure("DependencyNotReady", "dependency 'a/b' not found"),
    ),
    "an object that is Ready, whatever else is said": (
        flux_object(
            APPLIED, condition("Stalled", "True", "RetriesExceeded", "", 1), lastAppliedRevision=HEAD
        ),
        Ready(HEAD),
    ),
    "an object without a Ready condition": (flux_object(RECONCILING), UNRECONCILED),
}


@pytest.mark.parametrize(("live", "found"), TABLE.values(), ids=TABLE)
def test_a_flux_object_is_judged_by_its_ready_condition_and_the_handled_request(
    live: dict[str, Any], found: Readiness
) -> None:
    assert readiness(live, REQUEST) == found


def test_a_message_of_flux_that_ends_a_line_does_not_break_the_sentence_that_follows() -> None:
    found = readiness(flux_object(condition("Ready", "False", "BuildFailed", "not found\n")), REQUEST)
    assert found == FluxFailure("BuildFailed", "not found")


def test_a_long_message_of_flux_is_cut_off() -> None:
    found = readiness(flux_object(condition("Ready", "False", "BuildFailed", "x" * 5000)), REQUEST)
    assert isinstance(found, FluxFailure)
    assert len(found.message) == 300


@pytest.mark.parametrize(
    ("revision", "commit"),
    [
        (HEAD, "1166103fef28aa52e28b61a15798a0999446aed5"),
        ("feature/a@b@sha1:abc", "abc"),
        ("sha1:abc", ""),
        ("main/abc", ""),
        ("v1.0.0@sha256:abc", "abc"),
        ("", ""),
    ],
)
def test_a_revision_names_its_commit(revision: str, commit: str) -> None:
    assert commit_of(revision) == commit


@pytest.mark.parametrize(
    ("failure", "part"),
    [
        (FluxFailure("GitOperationFailed", NO_BRANCH), "Correct spec.flux.branch"),
        (
            FluxFailure("GitOperationFailed", "unable to clone 'https://x': authentication required"),
            "FLUX_GIT_PASSWORD",
        ),
        (
            FluxFailure("GitOperationFailed", "unable to clone 'https://x': repository not found"),
            "spec.flux.repository",
        ),
        (FluxFailure("AuthenticationFailed", 'secrets "flux-system" not found'), "FLUX_GIT_PASSWORD"),
        (FluxFailure("ArtifactFailed", NO_SUCH_PATH), "Correct spec.flux.path"),
        (FluxFailure("BuildFailed", "kustomize build failed"), "Correct the manifests"),
        (
            FluxFailure("ReconciliationFailed", "ConfigMap/default/a dry-run failed: Invalid"),
            "Correct the object",
        ),
    ],
)
def test_a_failure_of_flux_comes_with_what_to_do(failure: FluxFailure, part: str) -> None:
    assert part in advice(failure)


def test_a_failure_that_nobody_foresaw_has_no_advice() -> None:
    assert advice(FluxFailure("GitOperationFailed", "unexpected EOF")) == ""


OVER_SSH = {
    "another-host-key": "somebody is in between",
    "changed": "compare what `ssh-keyscan` shows",
    "another-host": "has no key of this server",
    "no-known-hosts": "has no key of this server",
    "empty-known-hosts": "has no key of this server",
    "broken-known-hosts": "has no key of this server",
    "another-key": "let its public half read",
    "another-rsa-key": "let its public half read",
    "passphrase": "the passphrase as the key password",
    "no-key": "must be a private key",
    "no-identity": "must be a private key",
    "password": "must be a private key",
    "no-secret": "must be a private key",
    "no-repository": "Correct spec.flux.repository, or let the key",
    "no-branch": "Correct spec.flux.branch",
    "no-server": "Let the network of the cluster out",
    "old-server": "too old for Flux",
}
FINE = {"good", "with-its-passphrase", "no-user"}


def test_each_failure_of_ssh_that_the_real_source_controller_reports_has_its_advice() -> None:
    told = recorded("flux_over_ssh.json")["answers"]
    assert told.keys() == OVER_SSH.keys() | FINE
    for name, hint in OVER_SSH.items():
        reason, _, message = told[name].partition(": ")
        said = advice(FluxFailure(reason, message))
        assert hint in said, name
        assert "FLUX_GIT_PASSWORD" not in said


def test_what_flux_reports_of_a_refused_secret_shows_nothing_of_its_data() -> None:
    refused = "Secret/team/login dry-run failed"
    quoted = "expected string, got &value.valueUnstructured{Value:4711}\n"
    live = {
        "metadata": {"generation": 2},
        "status": {
            "lastHandledReconcileAt": REQUEST,
            "conditions": [
                condition("Ready", "False", "ReconciliationFailed", f"{refused}: .data.pin: {quoted}")
            ],
        },
    }
    assert readiness(live, REQUEST) == FluxFailure("ReconciliationFailed", refused)
