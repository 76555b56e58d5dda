"""The documented errors of Kubernetes: what its API server answers to a read, a write or a delete.

The code of an entry is the ``reason`` of the ``Status`` object, its subcode the reason of a cause. A webhook
chooses the reason of its refusal, and an error that no part of the API server has typed has none: such an
entry has the code ``ANY`` and is known by the wording that the API server itself puts before, or around, the
text of others. An answer without a ``Status`` has its HTTP status as code, such as "HTTP 503".

``source`` is a path in kubernetes/kubernetes without the name of a repository, else "owner/name path".
"""

from __future__ import annotations

from shared.cluster.failures import admission_entries
from shared.cluster.failures.admission_entries import ADMISSION, ANY, CONVENTIONS, DOCS
from shared.cluster.failures.entry import Actor, Entry
from shared.cluster.failures.errors import (
    Conflict,
    Dependency,
    Immutable,
    InvalidManifest,
    NamespaceTerminating,
    Obstructed,
    Refused,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unavailable,
)

_API_ERRORS = "staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go"
_RBAC = f"{DOCS}reference/access-authn-authz/rbac/"

_OBJECTS = (
    Entry(
        "kubernetes/NamespaceTerminating",
        NamespaceTerminating,
        ("Forbidden",),
        "The namespace is being deleted, so nothing can be created in it.",
        "Start the controller of the finalizer in the message again, or remove the finalizer if the"
        " controller never comes back.",
        Actor.PLATFORM,
        subcode="NamespaceTerminating",
        link=f"{DOCS}concepts/overview/working-with-objects/finalizers/",
        source=f"{ADMISSION}plugin/namespace/lifecycle/admission.go",
    ),
    Entry(
        "kubernetes/NamespaceProtected",
        Refused,
        ("Forbidden",),
        "Kubernetes never deletes this namespace.",
        "Take the namespace out of what is to be deleted.",
        Actor.AUTHOR,
        says=("this namespace may not be deleted",),
        link=f"{DOCS}concepts/overview/working-with-objects/namespaces/",
        source=f"{ADMISSION}plugin/namespace/lifecycle/admission.go",
    ),
    Entry(
        "kubernetes/ImmutableField",
        Immutable,
        ("Invalid",),
        "The object exists, and Kubernetes does not let this field of it change.",
        "Delete the object in the cluster, so that it is created again, or restore the old value.",
        Actor.AUTHOR,
        says=(
            *("field is immutable", "is immutable after creation", "cannot change roleref"),
            "updates to statefulset spec for fields other than",
        ),
        link=CONVENTIONS,
        source="staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go;"
        " pkg/apis/apps/validation/validation.go",
    ),
    Entry(
        "kubernetes/Invalid",
        InvalidManifest,
        ("Invalid", "HTTP 422"),
        "The API server does not accept a value of the object.",
        "Correct the field in the message, and push.",
        Actor.AUTHOR,
        link=CONVENTIONS,
        source=_API_ERRORS,
    ),
    Entry(
        "kubernetes/UnknownField",
        InvalidManifest,
        (ANY,),
        "The object has a field that its kind does not have, or a value of another type.",
        "Correct the field in the message, and push.",
        Actor.AUTHOR,
        says=("failed to create typed patch object", "failed to convert new object"),
        link=f"{DOCS}reference/using-api/server-side-apply/",
        source="staging/src/k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go",
    ),
    Entry(
        "kubernetes/BadRequest",
        InvalidManifest,
        ("BadRequest", "MethodNotAllowed", "NotAcceptable", "UnsupportedMediaType"),
        "The API server does not understand the request.",
        "Correct what the message names, and push; if it names nothing of the manifest, report it.",
        Actor.AUTHOR,
        link=CONVENTIONS,
        source=_API_ERRORS,
    ),
    Entry(
        "kubernetes/NotFound",
        Dependency,
        ("NotFound",),
        "The namespace of the object, or its kind, does not exist in the cluster yet.",
        "Check that what the message names exists.",
        Actor.NOBODY,
        link=CONVENTIONS,
        source=_API_ERRORS,
    ),
    Entry(
        "kubernetes/Conflict",
        Conflict,
        ("Conflict", "AlreadyExists", "Gone", "Expired"),
        "Somebody wrote the object at the same time, or what was read is too old.",
        "If it persists, `kubectl get --show-managed-fields` shows who else writes the object.",
        Actor.NOBODY,
        link=CONVENTIONS,
        source=_API_ERRORS,
    ),
)

