"""The entries of Kubernetes for what admission refuses: policies, webhooks, quotas, limits and sizes."""

from __future__ import annotations

from shared.cluster.failures.entry import Actor, Entry
from shared.cluster.failures.errors import (
    Dependency,
    Obstructed,
    PolicyDenied,
    Refused,
    TooLarge,
    WebhookDown,
)

ANY = "any"
"""The code of an entry whose reason may be any, or none."""
DOCS = "https://kubernetes.io/docs/"
ADMISSION = "staging/src/k8s.io/apiserver/pkg/admission/"
CONVENTIONS = (
    "https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/"
    "api-conventions.md#http-status-codes"
)
_WEBHOOKS = f"{DOCS}reference/access-authn-authz/extensible-admission-controllers/"

_POLICIES = (
    Entry(
        "kubernetes/AksDenied",
        Refused,
        (ANY,),
        "AKS itself protects the object: its own webhook or policy refuses the change.",
        "Change the object through Azure, or leave it as AKS has it.",
        Actor.AUTHOR,
        says=('azmk8s.io" denied the request', "validatingadmissionpolicy 'aks-managed-"),
        link="https://learn.microsoft.com/azure/aks/support-policies",
        source="nestybox/sysbox issue 816, Azure/AKS issues 5410 and 5645",
    ),
    Entry(
        "kubernetes/ManagedByArm",
        Refused,
        (ANY,),
        "Azure manages the namespace, or an object in it, so that it changes through Azure alone.",
        "Change the managed namespace through Azure, or take the object out of what Flux applies.",
        Actor.AUTHOR,
        says=("it is managed by arm",),
        link="https://learn.microsoft.com/troubleshoot/azure/azure-kubernetes/extensions/troubleshoot-managed-namespaces",
        source="MicrosoftDocs/SupportArticles-docs support/azure/azure-kubernetes/extensions/"
        "troubleshoot-managed-namespaces.md",
    ),
    Entry(
        "kubernetes/AzurePolicyDenied",
        PolicyDenied,
        (ANY,),
        "Azure Policy for Kubernetes refuses the object: it violates an assignment with the effect deny.",
        "Exclude the namespace of the object in `excludedNamespaces` of the assignment, or set its effect to"
        " audit; the add-on fetches that within 15 minutes.",
        Actor.POLICY,
        says=("denied the request: [azurepolicy-",),
        link="https://learn.microsoft.com/azure/governance/policy/concepts/policy-for-kubernetes",
        source="MicrosoftDocs/azure-docs articles/governance/policy/concepts/policy-for-kubernetes.md",
    ),
    Entry(
        "kubernetes/AdmissionWebhookDenied",
        PolicyDenied,
        (ANY,),
        "An admission webhook, such as that of Gatekeeper or Kyverno, refuses the object.",
        "Exempt the object or its namespace in the policy, change the policy, or commit what it allows.",
        Actor.POLICY,
        says=('" denied the request',),
        link=_WEBHOOKS,
        source=f"{ADMISSION}plugin/webhook/errors/statuserror.go",
    ),
    Entry(
        "kubernetes/ValidatingAdmissionPolicyDenied",
        PolicyDenied,
        (ANY,),
        "A ValidatingAdmissionPolicy refuses the object, or its own configuration has an error.",
        "Exempt the object in the policy or in its binding, change the policy, or commit what it allows.",
        Actor.POLICY,
        says=("validatingadmissionpolicy '",),
        link=f"{DOCS}reference/access-authn-authz/validating-admission-policy/",
        source=f"{ADMISSION}plugin/policy/validating/dispatcher.go",
    ),
    Entry(
        "kubernetes/PodSecurityDenied",
        PolicyDenied,
        (ANY,),
        "The Pod Security level of the namespace does not allow the pod.",
        "Set the label `pod-security.kubernetes.io/enforce` of the namespace to a level that allows it, or"
        " change the pod.",
        Actor.POLICY,
        says=('violates podsecurity "',),
        link=f"{DOCS}concepts/security/pod-security-admission/",
        source="staging/src/k8s.io/pod-security-admission/admission/admission.go",
    ),
)

