"""A container of Blob Storage behind the port of exports, with the errors of Azure translated."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import requests
from azure.core.credentials import TokenCredential
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.storage.blob import BlobServiceClient, ContainerClient

from shared.adapters.transport import pooled_transport
from shared.cluster.failures.errors import Unauthenticated, Unavailable, from_http

CONTAINER = "exports"
BLOCK_BYTES = 4 << 20
"""The size of a part: a blob has at most 50,000 of them.

Source: learn.microsoft.com/rest/api/storageservices/put-block-list.
"""


def exports_container(
    *, connection_string: str | None, url: str | None, credential: TokenCredential
) -> ContainerClient:
    """Return a client: from a connection string if given, else of the container at an address."""
    if connection_string:
        address = BlobServiceClient.from_connection_string(connection_string).url
        return ContainerClient.from_connection_string(connection_string, CONTAINER, **_how(address))
    return ContainerClient.from_container_url(url or "", credential, **_how(url or ""))


def _how(url: str) -> dict[str, Any]:
    transport = pooled_transport(url, connect_seconds=5, read_seconds=20)
    sizes = {"max_single_put_size": BLOCK_BYTES, "max_block_size": BLOCK_BYTES}
    return {"transport": transport, "retry_total": 0, "max_chunk_get_size": BLOCK_BYTES, **sizes}


class BlobExports:
    """The exports in a container, which the deployment creates; the first write creates a missing one."""

    def __init__(self, container: ContainerClient) -> None:
        self._container = container

    def names(self, prefix: str) -> Collection[str]:
        """Return the names that begin with a text."""
        with _translated():
            try:
                return [*self._container.list_blob_names(name_starts_with=prefix)]
            except ResourceNotFoundError:
                return []

    def write(self, name: str, lines: Iterable[str]) -> None:
        """Write a file, in parts as the lines come; one that is there already stays as it is."""
        with _translated(), suppress(ResourceExistsError):
            if not self._container.exists():
                self._container.create_container()
            # Without a length, the library sends a block whenever it has read enough.
            self._container.upload_blob(name, (f"{line}\n".encode() for line in lines), overwrite=False)

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of a file, read in parts."""
        rest = b""
        with _translated():
            for part in self._container.download_blob(name).chunks():
                *whole, rest = (rest + part).split(b"\n")
                yield from (line.decode() for line in whole)


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the library's errors into ours."""
    try:
        yield
    except ClientAuthenticationError as error:
        raise Unauthenticated("Blob Storage refused our identity") from error
    except HttpResponseError as error:
        code = str(getattr(error.error_code, "value", error.error_code or ""))  # type: ignore[attr-defined]
        if error.status_code is None:
            raise Unavailable("Blob Storage gave an answer that cannot be read") from error
        raise from_http(error.status_code, code, f"Blob Storage: {code}") from error
    except (AzureError, requests.RequestException) as error:
        raise Unavailable(f"Blob Storage did not answer ({type(error).__name__})") from error
