"""The names of releases in AKS' vulnerability data, and what one fixes of another."""

from __future__ import annotations

import pytest

from shared.azure.availability.channels import Known, fixed, release_of_image, release_of_kubernetes


@pytest.mark.parametrize(
    ("kind", "distro"),
    [
        ("AKSUbuntu-2204gen2containerd", "AKSUbuntu-gen2-2204containerd"),
        ("AKSUbuntu-2404containerd", "AKSUbuntu-gen1-2404containerd"),
        ("AKSUbuntu-2004gen2fipscontainerd", "AKSUbuntu-gen2-2004fipscontainerd"),
        ("AKSUbuntu-2204gen2TLcontainerd", "AKSUbuntu-gen2-2204tlcontainerd"),
        ("AKSAzureLinux-V2gen2", "AKSAzureLinux-gen2"),
        ("AKSAzureLinux-V3gen2fips", "AKSAzureLinuxV3-gen2fips"),
        ("AKSCBLMariner-V2gen1", "AKSCBLMarinerV2-gen1"),
        ("AKSWindows-2022-containerd", ""),
        ("../../evil", ""),
    ],
)
def test_an_image_is_called_as_the_list_of_distros_of_the_service_has_it(kind: str, distro: str) -> None:
    found = release_of_image(kind, "202601.13.0")
    assert found == (f"vhd-releases/{distro}/202601.13.0" if distro else "")


def test_a_minor_alone_has_no_report() -> None:
    assert release_of_kubernetes("1.33.2") == "aks-k8s-releases/1.33.2"
    assert release_of_kubernetes("1.33") == ""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"CVE-1", "CVE-2"}, {"CVE-2"}, "known vulnerabilities: 1 fixed (CVE-1), 1 left"),
        ({"CVE-1"}, {"CVE-2"}, "known vulnerabilities: 1 fixed (CVE-1), 1 new (CVE-2), 1 left"),
        ({"CVE-1"}, {"CVE-1"}, "known vulnerabilities: 1 left"),
        (
            {f"CVE-{n}" for n in range(8)},
            set(),
            "known vulnerabilities: 8 fixed (CVE-7, CVE-6, CVE-5, CVE-4, CVE-3 and 3 more), 0 left",
        ),
        ("no report", {"CVE-1"}, "what is fixed is not known: no report"),
        ({"CVE-1"}, "away", "what is fixed is not known: away"),
    ],
)
def test_what_is_fixed_is_said_with_its_counts_or_it_is_not_known(
    before: set[str] | str, after: set[str] | str, said: str
) -> None:
    def known(given: set[str] | str) -> Known:
        return given if isinstance(given, str) else frozenset(given)

    assert fixed(known(before), known(after)) == said