_ACCESS = (
    Entry(
        "kubernetes/PermissionDenied",
        Unauthorized,
        ("Forbidden",),
        "The identity of the app has no right to this in the cluster.",
        "Make the identity in the message an administrator of the cluster: by a role of Azure"
        " (infra/access.bicep) or by a ClusterRoleBinding to cluster-admin.",
        Actor.ACCESS,
        says=('" cannot ',),
        link=_RBAC,
        source="staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go",
    ),
    Entry(
        "kubernetes/PrivilegeEscalation",
        Unauthorized,
        ("Forbidden",),
        "The identity of the app would grant rights that it does not have itself.",
        "Make the identity in the message an administrator of the cluster.",
        Actor.ACCESS,
        says=("attempting to grant rbac permissions not currently held",),
        link=f"{_RBAC}#privilege-escalation-prevention-and-bootstrapping",
        source="pkg/registry/rbac/validation/rule.go",
    ),
    Entry(
        "kubernetes/StartsUp",
        Unavailable,
        ("Forbidden",),
        "The API server has just started, and has not read yet what it needs.",
        "Nothing has to be done.",
        Actor.NOBODY,
        says=("not yet ready to handle request",),
        link=f"{DOCS}reference/access-authn-authz/admission-controllers/",
        source=f"{ADMISSION}plugin/namespace/lifecycle/admission.go",
    ),
    Entry(
        "kubernetes/Forbidden",
        Obstructed,
        ("Forbidden",),
        "A part of the API server forbids the request, and names no right that is missing.",
        "Do what the message of the API server says.",
        Actor.PLATFORM,
        link=f"{DOCS}reference/access-authn-authz/admission-controllers/",
        source=f"{ADMISSION}errors.go",
    ),
    Entry(
        "kubernetes/Unauthorized",
        Unauthenticated,
        ("Unauthorized", "HTTP 401"),
        "The API server does not know the credential of the app.",
        "Renew the kubeconfig, or let the cluster accept tokens of Microsoft Entra ID.",
        Actor.OPERATOR,
        link=f"{DOCS}reference/access-authn-authz/authentication/",
        source=_API_ERRORS,
    ),
)

_AVAILABILITY = (
    Entry(
        "kubernetes/TooManyRequests",
        Throttled,
        ("TooManyRequests", "HTTP 429"),
        "The API server has more requests than API priority and fairness lets it serve.",
        "If it persists, find out which client sends so many: `kubectl get --raw"
        " /debug/api_priority_and_fairness/dump_priority_levels` shows the levels.",
        Actor.PLATFORM,
        link=f"{DOCS}concepts/cluster-administration/flow-control/",
        source="staging/src/k8s.io/apiserver/pkg/server/filters/priority-and-fairness.go",
    ),
    Entry(
        "kubernetes/AggregatedApiDown",
        Unavailable,
        ("HTTP 503",),
        "An API that another server in the cluster serves is down.",
        "`kubectl get apiservices` shows it and its service: start the pods of that service again.",
        Actor.PLATFORM,
        says=("service unavailable", "error trying to reach service"),
        link=f"{DOCS}concepts/extend-kubernetes/api-extension/apiserver-aggregation/",
        source="staging/src/k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go",
    ),
    Entry(
        "kubernetes/Unavailable",
        Unavailable,
        ("ServiceUnavailable", "InternalError", "ServerTimeout", "Timeout", "StorageReadError"),
        "The API server could not carry out the request now.",
        "If it persists, the status of the cluster in the portal of Azure, and AKS diagnostics, show why.",
        Actor.NOBODY,
        link="https://learn.microsoft.com/azure/aks/aks-diagnostics",
        source=_API_ERRORS,
    ),
)

ENTRIES: tuple[Entry, ...] = (*admission_entries.ENTRIES, *_OBJECTS, *_ACCESS, *_AVAILABILITY)
