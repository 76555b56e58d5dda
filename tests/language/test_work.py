"""What hostile manifests cost: work grows with their size, not with its square, and it has limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import pytest

from shared.language.resolve.desired_fleet import source_of
from shared.language.resolve.layers import MAX_INHERITANCE
from shared.language.resolve.problems import SHOWN_OF_FILE, SHOWN_OF_PLAN, number_of
from shared.language.resolve.resolver import resolve
from shared.language.resolve.work import Work
from shared.language.yaml.parser import parse
from tests.support import fleet_files
from tests.support.counted_work import lines_of
from tests.support.resolved_fleets import HEAD, files_of, resolved
from tests.support.sample import sample

ONE = "clusters/one/cluster.yaml"
Fleet = dict[str, bytes]


def one(spec: str) -> Fleet:
    return {ONE: (HEAD.format("Cluster", "one") + "spec:\n" + spec).encode()}


def many(number: int, line: str) -> str:
    return "".join(line.format(i) for i in range(number))


def chain(number: int) -> Fleet:
    """Return classes of which each inherits from the next, and a cluster of the first."""
    classes = {
        f"classes/c{i}.yaml": (HEAD.format("ClusterClass", f"c{i}") + f"spec:\n  class: c{i + 1}\n").encode()
        for i in range(number)
    }
    last = {f"classes/c{number}.yaml": (HEAD.format("ClusterClass", f"c{number}") + "spec: {}\n").encode()}
    return classes | last | one("  class: c0\n")


def circle(number: int) -> Fleet:
    """Return the same classes, of which the last inherits from the first."""
    last = HEAD.format("ClusterClass", f"c{number}") + "spec:\n  class: c0\n"
    return {**chain(number), f"classes/c{number}.yaml": last.encode()}


def removals(number: int) -> Fleet:
    """Return an environment that removes what no layer below has, and as many classes below it."""
    environment = HEAD.format("Environment", "dev") + "spec:\n  defaults:\n    tags:\n"
    files = {"environments/dev.yaml": (environment + many(number, "      k{}: null\n")).encode()}
    for i in range(number // 10):
        text = HEAD.format("ClusterClass", f"c{i}") + "spec:\n  tags:\n" + many(10, "    a{}: b\n")
        files[f"classes/c{i}.yaml"] = text.encode()
    return files


def systems(number: int) -> Fleet:
    head = HEAD.format("System", "shop") + "spec:\n  owners: [a@example.com]\n"
    source = "  source: {repository: https://github.com/example/shop}\n"
    names = "  clusters:\n    names:\n" + many(number, "    - c{}\n")
    return {"systems/shop.yaml": (head + source + names + "  namespaces: [shop]\n").encode()}


def namespaces(number: int) -> Fleet:
    text = (
        "spec:\n  owners: [a@example.com]\n  source: {repository: https://github.com/example/shop}\n"
        "  clusters: {names: [other]}\n  namespaces:\n" + many(number, "  - n{}\n")
    )
    return {f"systems/{name}.yaml": (HEAD.format("System", name) + text).encode() for name in ("a", "b")}


def same_prefix(number: int) -> Fleet:
    def cluster(name: str) -> bytes:
        return fleet_files.cluster(name, extra="  dnsPrefix: same\n").replace(b"rg-" + name.encode(), b"rg")

    return {f"clusters/c{i}/cluster.yaml": cluster(f"c{i}") for i in range(number // 5)}


def deep(number: int) -> Fleet:
    return {f"clusters/x/y{i}/same/cluster.yaml": b"" for i in range(number)}


def listed(number: int) -> Fleet:
    head = HEAD.format("Fleet", "example") + "spec:\n  environments:\n"
    return {"fleet.yaml": (head + many(number, "  - e{}\n")).encode()}


HOSTILE: Mapping[str, Callable[[int], Fleet]] = {
    "items of a wrong type": lambda n: one("  nodePools:\n" + many(n, "  - wrong{}\n")),
    "items that lack fields": lambda n: one("  nodePools:\n" + many(n, "  - name: a{}\n")),
    "items of one name": lambda n: one("  nodePools:\n" + many(n, "  - name: aaa # {}\n")),
    "unknown fields": lambda n: one(many(n, "  fieldx{}: 1\n")),
    "unknown fields of an item": lambda n: one("  nodePools:\n  - name: a\n" + many(n, "    field{}: 1\n")),
    "wrong keys and values": lambda n: one("  tags:\n" + many(n, "    azure{}: 1\n")),
    "misspelt placeholders": lambda n: one("  tags:\n" + many(n, "    k{}: '{{nam}}'\n")),
    "misspelt placeholders in items": lambda n: one(
        "  nodePools:\n" + many(n, "  - {{name: a{}, vmSize: '{{nam}}'}}\n")
    ),
    "removals": lambda n: one("  tags:\n" + many(n, "    k{}: null\n")),
    "removed items": lambda n: one("  nodePools:\n" + many(n, "  - {{name: a{}, $patch: delete}}\n")),
    "removals of an environment": removals,
    "a chain of classes": chain,
    "a circle of classes": circle,
    "unknown clusters of a system": systems,
    "namespaces of two systems": namespaces,
    "clusters with the same prefix": same_prefix,
    "misplaced files of one name": deep,
    "environments that do not exist": listed,
}
SMALL = 300


@cache
def work_without_mistakes() -> int:
    files = fleet_files.fleet("other")
    resolved(files)  # pydantic builds the models at their first use
    return lines_of(lambda: resolved(files))


@pytest.mark.parametrize("kind", sample("hostile manifests", HOSTILE, 4))
def test_twice_as_many_mistakes_are_at_most_twice_the_work(kind: str) -> None:
    def work(number: int) -> int:
        files = fleet_files.fleet("other") | HOSTILE[kind](number)
        return lines_of(lambda: resolved(files))

    empty, small, large = work_without_mistakes(), work(SMALL), work(2 * SMALL)
    assert large - empty <= 2.2 * (small - empty)


def test_the_source_of_a_field_is_found_without_a_search_through_its_neighbours() -> None:
    def work(number: int) -> int:
        root = parse(("tags:\n" + many(number, "  a.b{}: c\n")).encode(), "f")
        return lines_of(lambda: source_of(root, "tags.a.b7"))

    assert work(1000) == work(10)


def test_a_file_lists_its_first_hundred_problems_and_counts_the_others() -> None:
    fleet = resolved(fleet_files.fleet("one") | one("  nodePools:\n" + many(9_000, "  - wrong{}\n")))
    problems = fleet.invalid["one"]
    assert len(problems) == SHOWN_OF_FILE + 1
    assert number_of(problems) > 9_000
    hidden = number_of(problems) - SHOWN_OF_FILE
    message = f"... and {hidden:,} more problems in this file; correct those above first"
    assert (problems[-1].line, problems[-1].message) == (problems[-2].line + 1, message)


def test_a_plan_lists_problems_of_every_file_before_it_lists_many_of_one() -> None:
    wrong = "  nodePools:\n" + many(90, "  - wrong{}\n")
    names = [f"c{number:02}" for number in range(30)]
    files = {
        f"clusters/{name}/cluster.yaml": one(wrong)[ONE].replace(b"one", name.encode(), 1) for name in names
    }
    fleet = resolved(fleet_files.fleet("zz") | files | {"clusters/zz/cluster.yaml": b"a: b\n"})
    assert len(fleet.problems) == SHOWN_OF_PLAN + 1
    assert {problem.file for problem in fleet.problems} >= {"clusters/zz/cluster.yaml", *files}
    assert "more problems of this plan" in fleet.problems[-1].message
    assert number_of(fleet.problems) == sum(number_of(found) for found in fleet.invalid.values())


def test_a_chain_of_classes_is_a_problem_of_each_class_that_inherits_from_too_many() -> None:
    fleet = resolved(fleet_files.fleet("other") | chain(MAX_INHERITANCE + 40))
    assert {problem.file for problem in fleet.problems} == {f"classes/c{i}.yaml" for i in range(40)}
    for problem in fleet.problems:
        assert (
            problem.message == "inherits from more than 16 classes, one after the other; merge some of them"
        )
    assert list(fleet.invalid) == ["one"]
    assert "other" in fleet.clusters


def test_a_chain_of_as_many_classes_as_allowed_is_valid() -> None:
    fleet = resolved(fleet_files.fleet("other") | chain(MAX_INHERITANCE))
    assert not [problem for problem in fleet.problems if problem.file.startswith("classes/")]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (3, "in a cycle: c0 -> c1 -> c2 -> c0; remove one of these spec.class"),
        (MAX_INHERITANCE + 1, "-> c15 -> c16 -> c0; remove one of these spec.class"),
        (MAX_INHERITANCE + 2, "inherits from more than 16 classes, one after the other; merge some of them"),
    ],
)
def test_a_circle_of_classes_is_a_problem_of_each(classes: int, message: str) -> None:
    fleet = resolved(fleet_files.fleet("other") | circle(classes - 1))
    problems = [problem for problem in fleet.problems if problem.file.startswith("classes/c")]
    assert len(problems) == classes
    assert problems[0].message.endswith(message)
    assert list(fleet.invalid) == ["one"]


def large(values: int) -> str:
    return "  azure:\n    properties:\n" + many(values, "      key{}: 1\n")


def test_layers_with_too_many_values_are_a_problem_of_the_largest_file() -> None:
    huge = (HEAD.format("ClusterClass", "huge") + "spec:\n" + large(15_000)).encode()
    also = (
        HEAD.format("Environment", "dev") + "spec:\n  defaults:\n    azure:\n      properties:\n"
    ).encode()
    also += many(6_000, "        other{}: 1\n").encode()
    files = fleet_files.fleet("one", "two") | {"classes/huge.yaml": huge, "environments/dev.yaml": also}
    cluster = files["clusters/one/cluster.yaml"].replace(
        b"spec:\n", b"spec:\n  class: huge\n  environment: dev\n"
    )
    fleet = resolved(files | {"clusters/one/cluster.yaml": cluster})
    messages = [problem.message for problem in fleet.invalid["one"]]
    assert [message for message in messages if "at most 20,000 are merged" in message], messages
    assert "two" in fleet.clusters


def test_only_what_takes_more_than_its_share_is_left_out_when_a_plan_takes_too_much_work() -> None:
    files = fleet_files.fleet("aa", "one", "zz") | {ONE: one(large(5_000))[ONE]}
    cheap = Work()
    resolve("example", files_of(fleet_files.fleet("aa", "zz")), files, work=cheap)
    work = Work(limit=cheap.spent + 2_000)
    fleet = resolve("example", files_of(files), files, work=work)
    assert list(fleet.clusters) == ["aa", "zz"]
    assert fleet.left_out == 1
    assert [(p.file, p.line) for p in fleet.problems] == [(ONE, 1)]
    assert "make it smaller" in fleet.problems[0].message


def test_a_clock_can_stop_the_work_in_the_middle() -> None:
    class Late(Exception):
        pass

    checks = []

    def check() -> None:
        checks.append(1)
        if len(checks) > 3:
            raise Late

    files = fleet_files.fleet(*(f"c{number}" for number in range(100)))
    with pytest.raises(Late):
        resolve("example", files_of(files), files, work=Work(check=check))


def test_the_work_of_the_same_files_is_always_the_same() -> None:
    files = fleet_files.fleet("one", "two")
    works = Work(), Work()
    for work in works:
        resolve("example", files_of(files), files, work=work)
    assert works[0].spent == works[1].spent > 0


UNSAFE = {
    "clusters/a\x1b[31m/cluster.yaml": "clusters/a\\x1b[31m",
    "clusters/a\nb/cluster.yaml": "clusters/a\\nb",
    "clusters/\u202egnp/x.txt": "clusters/\\u202egnp",
    "clusters/a\udc80/cluster.yaml": "clusters/a\\udc80",
    f"clusters/{'a' * 300}/cluster.yaml": f"clusters/{'a' * 300}",
}


@pytest.mark.parametrize("path", UNSAFE)
def test_a_folder_with_an_unsafe_name_is_a_problem_with_an_escaped_name(path: str) -> None:
    fleet = resolved(fleet_files.fleet("one") | {path: b"a: b\n"})
    (problem,) = fleet.problems
    assert str(problem).startswith(f"{UNSAFE[path]}:1:1: the folder's name must be 1 to 63 lowercase letters")
    assert all(name.isprintable() and len(name) <= 100 for name in fleet.invalid)
    assert list(fleet.clusters) == ["one"]


@pytest.mark.parametrize("path", ["environments/a\nb.yaml", "classes/\x1b[2J.yaml", "systems/\x07.yaml"])
def test_a_file_with_an_unsafe_name_is_a_problem_with_an_escaped_name(path: str) -> None:
    (problem,) = resolved(fleet_files.fleet("one") | {path: b"a: b\n"}).problems
    assert str(problem).isprintable()
    assert "\\" in problem.file
