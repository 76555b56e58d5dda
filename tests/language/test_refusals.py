"""What AKS refuses of a request, by `validate` and by the local Azure, each of which has its own reading.

Both are compared with refusals.yaml, which has answers that are recorded or documented.
"""

from __future__ import annotations

import pytest

from tests.support.refused_specs import ANSWERS, Answer, problems_of, refusal_of, spec_of

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
