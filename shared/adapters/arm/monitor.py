"""Azure Monitor: the activity log of a subscription."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from azure.core.exceptions import HttpResponseError
from azure.core.paging import ItemPaged
from azure.core.rest import HttpRequest
from azure.mgmt.core import ARMPipelineClient
from azure.mgmt.core.exceptions import ARMErrorFormat

from shared.adapters.arm.arm_requests import PUBLIC_CLOUD


class Monitor:
    """The one request of Azure Monitor, through the pipeline that all management libraries share.

    azure-mgmt-monitor would be hundreds of models in the package for a single GET.
    """

    def __init__(
        self, _credential: Any, subscription: str, *, base_url: str = PUBLIC_CLOUD, **pipeline: Any
    ) -> None:
        self._version = pipeline.pop("api_version", "2015-04-01")
        self._client: Any = ARMPipelineClient(base_url=base_url, **pipeline)
        path = "/providers/microsoft.insights/eventtypes/management/values"
        self._url = f"{base_url}/subscriptions/{subscription}{path}"
        self.activity_logs = self

    def list(self, filter: str) -> ItemPaged[dict[str, Any]]:
        """Return the events that a filter leaves, page by page."""

        def get(link: str | None) -> Any:
            query = {"api-version": self._version, "$filter": filter}
            request = HttpRequest("GET", link or self._url, params=None if link else query)
            response = self._client.send_request(request)
            if response.status_code != HTTPStatus.OK:
                raise HttpResponseError(response=response, error_format=ARMErrorFormat)
            return response.json()

        return ItemPaged(get, lambda page: (page.get("nextLink") or None, page.get("value") or ()))

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
