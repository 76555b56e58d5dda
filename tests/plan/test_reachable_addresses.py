"""The addresses to which somebody else's text may lead an app, in every form that leads to one of IPv4."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping

import pytest

from shared.reachable_addresses import networks_of, refused_address


def after(network: str, below: int = 0, *, flipped: bool = False) -> Callable[[str], str]:
    """Return what writes an address of IPv4 into a network of IPv6, so many bits from its end."""

    def written(address: str) -> str:
        bits = int(ipaddress.IPv4Address(address)) ^ (0xFFFFFFFF if flipped else 0)
        return str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(network)) | bits << below))

    return written


FORMS: Mapping[str, Callable[[str], str]] = {
    "IPv4": str,
    "compatible": after("::"),
    "mapped": after("::ffff:0:0"),
    "translated": after("::ffff:0:0:0"),
    "NAT64": after("64:ff9b::"),
    "6to4": after("2002::1", 80),
    "Teredo server": after("2001:0:0:0:8000:0:f5ff:fffb", 64),
    "Teredo client": after("2001:0:1434:2aff::", flipped=True),
    "ISATAP": after("2603:1030::5efe:0:0"),
    "ISATAP, unique": after("2603:1030::200:5efe:0:0"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.8.8.8", "169.254.169.254", "0.1.2.3", "224.0.0.1", "168.63.129.16"]
)
def test_an_app_does_not_connect_to_itself_its_link_or_its_platform(form: str, address: str) -> None:
    reached = FORMS[form](address)
    why = refused_address(reached, ())
    assert f"{address}" in why
    assert "own machine, link or platform" in why


@pytest.mark.parametrize(
    "address",
    [
        *("::", "::1", "fe80::1%eth0", "fe80::5efe:10.0.0.4", "ff02::1", "fd00:ec2::254"),
        *("100.100.100.200", "255.255.255.255", "64:ff9b:1::10.0.0.4", "64:ff9b:1:a9fe:a9:fe00::"),
    ],
)
def test_nor_does_it_to_what_is_special_in_another_way(address: str) -> None:
    assert refused_address(address, ())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("address", ["10.0.0.4", "192.168.1.9", "20.50.2.9"])
def test_an_app_connects_to_any_other_address(form: str, address: str) -> None:
    assert refused_address(FORMS[form](address), ()) == ""
    assert refused_address("2603:1030::1", ()) == ""


@pytest.mark.parametrize("form", set(FORMS) - {"Teredo server", "Teredo client", "ISATAP", "ISATAP, unique"})
def test_with_networks_an_app_connects_to_those_alone(form: str) -> None:
    allowed, written = networks_of("10.1.0.0/16, 127.0.0.1/32"), FORMS[form]
    assert refused_address(written("10.1.200.4"), allowed) == ""
    assert refused_address(written("127.0.0.1"), allowed) == ""
    assert refused_address(written("10.2.0.4"), allowed)
    assert refused_address(written("20.50.2.9"), allowed)


def test_a_form_that_leads_to_two_addresses_needs_both_in_the_networks() -> None:
    isatap = FORMS["ISATAP"]("10.1.0.4")
    assert refused_address(isatap, networks_of("10.1.0.0/16"))
    assert refused_address(isatap, networks_of("2603:1030::/32"))
    assert refused_address(isatap, networks_of("10.1.0.0/16, 2603:1030::/32")) == ""


@pytest.mark.parametrize("text", ["", "localhost", "0177.0.0.1", "0x7f000001", "127.1", "2130706433", "::g"])
def test_what_is_no_address_is_refused(text: str) -> None:
    assert refused_address(text, ())
    assert refused_address(text, networks_of("0.0.0.0/0"))


def test_a_network_with_bits_of_a_host_is_none() -> None:
    with pytest.raises(ValueError, match="host bits"):
        networks_of("10.1.0.1/16")
