"""The addresses to which somebody else's text may lead an app: a kubeconfig, or a check of a gate. Pure.

Whoever writes that text, or answers for its name, chooses the address. So an app never connects to itself, to
its link, or to what answers a platform's own questions, unless its operator names that network.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_LEFT_ALONE = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("0.0.0.0/8", "255.255.255.255/32", "64:ff9b:1::/48"),
        *("168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::254/128"),
    )
)
"""What is not a property of an address: the own network (RFC 1122, 3.2.1.3) and its broadcast (RFC 919, 7);
NAT64 within a site (RFC 8215), where nobody but the site knows which bits are the address of IPv4; Azure's
platform address (learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16), and metadata
services that are not at a link-local address."""
_LAST_BITS = tuple(
    ipaddress.IPv6Network(network)
    for network in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")
)
"""Networks with an address of IPv4 as the last 32 bits: IPv4-compatible and IPv4-mapped (RFC 4291, 2.5.5),
IPv4-translated (RFC 2765, 2.1), and NAT64 (RFC 6052, 2.1)."""
_TEREDO, _SIX_TO_FOUR = ipaddress.IPv6Network("2001::/32"), ipaddress.IPv6Network("2002::/16")
_ISATAP = (0x00005EFE, 0x02005EFE)
"""What stands before the address of IPv4 in the identifier of an ISATAP interface (RFC 5214, 6.1)."""
_IPV4 = 0xFFFFFFFF


def networks_of(text: str) -> tuple[Network, ...]:
    """Return the networks of a list that commas separate; raise ValueError."""
    return tuple(ipaddress.ip_network(part) for part in filter(None, map(str.strip, text.split(","))))


def refused_address(address: str, allowed: Sequence[Network]) -> str:
    """Return why an app does not connect to an address, "" where it may.

    With ``allowed`` networks it connects to those alone, whatever they are. An address of IPv6 with one of
    IPv4 in it leads there, so that one is judged.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "its address is none of IPv4 or IPv6"
    for meant in _leads_to(found):
        shown = f"{meant}" if meant == found else f"{found}, which leads to {meant},"
        if allowed and not any(meant in network for network in allowed):
            return f"{shown} is in none of its networks"
        if not allowed and _is_left_alone(meant):
            return f"{shown} is an address of the app's own machine, link or platform"
    return ""


def _is_left_alone(address: Address) -> bool:
    special = address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified
    return special or any(address in network for network in _LEFT_ALONE)


def _leads_to(address: Address) -> tuple[Address, ...]:
    """Return the addresses to which a packet for an address goes: mostly itself."""
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback or address.is_unspecified:
        return (address,)
    value = int(address)
    last = ipaddress.IPv4Address(value & _IPV4)
    if any(address in network for network in _LAST_BITS):
        return (last,)
    if address in _SIX_TO_FOUR:  # RFC 3056, 2
        return (ipaddress.IPv4Address(value >> 80 & _IPV4),)
    if address in _TEREDO:  # its server, and its client with all bits inverted: RFC 4380, 4
        return (ipaddress.IPv4Address(value >> 64 & _IPV4), ipaddress.IPv4Address(~value & _IPV4))
    return (address, last) if value >> 32 & _IPV4 in _ISATAP else (address,)
