"""The addresses to which somebody else's text may lead an app: a kubeconfig, or a check of a gate. Pure.

Whoever writes that text, or answers for its name, chooses the address. So an app never connects to itself, to
its link, or to what answers a platform's own questions, unless its operator names that network.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_OF_PLATFORMS = tuple(
    ipaddress.ip_network(each) for each in ("168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::254/128")
)
"""Azure's platform address (learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16), and
metadata services that are not at a link-local address."""


def networks_of(text: str) -> tuple[Network, ...]:
    """Return the networks of a list that commas separate; raise ValueError."""
    return tuple(ipaddress.ip_network(part) for part in filter(None, map(str.strip, text.split(","))))


def refused_address(address: str, allowed: Sequence[Network]) -> str:
    """Return why an app does not connect to an address, "" where it may.

    With ``allowed`` networks it connects to those alone, whatever they are.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    found = mapped or found
    if allowed:
        return "" if any(found in network for network in allowed) else f"{found} is in none of its networks"
    special = found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified
    if special or any(found in network for network in _OF_PLATFORMS):
        return f"{found} is an address of the app's own machine, link or platform"
    return ""
