"""What AKS refuses of a request, by `validate` and by the local Azure, each of which has its own reading.

Both are compared with refusals.yaml, which has answers that are recorded or documented.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.refused_specs import (
    ANSWERS,
    API_SERVERS,
    LAUNCHES,
    Answer,
    problems_of,
    refusal_of,
    spec_of,
)

IDS = [f"{number}-{answer.rule or 'taken'}" for number, answer in enumerate(ANSWERS)]


def test_the_answers_have_a_source_and_both_kinds() -> None:
    assert all(answer.source for answer in ANSWERS)
    assert all(bool(answer.rule) == bool(answer.code) == bool(answer.field) for answer in ANSWERS)
    assert {bool(answer.rule) for answer in ANSWERS} == {True, False}


@pytest.mark.parametrize("answer", ANSWERS, ids=IDS)
def test_validate_says_before_the_merge_what_aks_answers(answer: Answer) -> None:
    problems = problems_of(spec_of(answer.spec))
    assert ([*problems] == []) is not bool(answer.rule), problems
    assert not answer.field or answer.field in problems


@pytest.mark.parametrize("answer", ANSWERS, ids=IDS)
def test_the_local_azure_answers_as_aks_does(answer: Answer) -> None:
    assert refusal_of(spec_of(answer.spec)) == (answer.rule, answer.code)


@pytest.mark.parametrize(
    ("access", "refused"),
    API_SERVERS,
    ids=["200", "201", "2000 with integration", "2001 with integration"],
)
def test_an_integrated_api_server_takes_ten_times_the_ranges(access: dict[str, Any], refused: bool) -> None:
    spec = spec_of({"apiServerAccessProfile": access})
    assert ("apiServerAccessProfile.authorizedIPRanges" in problems_of(spec)) is refused
    assert refusal_of(spec)[0] == ("ranges-are-few" if refused else "")


@pytest.mark.parametrize(("pool", "refused"), LAUNCHES)
def test_trusted_launch_goes_with_fips_and_a_gpu_only_where_aks_takes_it(
    pool: dict[str, Any], refused: bool
) -> None:
    problems = problems_of(spec_of({"nodePools": [{"name": "apps", **pool}]}))
    assert [*problems] == (["nodePools[apps].securityProfile"] if refused else [])


def test_pods_in_virtual_machines_stream_no_artifacts() -> None:
    pool = {"name": "apps", "workloadRuntime": "KataVmIsolation", "osSKU": "AzureLinux"}
    streams = pool | {"artifactStreamingProfile": {"enabled": True}}
    assert [*problems_of(spec_of({"nodePools": [streams]}))] == ["nodePools[apps].workloadRuntime"]
    assert (
        problems_of(spec_of({"nodePools": [pool | {"artifactStreamingProfile": {"enabled": False}}]})) == {}
    )
