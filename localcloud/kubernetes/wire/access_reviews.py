"""SelfSubjectAccessReview: what a caller may do. There is no RBAC, so whoever is admitted may do everything.

Source of the shape: kubernetes/api ``authorization/v1/types.go``.
"""

from __future__ import annotations

from typing import Any

from localcloud.kubernetes.world.api_errors import bad_request

PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_REASON = "the local cloud has no RBAC: whoever is admitted is an administrator"


def reviewed(body: Any) -> dict[str, Any]:
    """Return the review with its answer; raise ApiError unless it asks about one resource or path."""
    spec = body.get("spec") if isinstance(body, dict) else None
    if not isinstance(spec, dict) or ("resourceAttributes" in spec) == ("nonResourceAttributes" in spec):
        raise bad_request("exactly one of nonResourceAttributes or resourceAttributes must be specified")
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    return {**kind, "metadata": {}, "spec": spec, "status": {"allowed": True, "reason": _REASON}}
