"""Signing in with Entra through azure-identity, which is imported when a token is needed. Nothing is
stored.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cli.errors import ApiError, UsageError
from cli.fleet_api.contexts import FleetContext
from cli.text import line

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential

Token = Callable[[], str]
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SECONDS = 30


def token_of(context: FleetContext) -> Token:
    """Return what gives the token for each call of a context's app: in memory, new when it expires.

    Raise UsageError for an address over which everybody could read the token. So does the first call where
    the library is not installed.
    """
    try:
        address = urlsplit(context.url)
    except ValueError as error:
        raise UsageError(f"{context.url} is not an address") from error
    if address.scheme != "https" and address.hostname not in _LOOPBACK:
        raise UsageError(f"{context.url} does not begin with https://; a token is not sent there")
    made: list[TokenCredential] = []

    def token() -> str:
        try:
            from azure.core.exceptions import ClientAuthenticationError
        except ImportError as error:
            remedy = "install it: `uv tool install 'roadstead[entra]'`, or the same with pipx"
            raise UsageError(f"to sign in needs the library azure-identity; {remedy}") from error

        try:
            if not made:
                made.append(_credential(context))
            return made[0].get_token(context.scope).token
        except ClientAuthenticationError as error:
            text = str(error.message or error).partition("To mitigate")[0]
            reason = line(" ".join(text.split()))
            remedy = "run az login, or choose another way with ROADSTEAD_SIGN_IN"
            raise ApiError(f"no token for {context.scope}: {reason}; {remedy}") from error
        except ValueError as error:  # of a scope or a tenant that is none
            raise UsageError(f"no token for {context.scope}: {line(str(error))}") from error

    return token


def _credential(context: FleetContext) -> TokenCredential:
    """Return the credential of a way to sign in; without one, the managed identity or az, then a person."""
    from azure.identity import (
        AzureCliCredential,
        ChainedTokenCredential,
        DeviceCodeCredential,
        InteractiveBrowserCredential,
        ManagedIdentityCredential,
    )

    logging.getLogger("azure").addHandler(logging.NullHandler())  # the error says it all
    tenant: dict[str, Any] = {"tenant_id": context.tenant} if context.tenant else {}
    ways: dict[str, Callable[[], TokenCredential]] = {
        "az": lambda: AzureCliCredential(**tenant, process_timeout=_SECONDS),
        "browser": lambda: InteractiveBrowserCredential(**tenant),
        "device-code": lambda: DeviceCodeCredential(**tenant, prompt_callback=_show_code),
        "managed-identity": lambda: ManagedIdentityCredential(client_id=os.environ.get("AZURE_CLIENT_ID")),
    }
    if context.sign_in:
        return ways[context.sign_in]()
    if "IDENTITY_ENDPOINT" in os.environ:
        return ways["managed-identity"]()
    if not sys.stderr.isatty():
        return ways["az"]()
    return ChainedTokenCredential(*(ways[way]() for way in ("az", "browser", "device-code")))


def _show_code(address: str, code: str, _expires: object) -> None:
    sys.stderr.write(f"To sign in, open {address} and enter the code {code}\n")
