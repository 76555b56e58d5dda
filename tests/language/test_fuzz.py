"""Any bytes in a repository give problems or clusters, never an exception, and in bounded work."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.language.desired import Desired
from shared.language.resolve.repository_layout import Files, manifest_paths
from shared.language.resolve.resolver import resolve
from shared.language.yaml.parser import YamlError, parse, value_of
from tests.support import fleet_files
from tests.support.counted_work import lines_of
from tests.support.resolved_fleets import GOOD, resolved
from tests.support.sample import examples

PATHS = sorted(GOOD)
MOST, MOST_PER_BYTE = 60_000, 30
"""The lines of Python that a case may run: three times those of the valid fleet, and some for each byte."""
bounded = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])

TOKENS = st.sampled_from(
    [
        r"{name}",
        r"{class}",
        r"null",
        r"~",
        r"[]",
        r"{}",
        r"-",
        r":",
        r"&a",
        r"*a",
        r"!!str",
        r'"',
        r"'",
        r"|",
        r">",
        r"---",
        r"1e999",
        r"-0",
        r".inf",
        r"0x1",
        r"#",
        r"class:\x20web",
        r"count:\x20-1",
        r"10.0.0.0/33",
        r"::/0",
        r"fe80::1%eth0",
        r"<<:",
        r"$patch:\x20delete",
        r"\t",
        r"\0",
        r"\r\n",
        r"\n---\n",
        r"\ufeff",
        r"\u2028",
        r"\ud7ff",
    ]
).map(lambda token: token.encode().decode("unicode_escape")) | st.sampled_from(["9" * 400, "a" * 300])
"""Tokens with a meaning in YAML, in numbers, in networks and in manifests."""
NAMES = st.sampled_from(
    [
        "clusters",
        "clusters/",
        "clusters/one",
        "clusters/one/cluster.yaml/x",
        "clusters//cluster.yaml",
        "clusters/two.yaml",
        "clusters/é/cluster.yaml",
        "clusters/one/cluster.yml",
        "clusters/a/b/c/cluster.yaml",
        "classes",
        "classes/.yaml",
        "classes/a/b.yaml",
        "environments",
        "environments/x.yml",
        "systems",
        "systems/Ä.yaml",
        "fleet.yaml/x",
    ]
)


@pytest.fixture(autouse=True, scope="module")
def _models_are_built() -> None:
    """Resolve a fleet, because pydantic builds a model at its first use, which is no work of a case."""
    resolved(good())
    resolved(fleet_files.fleet("one", "two"))


def survives(files: dict[str, bytes], other: frozenset[str] = frozenset()) -> None:
    """Resolve the files, and use everything that the result offers, in bounded work."""
    size = sum(map(len, files.values()))
    assert lines_of(lambda: _use(files, other)) <= MOST + MOST_PER_BYTE * size
    for content in files.values():
        _has_one_value(content)


def _has_one_value(content: bytes) -> None:
    """Check that a file that is read without places is read as with them."""
    value = value_of(content)
    try:
        parsed = parse(content, "file").plain()
    except YamlError:
        assert value is None
    else:
        assert value is None or repr(value) == repr(parsed)


def _use(files: dict[str, bytes], other: frozenset[str]) -> None:
    tree = Files(dict.fromkeys(files, "blob"), other)
    fleet = resolve("example", tree, files)
    assert set(manifest_paths(tree)) <= files.keys()
    assert set(fleet.clusters) | set(fleet.invalid) == set(tree.folders)
    assert not set(fleet.clusters) & set(fleet.invalid)
    assert all(fleet.invalid.values())
    for name, cluster in fleet.clusters.items():
        assert Desired(cluster.document()) == cluster
        assert fleet.explained(name) is not None
        assert fleet.source(name, "spec.nodePools[system].count")
    for problem in fleet.problems:
        assert str(problem).isprintable()
        assert len(problem.message) <= 1000


def good() -> dict[str, bytes]:
    return {path: text.encode() for path, text in GOOD.items()}


@pytest.mark.lives
@bounded
@given(
    st.dictionaries(st.sampled_from(PATHS), st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
)
def test_any_bytes_in_any_file_are_resolved_or_reported(changed: dict[str, bytes]) -> None:
    survives(good() | changed)


EDITS: list[Callable[[str, int, int, str], str]] = [
    lambda text, at, _end, token: text[:at] + token + text[at:],
    lambda text, at, end, _token: text[:at] + text[end:],
    lambda text, at, end, token: text[:at] + token + text[end:],
    lambda text, at, end, _token: text[:end] + text[at:],
]
MUTATION = st.tuples(
    st.sampled_from(PATHS),
    st.sampled_from(EDITS),
    st.floats(0, 1),
    st.floats(0, 0.2),
    TOKENS | st.text(max_size=4),
)


@pytest.mark.lives
@bounded
@given(st.lists(MUTATION, min_size=1, max_size=4))
def test_any_mutation_of_a_valid_fleet_is_resolved_or_reported(
    mutations: list[tuple[str, Callable[[str, int, int, str], str], float, float, str]],
) -> None:
    texts = dict(GOOD)
    for path, edit, at, length, token in mutations:
        start = int(at * len(texts[path]))
        texts[path] = edit(texts[path], start, start + int(length * len(texts[path])), token)
    survives({path: text.encode("utf-8", "replace") for path, text in texts.items()})


LINES = sorted({line for text in GOOD.values() for line in text.splitlines()})


@pytest.mark.lives
@bounded
@given(
    st.sampled_from([path for path in PATHS if path.endswith(".yaml")]),
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(LINES)), min_size=1, max_size=5),
)
def test_any_valid_line_in_any_wrong_place_is_resolved_or_reported(
    path: str, moved: list[tuple[int, str]]
) -> None:
    lines = GOOD[path].splitlines()
    for at, line in moved:
        lines.insert(at % (len(lines) + 1), line)
    survives(good() | {path: "\n".join(lines).encode()})


@pytest.mark.lives
@bounded
@given(
    st.sets(NAMES | st.sampled_from(PATHS)),
    st.sets(NAMES | st.sampled_from(PATHS)),
    st.sets(st.sampled_from(PATHS)),
)
def test_any_tree_of_files_and_links_is_resolved_or_reported(
    plain: set[str], links: set[str], missing: set[str]
) -> None:
    files = {path: text for path, text in good().items() if path not in missing | links}
    survives(dict.fromkeys(plain - links, b"x") | files, frozenset(links))


@pytest.mark.lives
def test_the_worst_content_of_a_file_of_the_largest_size_is_reported_in_bounded_work() -> None:
    size = 250_000
    for text in (
        "a: " + "[" * size,
        "{" * size,
        "- " * size,
        "a: " + "1," * size,
        "".join(f"k{number}: 1\n" for number in range(size // 36)),
        "spec: {" + ",".join(f"f{number}: {{name}}" for number in range(3000)) + "}",
        "spec:\n  nodePools:\n" + "  - {name: a}\n" * 3000,
        "spec:\n  tags:\n" + "".join(f"    t{number}: x\n" for number in range(3000)),
        "x" * size,
        '"' + "\\u0041" * (size // 6) + '"',
        "https://" + "a:" * (size // 2) + "@",
        "spec: {flux: {repository: 'https://" + "a:" * (size // 2) + "'}}",
    ):
        survives(good() | {"clusters/one/cluster.yaml": text.encode()})
        survives(good() | {"classes/web.yaml": text.encode()})
