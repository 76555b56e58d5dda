"""Fields of a cluster that are Roadstead's own: adoption, suspension, the oldest node image."""

from __future__ import annotations

import pytest

from shared.kubernetes_versions import image_older
from shared.language.desired import Desired
from tests.support.resolved_fleets import edited

SUSPEND = "spec:\n  suspend: {{owner: shop, reason: audit, until: '{}'}}"


def one(old: str, new: str) -> Desired:
    fleet = edited(old, new)
    assert fleet.problems == ()
    return fleet.clusters["one"]


def test_adoption_is_stored_only_when_the_manifest_requests_it() -> None:
    adopted = one("  name: one", "  name: one\n  annotations: {roadstead.dev/adopt: when-equal, note: x}")
    other = one("  name: one", "  name: one\n  annotations: {note: x}")
    assert (adopted.adopt, other.adopt) == ("when-equal", "")
    assert adopted.document()["adopt"] == "when-equal"
    assert "adopt" not in other.document()
    assert Desired(adopted.document()) == adopted


@pytest.mark.parametrize("until", ["2026-05-01T13:00:00Z", "2026-05-01T15:00:00+02:00"])
def test_a_suspension_stores_its_end_in_utc(until: str) -> None:
    cluster = one("spec:", SUSPEND.format(until))
    assert cluster.document()["spec"]["suspend"] == {
        "owner": "shop",
        "reason": "audit",
        "until": "2026-05-01T13:00:00+00:00",
    }
    assert Desired(cluster.document()) == cluster


@pytest.mark.parametrize(
    ("image", "minimum", "older"),
    [
        ("AKSUbuntu-2204gen2containerd-202511.01.0", "202511.01", False),
        ("AKSUbuntu-2204gen2containerd-202511.01.0", "202511.01.0", False),
        ("AKSUbuntu-2204gen2containerd-202511.01.0", "202511.01.1", True),
        ("AKSUbuntu-2204gen2containerd-202510.19.1", "202511.1", True),
        ("AKSAzureLinux-V3gen2-202512.03.0", "202511.01", False),
        ("AKSWindows-2022-containerd-20348.2113.231115", "202511.01", False),
        ("AKSWindows-2022-containerd-202401.01.0", "202511.01", False),
        ("", "202511.01", False),
        ("something-else", "202511.01", False),
    ],
)
def test_an_image_of_linux_nodes_is_older_by_its_date(image: str, minimum: str, older: bool) -> None:
    assert image_older(image, minimum) is older
