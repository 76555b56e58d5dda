"""The Kubernetes API of a private cluster: where it does not answer, the network is the likely reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from shared.jobs.failures.errors import PrivateUnreachable, Unavailable
from shared.ports import KubernetesApi


def private_api(api: KubernetesApi) -> KubernetesApi:
    """Return the API with an error of its own where it does not answer."""
    return cast(KubernetesApi, _PrivateApi(api))


class _PrivateApi:
    def __init__(self, inner: KubernetesApi) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return _told(found) if callable(found) else found


def _told(call: Callable[..., Any]) -> Callable[..., Any]:
    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except Unavailable as error:
            raise PrivateUnreachable(
                f"the cluster is private, and the app may have no way to it: {error}",
                code=error.code,
                request_id=error.request_id,
                retry_after=error.retry_after,
            ) from None

    return told
