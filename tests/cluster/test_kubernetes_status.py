"""Whatever an API server answers, its refusal is one error, short, and from the entry that is documented."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cluster.failures import errors
from shared.cluster.failures.catalogue import KUBERNETES
from shared.cluster.failures.errors import NamespaceTerminating, ReconcileError, Unauthorized, from_http
from shared.cluster.failures.kubernetes_status import LONGEST, ApiRefusal, StatusCause, error_of

REASONS = {
    **{"Unauthorized": 401, "Forbidden": 403, "NotFound": 404, "AlreadyExists": 409, "Conflict": 409},
    **{"Gone": 410, "Invalid": 422, "ServerTimeout": 500, "StorageReadError": 500, "Timeout": 504},
    **{"TooManyRequests": 429, "BadRequest": 400, "MethodNotAllowed": 405, "NotAcceptable": 406},
    **{"RequestEntityTooLarge": 413, "UnsupportedMediaType": 415, "InternalError": 500, "Expired": 410},
    "ServiceUnavailable": 503,
}
"""Every StatusReason of kubernetes/apimachinery ``pkg/apis/meta/v1/types.go``, with its HTTP status."""
LONG = "secret " * 1000
TEXTS = st.text(max_size=40) | st.sampled_from(
    [
        'admission webhook "a.b" denied the request: [c] d',
        'failed calling webhook "a.b": x',
        "ValidatingAdmissionPolicy 'p' denied request: x",
        "exceeded quota: q, requested: x",
        "conversion webhook for example.org/v1, Kind=Widget failed: x",
    ]
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "reason": TEXTS | st.sampled_from([*REASONS]) | st.none() | st.integers(),
        "message": TEXTS | st.none() | st.integers(),
        "details": st.none()
        | st.integers()
        | st.fixed_dictionaries(
            {},
            optional={
                "causes": st.none()
                | st.lists(
                    st.none() | st.dictionaries(st.sampled_from(["reason", "message", "field"]), TEXTS)
                ),
                "retryAfterSeconds": st.none() | st.integers() | TEXTS,
            },
        ),
    },
)


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_of_kubernetes_has_an_entry(reason: str) -> None:
    refusal = ApiRefusal(REASONS[reason], reason, "because")
    entry = refusal.entry
    assert entry is not None
    assert reason in entry.codes
    assert type(error_of(refusal, "Deployment web in shop")) is entry.kind


def test_every_entry_has_its_source_and_says_who_acts() -> None:
    keys = [entry.key for entry in KUBERNETES.entries]
    assert len(keys) == len(set(keys))
    for entry in KUBERNETES.entries:
        assert entry.key.startswith("kubernetes/")
        assert entry.source
        assert entry.link.startswith("https://")
        assert entry.meaning.endswith(".")
        assert entry.remedy.endswith(".")


@given(st.integers(300, 599), BODIES, TEXTS, st.booleans())
def test_any_answer_is_an_error(status: int, body: dict[str, object], text: str, secret: bool) -> None:
    error = error_of(ApiRefusal.of(status, body, text=text), "Deployment web in shop", secret=secret)
    assert isinstance(error, ReconcileError)
    assert str(error).startswith("Deployment web in shop: ")
    assert not str(error).endswith(": ")


@pytest.mark.parametrize(
    "start",
    [
        "",
        'admission webhook "a.b" denied the request: ',
        'failed calling webhook "a.b": ',
        "exceeded quota: q, ",
    ],
)
def test_what_others_say_is_cut_and_a_secret_shows_none_of_it(start: str) -> None:
    refusal = ApiRefusal(403, "Forbidden", start + LONG)
    assert len(str(error_of(refusal, "Deployment web in shop"))) < LONGEST + 200
    assert "secret" not in str(error_of(refusal, "Secret web in shop", secret=True))


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ('pods "a" is forbidden: User "b" cannot get resource "pods" in API group ""', Unauthorized),
        ('admission webhook "a.b" denied the request: User "x" cannot do this', errors.PolicyDenied),
        ('admission webhook "a.azmk8s.io" denied the request: managed by ARM', errors.Refused),
        (  # Azure/AKS issue 5645
            "ValidatingAdmissionPolicy 'aks-managed-protect-system-namespaces' with binding"
            " 'aks-managed-protect-system-namespaces-binding' denied request: it is a system namespace",
            errors.Refused,
        ),
        ("something of a plugin that nobody knows", errors.Obstructed),
    ],
)
def test_only_a_missing_right_is_a_missing_role(message: str, kind: type[ReconcileError]) -> None:
    assert type(error_of(ApiRefusal(403, "Forbidden", message), "Pod a in b")) is kind


def test_a_policy_that_chooses_the_reason_unauthorized_is_no_credential() -> None:
    said = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: only the platform team"
    error = error_of(ApiRefusal(401, "Unauthorized", f'pods "a" is forbidden: {said}'), "Pod a in b")
    assert type(error) is errors.PolicyDenied


def test_the_namespace_that_is_being_deleted_is_the_one_of_the_cause() -> None:
    cause = StatusCause("NamespaceTerminating", "namespace shop is being terminated", "metadata.namespace")
    error = error_of(ApiRefusal(403, "Forbidden", "no", (cause,)), "ConfigMap a in shop")
    assert isinstance(error, NamespaceTerminating)
    assert error.namespace == "shop"


def test_fields_with_different_faults_are_an_invalid_manifest() -> None:
    fixed = StatusCause("FieldValueInvalid", "Invalid value: 1: field is immutable", "spec.selector")
    absent = StatusCause("FieldValueRequired", "Required value", "spec.template")
    forbidden = StatusCause(
        "FieldValueForbidden", "Forbidden: updates to statefulset spec for fields other than", "spec"
    )
    for causes, kind in (
        ((fixed, fixed), errors.Immutable),
        ((forbidden,), errors.Immutable),
        ((fixed, absent), errors.InvalidManifest),
    ):
        message = "; ".join(cause.message for cause in causes)
        assert type(error_of(ApiRefusal(422, "Invalid", message, causes), "Pod a in b")) is kind


def test_an_answer_that_is_not_documented_is_classed_by_its_status() -> None:
    for status in (418, 404, 403, 502):
        error = error_of(ApiRefusal(status, "", "odd"), "Pod a in b")
        assert type(error) is type(from_http(status, "", "odd"))


def test_the_wait_in_the_details_counts_where_no_header_has_one() -> None:
    body = {"reason": "ServerTimeout", "details": {"retryAfterSeconds": 7}}
    assert ApiRefusal.of(500, body).retry_after == 7
    assert ApiRefusal.of(500, body, retry_after=2).retry_after == 2
