"""What somebody can do about a failure of Flux, and who: the texts are those of Flux, Helm and Kubernetes."""

from __future__ import annotations

import pytest

from shared.cluster.failures.advice import after_failure, entry_of_flux
from shared.cluster.failures.catalogue import FLUX, Actor
from shared.kubernetes.flux_readiness import FluxFailure

APPLIED, RELEASE = "ReconciliationFailed", "Helm upgrade failed for release a/web with chart web@1.3.0: "
CLONE = "failed to checkout and determine revision: unable to clone 'https://git.example.com/a/b': "
CHART = "HelmChart 'flux-system/a-web' is not ready: "
PULL = "failed to determine artifact digest: "
USER = 'User "system:serviceaccount:a:b"'
SERVED = "http://source-controller.flux-system.svc.cluster.local./gitrepository/flux-system/apps/1.tar.gz"
LIMITED, HOOK = "client rate limiter Wait returned an error: rate: Wait(n=1)", "flux/HookFailed"
CASES = [
    # The API server refuses what Flux applies.
    (
        APPLIED,
        'Job/a/b dry-run failed (Invalid): Job.batch "b" is invalid: spec.template: field is immutable',
        "kubernetes/ImmutableField",
    ),
    (
        APPLIED,
        "Service/a/b dry-run failed (Invalid): spec.loadBalancerClass: may not change once set",
        "kubernetes/ImmutableField",
    ),
    (
        APPLIED,
        "CustomResourceDefinition/b dry-run failed (Invalid): status.storedVersions[0]: Invalid value: "
        '"v1alpha1": missing from spec.versions; v1alpha1 was previously a storage version, and must remain '
        "in spec.versions until a storage migration ensures no data remains persisted in v1alpha1",
        "kubernetes/StoredVersion",
    ),
    (
        APPLIED,
        "PersistentVolumeClaim/a/b dry-run failed (Forbidden): only dynamically provisioned pvc can be "
        "resized and the storageclass must support resize",
        "kubernetes/ClaimNotResized",
    ),
    (
        APPLIED,
        "ConfigMap/a/b dry-run failed (RequestEntityTooLarge): limit is 3145728",
        "kubernetes/RequestTooLarge",
    ),
    (
        APPLIED,
        "Deployment/a/b dry-run failed (Invalid): spec.replicas: must be positive",
        "kubernetes/Invalid",
    ),
    (
        APPLIED,
        "Issuer/a/b dry-run failed (InternalError): Internal error occurred: failed calling webhook "
        '"webhook.cert-manager.io": failed to call webhook: x509: certificate signed by unknown authority',
        "kubernetes/WebhookFailed",
    ),
    (APPLIED, "Pod/a/b dry-run failed (Forbidden): exceeded quota: compute", "kubernetes/ExceededQuota"),
    (
        APPLIED,
        f'Role/a/b dry-run failed (Forbidden): roles "b" is forbidden: {USER} cannot patch resource "roles"',
        "flux/NoRight",
    ),
    (
        APPLIED,
        'Role/a/b dry-run failed (Forbidden): roles "b" is forbidden: user "system:serviceaccount:a:b" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held',
        "flux/NoRight",
    ),
    (
        "PruneFailed",
        f'Job/a/b delete failed: jobs.batch "b" is forbidden: {USER} cannot delete resource "jobs"',
        "flux/NoRight",
    ),
    (
        APPLIED,
        'Deployment/a/b dry-run failed (BadRequest): Deployment in version "v1" cannot be handled as a '
        'Deployment: strict decoding error: unknown field "spec.foo"',
        "kubernetes/BadRequest",
    ),
    (
        APPLIED,
        "Server/a/b dry-run failed: .spec.policy: field not declared in schema",
        "kubernetes/UnknownField",
    ),
    (
        APPLIED,
        'Certificate/a/b dry-run failed: no matches for kind "Certificate" in version "cert-manager.io/v1"',
        "flux/KindNotServed",
    ),
    (APPLIED, "ConfigMap/a/b apply failed: because it is being terminated", "flux/NamespaceEnds"),
    (APPLIED, 'Get "https://10.0.0.1:443/api": dial tcp 10.0.0.1:443: i/o timeout', "flux/ApiServerDown"),
    # A Kustomization
    ("HealthCheckFailed", "timeout waiting for: [Deployment/a/b: 'InProgress']", "flux/HealthCheckFailed"),
    ("HealthCheckCanceled", "New reconciliation triggered", "flux/DependencyNotReady"),
    ("DependencyNotReady", "dependency 'flux-system/infra' is not ready", "flux/DependencyNotReady"),
    ("DependencyNotReady", "dependency 'flux-system/infra' not found", "flux/NoDependency"),
    ("ArtifactFailed", "Source artifact not found, retrying in 30s", "flux/ArtifactNotYet"),
    (
        "ArtifactFailed",
        f"failed to download archive: GET {SERVED} giving up after 10 attempt(s): dial tcp 10.0.0.1:80: "
        "connect: connection refused",
        "flux/ArtifactNotYet",
    ),
    (
        "ArtifactFailed",
        f"failed to download chart from {SERVED}: context deadline exceeded",
        "flux/ArtifactNotYet",
    ),
    ("ArtifactFailed", 'GitRepository.source.toolkit.fluxcd.io "apps" not found', "flux/NoSource"),
    ("ArtifactFailed", "kustomization path not found: stat /tmp/x: no such file or directory", ""),
    ("BuildFailed", "Secret/a/b decryption failed: cannot get sops data key", "flux/Undecrypted"),
    ("BuildFailed", "Secret/a/b is SOPS encrypted, configuring decryption is required", "flux/Undecrypted"),
    ("BuildFailed", 'secrets "sops-age" not found', "flux/Undecrypted"),
    ("BuildFailed", "kustomize build failed: accumulating resources from 'sops/web': no such file", ""),
    (
        "BuildFailed",
        "post build failed for 'web': substitute from 'Secret/vars' error: secrets \"vars\" not found",
        "flux/UnknownVariable",
    ),
    ("BuildFailed", "variable substitution failed: variable not set (strict mode)", "flux/UnknownVariable"),
    ("BuildFailed", "kustomize build failed: no matches for Id Deployment.v1.apps/web", ""),
    ("AccessDenied", "cross-namespace references have been blocked", "flux/AccessDenied"),
    # A release
    ("UpgradeFailed", f"{RELEASE}context deadline exceeded", "flux/ReleaseNotReady"),
    ("UpgradeFailed", f"{RELEASE}another operation (install/upgrade/rollback) is in", "flux/HelmInterrupted"),
    ("PendingRelease", "Unlocked Helm release a/web.v2 in pending-upgrade state", "flux/HelmInterrupted"),
    ("UpgradeFailed", f"{RELEASE}pre-upgrade hooks failed: job web-migrate failed", HOOK),
    ("InstallFailed", "Helm install failed: failed pre-install: timed out waiting for the condition", HOOK),
    ("UpgradeFailed", f"{RELEASE}warning: Hook post-upgrade web/job.yaml failed: no", HOOK),
    ("UpgradeFailed", f"{RELEASE}no certificate of the webhook is valid", "flux/ReleaseFailed"),
    ("UpgradeFailed", f"{RELEASE}{LIMITED} would exceed context deadline", "flux/ReleaseNotReady"),
    (
        "UpgradeFailed",
        f"{RELEASE}Kubernetes cluster unreachable: Get: dial tcp 10.0.0.1:443: i/o timeout",
        "flux/ApiServerDownInRelease",
    ),
    (
        "UpgradeFailed",
        f"{RELEASE}current release manifest contains removed kubernetes api(s) for this kubernetes version",
        "flux/StoredReleaseTooOld",
    ),
    ("UpgradeFailed", f"{RELEASE}cannot patch: spec.selector: field is immutable", "flux/ImmutableInRelease"),
    (
        "InstallFailed",
        f"{RELEASE}values don't meet the specifications of the schema(s)",
        "flux/ValuesRefused",
    ),
    (
        "InstallFailed",
        f"{RELEASE}which is incompatible with Kubernetes v1.30",
        "flux/ChartOfAnotherKubernetes",
    ),
    (
        "InstallFailed",
        f'{RELEASE}ConfigMap "x" exists and cannot be imported into the current release',
        "flux/OwnedByAnother",
    ),
    ("InstallFailed", f"{RELEASE}cannot re-use a name that is still in use", "flux/ReleaseFailed"),
    ("TestFailed", "Helm test failed: pod web-test failed", "flux/TestFailed"),
    ("MissingRollbackTarget", "missing target release for rollback", "flux/NotUndone"),
    ("ValuesError", "could not resolve ConfigMap chart values reference 'a/web'", "flux/ValuesError"),
    ("SourceNotReady", f"{CHART}latest generation of object has not been reconciled", "flux/ChartIsFetched"),
    ("SourceNotReady", f"{CHART}no 'web' chart with version matching '9.x' found", "flux/NoSuchVersion"),
    ("SourceNotReady", f"{CHART}could not build artifact: no space left on device", "flux/NoRoom"),
    ("SourceNotReady", f"{CHART}Get: net/http: TLS handshake timeout", "flux/ServerDown"),
    ("SourceNotReady", f"{CHART}chart pull error: 401: unauthorized", "flux/SourceNotReady"),
    # A source
    ("GitOperationFailed", f"{CLONE}tls: failed to verify certificate: x509", "flux/UntrustedCertificate"),
    ("GitOperationFailed", f"{CLONE}unexpected requesting status code: 429", "flux/TooManyRequests"),
    ("GitOperationFailed", f"{CLONE}unexpected client error: status code: 503", "flux/ServerDown"),
    ("GitOperationFailed", f"{CLONE}write /tmp/x: no space left on device", "flux/NoRoom"),
    ("GitOperationFailed", "unable to fetch submodules: authentication required", "flux/Submodules"),
    (
        "GitOperationFailed",
        f"{CLONE}proxyconnect tcp: dial tcp: lookup proxy: no such host",
        "flux/ServerUnreached",
    ),
    ("GitOperationFailed", f"{CLONE}authentication required", ""),
    ("OCIArtifactPullFailed", f"{PULL}TOOMANYREQUESTS: you have reached your limit", "flux/TooManyRequests"),
    ("AuthenticationFailed", f"failed to get secret 'a/b': {LIMITED} would exceed", ""),
    ("OCIArtifactPullFailed", f"{PULL}no match found for semver: 9.x", "flux/NoSuchVersion"),
    ("OCIArtifactPullFailed", f"{PULL}MANIFEST_UNKNOWN: manifest unknown", ""),
    ("VerificationError", "signature verification of commit 'abc' failed", "flux/VerificationError"),
    ("StorageOperationFailed", "write /data/x: no space left on device", "flux/NoRoom"),
]


