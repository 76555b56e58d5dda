"""E-mail, and any other service that Apprise reaches, by an address of Apprise.

The library answers with yes or no and logs the rest, in lines that may have a recipient. So its log is off,
and an error here says no more than that the service did not take the message.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import apprise

from shared.jobs.failures.errors import Dependency, Unavailable, Unexpected
from shared.notices.digest import Outgoing

MAIL = ("mailto", "mailtos")

logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)


def notify(address: str, message: Outgoing, *, only_mail: bool) -> None:
    """Send a message as plain text; raise Dependency for an address that is none, Unavailable or Unexpected.

    A redirect is not followed, whatever the address says about it. What a service of the library does not
    expect, such as a password of SMTP beyond ASCII, leaves it as any exception.
    """
    scheme = address.partition("://")[0].lower()
    if only_mail and scheme not in MAIL:
        raise Dependency("the address of the channel does not begin with mailto:// or mailtos://")
    asset = apprise.AppriseAsset(async_mode=False, http_redirects=False)
    service = apprise.Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
    if service is None:
        raise Dependency("the address of the channel is none that Apprise knows")
    safe = _schemes(service.secure_protocol)
    if safe and scheme in _schemes(service.protocol) and scheme not in (*safe, *MAIL):
        raise Dependency(f"the address of the channel sends plain text; the scheme with TLS is {safe[0]}://")
    service.redirects = False  # its "redirect=yes" would prevail over the asset
    service.notify_format = apprise.NotifyFormat.TEXT
    service.overflow_mode = apprise.OverflowMode.SPLIT
    try:
        sent = service.notify(title=message.title, body=message.text, body_format=apprise.NotifyFormat.TEXT)
    except Exception as error:  # noqa: BLE001 - a hundred services, each with a client of its own
        # Not chained: the library's text may have parts of the address.
        raise Unexpected(f"Apprise cannot deliver to the address: {type(error).__name__}") from None
    if not sent:
        raise Unavailable("the service did not take the message, or did not answer")


def _schemes(protocol: str | Sequence[str] | None) -> Sequence[str]:
    """Return the schemes of a service with or without TLS, as Apprise declares them."""
    return (protocol,) if isinstance(protocol, str) else protocol or ()
