"""Registries and containers over the wire: the registry of the local cloud, and the blobs of Azurite.

The name of the host does not matter here: ``oci://NAME.azurecr.io/x`` is ``x`` of the one registry, and every
blob endpoint is Azurite's one account. Azurite knows no roles, so an identity reads with the key of the
account.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from functools import partial

import urllib3

from localcloud.flux.source_controller import Stores
from localcloud.flux.sources.bucket_source import Blob, BlobError
from localcloud.flux.sources.distribution_client import DistributionClient, RegistryError, Reply
from localcloud.flux.sources.fetched import SourceLogin

ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that Azurite has, and its published key."""
_SECONDS = 10.0


def wire_stores(*, registry: str, blobs: str, authority: bytes) -> Stores:
    """Return the stores at these addresses; ``authority`` has signed the certificate of the registry."""
    context = ssl.create_default_context(cadata=authority.decode())
    pool = urllib3.PoolManager(ssl_context=context, timeout=_SECONDS, retries=False)

    def send(_host: str, path: str, headers: Mapping[str, str]) -> Reply:
        try:
            reply = pool.request("GET", f"{registry}{path}", headers=dict(headers))
        except urllib3.exceptions.HTTPError as error:
            raise RegistryError(str(error)) from error
        return Reply(reply.status, dict(reply.headers), reply.data)

    def listed(_endpoint: str, container: str, prefix: str, login: SourceLogin) -> Mapping[str, Blob]:
        return _listed(f"{blobs}/{ACCOUNT}", container, prefix, login)

    return Stores(DistributionClient(send), listed)


def _listed(account: str, container: str, prefix: str, login: SourceLogin) -> Mapping[str, Blob]:
    # Here, because few clusters pull blobs, and the library takes a second to import.
    from azure.core.exceptions import AzureError
    from azure.storage.blob import ContainerClient

    key = ACCOUNT_KEY if login.client_id else login.password
    credential = {"account_name": ACCOUNT, "account_key": key}
    client = ContainerClient(account, container, credential=credential, retry_total=0)
    try:
        return {
            blob.name: Blob(str(blob.etag), partial(bytes, client.download_blob(blob.name).readall()))
            for blob in client.list_blobs(name_starts_with=prefix or None)
        }
    except (AzureError, ValueError) as error:
        text = json.dumps(str(error).splitlines()[0]) if str(error) else "no answer"
        raise BlobError(f"failed to list objects of bucket '{container}': {text}") from error
    finally:
        client.close()