@pytest.mark.parametrize(("reason", "message", "entry"), CASES)
def test_a_failure_of_flux_has_its_entry(reason: str, message: str, entry: str) -> None:
    found = entry_of_flux(FluxFailure(reason, message))
    assert (found.key if found else "") == entry


def test_every_entry_of_flux_has_a_text_that_leads_to_it() -> None:
    assert {entry.key for entry in FLUX.entries} <= {entry for *_, entry in CASES}


@pytest.mark.parametrize("place", ["spec.flux", ""])
def test_what_passes_by_itself_holds_no_job_for_a_person(place: str) -> None:
    passing = set[str]()
    for reason, message, entry in CASES:
        found = entry_of_flux(FluxFailure(reason, message))
        if found is not None and found.actor is Actor.NOBODY:
            assert after_failure(FluxFailure(reason, message), place) == ""
            passing.add(entry)
    assert {"flux/DependencyNotReady", "flux/ChartIsFetched", "flux/ArtifactNotYet"} <= passing


def test_a_manifest_says_where_to_correct_what_no_wording_explains() -> None:
    invalid = FluxFailure(APPLIED, "Deployment/a/b dry-run failed (Invalid): spec.replicas: must be positive")
    assert "below spec.flux.path" in after_failure(invalid, "spec.flux")
    assert after_failure(invalid).startswith("Correct the field in the message")
    unknown = FluxFailure("BuildFailed", "kustomize build failed")
    assert after_failure(unknown).startswith("Correct the object, or what it applies")


def test_what_destroys_data_is_not_the_first_advice() -> None:
    for reason, message, entry in CASES:
        text = after_failure(FluxFailure(reason, message))
        assert not text.startswith("Delete")
        if entry.startswith("kubernetes/") and "Immutable" not in entry:
            assert "elete the object" not in text


def test_what_flux_gave_up_says_how_it_begins_again() -> None:
    given_up = FluxFailure("UpgradeFailed", f"{RELEASE}context deadline exceeded", gave_up=True)
    assert "only after a change of the object, or after `flux reconcile helmrelease" in after_failure(
        given_up, kind="HelmRelease"
    )
    assert after_failure(given_up, kind="Kustomization").endswith("only after a change of the object.")
