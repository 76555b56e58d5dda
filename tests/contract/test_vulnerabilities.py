"""What AKS publishes of vulnerabilities, in memory and over the wire.

The bodies are those of the examples of learn.microsoft.com/azure/aks/security-vulnerability-api-reference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from localcloud.common.certificates import Authority
from localcloud.monitor.monitor_server import MonitorServer
from localcloud.monitor.vulnerability_data import EXAMPLES, MemoryVulnerabilities
from shared.adapters import answers
from shared.adapters.vulnerabilities import MAX_BYTES, VulnerabilityReports
from shared.cluster.failures.errors import ReconcileError, Throttled, Unavailable, Unexpected
from shared.ports import Vulnerabilities
from tests.support.odd_bodies import odd_bodies
from tests.support.receivers import Inbox, slow_server

SECRET = "a-text-of-the-answer-4821"
IMAGE = "vhd-releases/AKSUbuntu-gen2-2204containerd/202601.13.0"
PACKAGE = {"name": "libtasn1-6", "version": "4.18.0-4ubuntu0.2", "active_cves": [{"id": "CVE-2021-46848"}]}
REPORT = {
    "distro_name": "AKSUbuntu/gen2/2204containerd",
    "vhd_release_version": "202601.13.0",
    "previous_vhd_release_version": "202512.06.0",
    "os_package_targets": [{**PACKAGE, "mitigated_cves_from_previous_release": [{"id": "CVE-2025-13151"}]}],
    "container_targets": [{"container_image": "a", "active_cves": [{"id": "GHSA-2464-8j7c-4cjm"}]}],
}


@pytest.fixture(params=["memory", "adapter"])
def port(request: pytest.FixtureRequest, trusted: Authority) -> Iterator[Vulnerabilities]:
    if request.param == "memory":
        yield MemoryVulnerabilities()
        return
    with MonitorServer(trusted, accepts=lambda *_: False) as server:
        server.vulnerabilities.reports["aks-k8s-releases/1.33.2"] = ("CVE-2025-47912", "CVE-2025-58181")
        yield VulnerabilityReports(server.url)


@pytest.mark.parametrize("release", [*EXAMPLES])
def test_a_report_has_what_a_release_still_has_of_packages_and_of_containers(
    port: Vulnerabilities, release: str
) -> None:
    assert port.active(release) == frozenset(EXAMPLES[release])


@pytest.mark.parametrize("release", ["aks-k8s-releases/1.99.0", IMAGE])
def test_a_release_without_a_report_has_none(port: Vulnerabilities, release: str) -> None:
    assert port.active(release) is None


def test_a_version_of_kubernetes_has_a_report_of_containers_alone(trusted: Authority) -> None:
    with MonitorServer(trusted, accepts=lambda *_: False) as server:
        server.vulnerabilities.reports["aks-k8s-releases/1.33.2"] = ("CVE-2025-47912",)
        reports = VulnerabilityReports(f"{server.url}/")
        assert reports.active("aks-k8s-releases/1.33.2") == frozenset({"CVE-2025-47912"})


# Answers that differ from what was expected


def test_what_an_earlier_release_had_is_not_what_a_release_has(inbox: Inbox) -> None:
    inbox.default = (200, {}, json.dumps(REPORT))
    assert VulnerabilityReports(inbox.url).active(IMAGE) == frozenset(
        {"CVE-2021-46848", "GHSA-2464-8j7c-4cjm"}
    )
    ((path, headers, _),) = inbox.got
    assert path == f"/api/v1/{IMAGE}/scan-reports"
    assert "authorization" not in headers


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (200, f"<html>{SECRET}", Unexpected),
        (200, json.dumps({"message": SECRET}), Unexpected),
        (200, " " * (MAX_BYTES + 1), Unavailable),
        (302, SECRET, Unexpected),
        (429, SECRET, Throttled),
        (503, SECRET, Unavailable),
    ],
)
def test_an_answer_that_is_no_report_is_an_error_without_its_text(
    inbox: Inbox, status: int, body: str, error: type[ReconcileError]
) -> None:
    inbox.default = (status, {"Location": "https://127.0.0.1:1"}, body)
    with pytest.raises(error) as raised:
        VulnerabilityReports(inbox.url).active(IMAGE)
    assert SECRET not in f"{raised.value!r} {raised.value.__cause__!r}"


def test_a_service_that_is_away_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        VulnerabilityReports("https://127.0.0.1:1").active(IMAGE)


def test_a_service_that_sends_a_byte_now_and_then_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_SECONDS", 0.5)
    with slow_server(1_000) as url, pytest.raises(Unavailable, match="takes longer than"):
        VulnerabilityReports(url).active(IMAGE)


def test_an_odd_report_is_an_error_or_a_set_of_ids(inbox: Inbox) -> None:
    for body in odd_bodies(REPORT):
        inbox.default = (200, {}, body)
        try:
            found = VulnerabilityReports(inbox.url).active(IMAGE)
        except ReconcileError:
            continue
        assert found is not None
        assert found <= {"CVE-2021-46848", "GHSA-2464-8j7c-4cjm"}