_WEBHOOK_FAILURES = (
    Entry(
        "kubernetes/WebhookFailed",
        WebhookDown,
        (ANY,),
        "An admission webhook does not answer, or answers what the API server does not understand, and its"
        " `failurePolicy` refuses the request then.",
        "Start the pods of the service behind the webhook again, renew its certificate if that expired, or"
        " delete the configuration of a webhook that is no longer installed.",
        Actor.PLATFORM,
        says=('failed calling webhook "',),
        link=_WEBHOOKS,
        source="staging/src/k8s.io/apiserver/pkg/util/webhook/error.go",
    ),
    Entry(
        "kubernetes/ConversionWebhookFailed",
        WebhookDown,
        (ANY,),
        "The webhook that converts the objects of a custom kind between versions does not answer, or fails.",
        "Start the pods of the service behind the conversion webhook of the kind in the message again.",
        Actor.PLATFORM,
        says=("conversion webhook for ",),
        link=f"{DOCS}tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/",
        source="staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go",
    ),
    Entry(
        "kubernetes/WebhookWithoutDryRun",
        Obstructed,
        (ANY,),
        "An admission webhook has side effects, so the API server cannot try a write without making it.",
        "Set `sideEffects` of the webhook to None or NoneOnDryRun.",
        Actor.PLATFORM,
        says=('" does not support dry run',),
        link=f"{_WEBHOOKS}#side-effects",
        source=f"{ADMISSION}plugin/webhook/errors/statuserror.go",
    ),
)

_LIMITS = (
    Entry(
        "kubernetes/ExceededQuota",
        Obstructed,
        ("Forbidden",),
        "A ResourceQuota of the namespace is used up.",
        "Raise the quota, or delete what nobody needs in the namespace.",
        Actor.PLATFORM,
        says=("exceeded quota: ", "insufficient quota to "),
        link=f"{DOCS}concepts/policy/resource-quotas/",
        source=f"{ADMISSION}plugin/resourcequota/controller.go",
    ),
    Entry(
        "kubernetes/QuotaDemandsLimits",
        Obstructed,
        ("Forbidden",),
        "A ResourceQuota of the namespace demands requests or limits that the object does not have.",
        "Give the containers the requests and limits in the message, or give the namespace a LimitRange.",
        Actor.WORKLOAD,
        says=("failed quota: ",),
        link=f"{DOCS}concepts/policy/resource-quotas/",
        source=f"{ADMISSION}plugin/resourcequota/controller.go",
    ),
    Entry(
        "kubernetes/QuotaNotCounted",
        Dependency,
        ("Forbidden",),
        "Kubernetes has not counted yet what a new ResourceQuota limits.",
        "If it persists, find out why the controller manager of the cluster does not run.",
        Actor.NOBODY,
        says=("status unknown for quota: ",),
        link=f"{DOCS}concepts/policy/resource-quotas/",
        source=f"{ADMISSION}plugin/resourcequota/controller.go",
    ),
    Entry(
        "kubernetes/LimitRange",
        Obstructed,
        ("Forbidden",),
        "A LimitRange of the namespace does not allow the requests or limits of the object.",
        "Change the LimitRange, or the requests and limits in the message.",
        Actor.PLATFORM,
        says=(" usage per ", "limit to request ratio per "),
        link=f"{DOCS}concepts/policy/limit-range/",
        source="plugin/pkg/admission/limitranger/admission.go",
    ),
    Entry(
        "kubernetes/RequestTooLarge",
        TooLarge,
        ("RequestEntityTooLarge", "HTTP 413"),
        "The request is larger than the API server reads.",
        "Make the object smaller, or split it.",
        Actor.AUTHOR,
        link=CONVENTIONS,
        source="staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go",
    ),
    Entry(
        "kubernetes/ObjectTooLarge",
        TooLarge,
        (ANY,),
        "The object is larger than the store of the API server takes.",
        "Make the object smaller, or split it.",
        Actor.AUTHOR,
        says=("etcdserver: request is too large", "trying to send message larger than max"),
        link=f"{DOCS}concepts/configuration/configmap/#motivation",
        source="staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go",
    ),
    Entry(
        "kubernetes/FieldTooLong",
        TooLarge,
        ("Invalid",),
        "A field of the object is longer than Kubernetes allows: 1 MiB for the data of a ConfigMap or Secret,"
        " 256 KiB for all annotations.",
        "Shorten the field in the message, or split the object.",
        Actor.AUTHOR,
        subcode="FieldValueTooLong",
        link=f"{DOCS}concepts/configuration/configmap/#motivation",
        source="staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go",
    ),
)

ENTRIES = (*_POLICIES, *_WEBHOOK_FAILURES, *_LIMITS)
