"""A text of a manifest may be as long as a file: its checks take time that grows with its length."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.language.model.arm_types import BASE64
from shared.language.model.cluster.drift import covers
from shared.language.resolve.desired_fleet import DesiredFleet
from tests.support.resolved_fleets import with_change

LONG = 60_000
CLUSTER = "clusters/one/cluster.yaml"
SECONDS = 2.0
"""Of the processor; the checks took minutes where they grew with the square of the length."""


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ("location: " + "a" * LONG + "!", "spec.location"),
        (
            'location: westeurope\n  httpProxyConfig: {trustedCa: "AAAA' + r"\n" * LONG + '!"}',
            "spec.httpProxyConfig.trustedCa",
        ),
        (
            "location: westeurope\n  linuxProfile: {adminUsername: admin, ssh: {publicKeys: [{keyData: "
            + '"ssh-rsa '
            + "A" * LONG
            + r'\n"}]}}',
            "spec.linuxProfile.ssh.publicKeys[0].keyData",
        ),
    ],
    ids=["location", "base64", "key"],
)
def test_a_long_text_is_refused_at_once_and_stops_no_other_cluster(written: str, field: str) -> None:
    began = time.process_time()
    found = with_change(CLUSTER, "location: westeurope", written)
    assert time.process_time() - began < SECONDS
    assert [problem.field for problem in found.problems] == [field]
    assert list(found.clusters) == ["two"]


DIGITS = "9" * 5_000
"""More than Python turns into a number."""


@pytest.mark.parametrize(
    ("path", "written", "field"),
    [
        (
            CLUSTER,
            f'flux: {{install: extension, sources: [{{name: a, url: "https://x/y", interval: {DIGITS}s}}]}}',
            "spec.flux.sources[a].interval",
        ),
        (
            CLUSTER,
            f"flux: {{install: extension, kustomizations: [{{name: a, path: ./a, timeout: 1.{DIGITS}s}}]}}",
            "spec.flux.kustomizations[a].timeout",
        ),
        (
            "systems/shop.yaml",
            f'managedNamespaces: {{}}\n  quota: {{cpu: "{DIGITS}"}}',
            "spec.quota.cpu",
        ),
    ],
    ids=["interval", "timeout", "quota"],
)
def test_a_number_of_thousands_of_digits_is_a_problem_of_its_field(
    path: str, written: str, field: str
) -> None:
    found = with_change(path, "spec:\n", f"spec:\n  {written}\n")
    assert [(problem.file, problem.field) for problem in found.problems] == [(path, field)]
    assert "two" in found.clusters


def test_a_name_of_thousands_of_digits_that_is_removed_has_the_line_of_its_list() -> None:
    found = with_change(CLUSTER, "spec:\n", "spec:\n  azure: {properties: {x: [{name: b}]}}\n")
    assert found.source("one", f"spec.azure.properties.x[{DIGITS}]") == f"{CLUSTER}:6"
    assert found.source("one", "spec.azure.properties.x[0]") == f"{CLUSTER}:6"


def test_many_namespaces_are_compared_at_once() -> None:
    began, found = time.process_time(), _with_namespaces([f"n{number}" for number in range(18_000)])
    assert (time.process_time() - began, found.problems) < (2 * SECONDS, ())
    (twice,) = _with_namespaces(["a", "b", "a", "b"]).problems
    assert twice.message == "has a twice; keep one"


def _with_namespaces(names: list[str]) -> DesiredFleet:
    return with_change("systems/shop.yaml", "namespaces: [shop]", f"namespaces: [{', '.join(names)}]")


def test_a_pattern_of_drift_with_many_stars_is_compared_at_once() -> None:
    began = time.process_time()
    assert not covers(["tags." + "*a" * 250 + "b"], "tags." + "a" * 500)
    assert covers(["tags." + "*a" * 250], "tags." + "a" * 500)
    assert time.process_time() - began < SECONDS


@given(st.text("a*.", min_size=1, max_size=8), st.text("ab.[]", max_size=10))
def test_a_star_is_any_part_of_one_name(pattern: str, path: str) -> None:
    names = r"[^.\[\]]*".join(map(re.escape, pattern.split("*")))
    assert covers([pattern], path) is bool(re.match(rf"{names}(?![^.\[])", path))


@given(st.text("Aa1+/=\r\n !", max_size=14))
def test_base64_has_whole_groups_of_four_whatever_its_line_breaks(text: str) -> None:
    sign = r"[A-Za-z0-9+/][\r\n]*"
    same = rf"(?=[^\r\n])(?:(?:{sign}){{4}})*(?:(?:{sign}){{2}}==|(?:{sign}){{3}}=)?[\r\n]*"
    assert bool(re.fullmatch(BASE64, text)) is bool(re.fullmatch(same, text))
