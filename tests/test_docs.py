"""What the documents name exists: links, anchors, files, targets, commands, options and settings."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest

from cli.pages import error_page
from handlers.webhooks import READERS
from localcloud.runtime import azure_command, pull_command, up
from shared.app.api import schema
from shared.app.examination import guide_of
from shared.cluster.failures.remedies import REMEDIES
from shared.cluster.failures.retry import DEFAULTS
from shared.cluster.recipes import STEPS, Step
from shared.configuration.settings import GitHostName, Settings
from shared.plan.plan import Action
from tests.support.roadstead_command import commands, options
from tools import wording

ROOT = Path(__file__).parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in sorted(ROOT.rglob("*.md"))
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
}
FOLDERS = "bench|cli|docs|examples|handlers|infra|localcloud|schemas|shared|simulation|tests|tools"
FILES = re.compile(rf"(?<![\w/.-])((?:{FOLDERS})/[\w./-]*[\w/])")
"""A path of the repository, in a code span or a block of code."""
GENERATED_LOCALLY = ("infra/fleet.bicepparam",)


GENERATED = {f"docs/{name}.md" for name in ("errors", "local-azure-refusals", "reference")}
REFERENCES = GENERATED | {f"docs/{name}.md" for name in ("api", "commands", "fleet")}


def code_of(page: str) -> str:
    """Return the code spans and blocks of a page, a line each, continued lines joined."""
    blocks: list[str] = re.findall(r"^ *```\w*\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL)
    spans: list[str] = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^ *```.*?^ *```$", "", page))
    return "\n".join([*(block.replace("\\\n", " ") for block in blocks), *spans])


def anchors(page: str) -> set[str]:
    """Return the anchors that GitHub gives a page: its headings, and the ids that it sets itself."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "", page)
    headings: list[str] = re.findall(r"^#+ +(.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def links(page: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the anchor of every relative link."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "", page)
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        yield path, anchor


def command_lines(page: str) -> Iterator[list[str]]:
    """Yield every command line of roadstead that a page names."""
    for line in re.findall(r"^\W*(roadstead .+)$", code_of(page), re.MULTILINE):
        yield shlex.split(re.split(r" (?:#|>|\||2>)", line)[0], comments=True)


def test_no_page_but_a_reference_has_more_than_2500_words() -> None:
    words = {name: len(page.split()) for name, page in PAGES.items() if name not in REFERENCES}
    assert {name: count for name, count in words.items() if count > 2500} == {}


def test_the_documents_have_80000_words_at_most_but_for_what_is_generated() -> None:
    pages = [page for name, page in PAGES.items() if name.startswith("docs/") and name not in GENERATED]
    assert sum(len(page.split()) for page in pages) <= 80_000


def test_there_are_pages_with_links_anchors_files_and_commands() -> None:
    text = "\n".join(PAGES.values())
    assert len(PAGES) > 35
    assert sum(bool(anchor) for _, anchor in links(text)) > 40
    assert len(set(FILES.findall(code_of(text)))) > 40
    assert len({command[1] for command in command_lines(text)}) > 10


def broken_links(name: str) -> Iterator[str]:
    """Yield the relative links of a page that lead nowhere, or to no anchor."""
    for path, anchor in links(PAGES[name]):
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists():
            yield path
        elif anchor and anchor not in anchors(PAGES[target.resolve().relative_to(ROOT).as_posix()]):
            yield f"{path}#{anchor}"


def missing_files(name: str) -> Iterator[str]:
    """Yield the files of the repository that a page names, and that do not exist."""
    for path in FILES.findall(code_of(PAGES[name])):
        if path not in GENERATED_LOCALLY and not (ROOT / path).exists():
            yield path


def files_outside_its_folder(name: str) -> Iterator[str]:
    """Yield the files that the page of a folder names, and that are neither there nor in the repository."""
    if not re.match(r"(localcloud|simulation|infra)/", name):
        return
    folder = (ROOT / name).parent
    for file in re.findall(r"`([\w/]+\.(?:py|bicep))`", PAGES[name]):
        found = (folder / file).exists() or (ROOT / file).exists()
        if not found and ("/" in file or not any(folder.rglob(file))):
            yield file


def missing_modules(name: str) -> Iterator[str]:
    """Yield the modules that a page runs, and that do not exist."""
    for module in re.findall(r"python -m ([a-z][\w.]+)", code_of(PAGES[name])):
        path = ROOT / module.replace(".", "/")
        if not path.with_suffix(".py").exists() and not (path / "__main__.py").exists():
            yield module


def missing_targets(name: str) -> Iterator[str]:
    """Yield the targets of make that a page names, and that do not exist."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"^(?:\$ )?make ([a-z-]+)", code_of(PAGES[name]), re.MULTILINE)
    yield from set(named) - targets


def missing_commands(name: str) -> Iterator[str]:
    """Yield the command lines of a page with a command or an option that does not exist."""
    known = commands()
    for line in command_lines(PAGES[name]):
        arguments = line[1:]
        if arguments[0].isupper() or arguments[0].startswith("-"):
            continue
        command = known.get(" ".join(line[:3])) or known.get(" ".join(line[:2]))
        named = {part.partition("=")[0] for part in arguments if part.startswith("--")} - {"--help"}
        if command is None or not named <= options(command):
            yield " ".join(line)


def wrong_local_commands(name: str) -> Iterator[str]:
    """Yield the command lines of the local cloud that a page has, and that it does not take."""
    parsers = {"up": up.parser(), "azure": azure_command.parser(), "pull": pull_command.parser()}
    for line in re.findall(r"python -m localcloud ([^\n#]+)$", code_of(PAGES[name]), re.MULTILINE):
        command, *arguments = shlex.split(line.replace("NUMBER", "1"))
        if not arguments or {"...", "--help"} & {*arguments}:  # named, and not typed
            continue
        try:
            parsers[command].parse_args(arguments)
        except (KeyError, SystemExit):
            yield line


NOWHERE = (
    *(broken_links, missing_files, files_outside_its_folder),
    *(missing_modules, missing_targets, missing_commands, wrong_local_commands),
)


@pytest.mark.parametrize("found", NOWHERE, ids=lambda found: found.__name__)
def test_what_a_page_names_exists(found: Callable[[str], Iterator[str]]) -> None:
    assert [f"{name}: {what}" for name in PAGES for what in found(name)] == []


def test_the_place_of_a_step_that_a_page_shows_is_its_place_in_a_recipe() -> None:
    steps = "|".join(Step)
    shown = rf"\b(?P<step>{steps}) (?:(\d+)/(\d+)\b|\((\d+) of (\d+) of \w+\))"
    places = {(step, str(n), str(len(all_))) for all_ in STEPS.values() for n, step in enumerate(all_, 1)}
    found = [(name, match) for name, page in PAGES.items() for match in re.finditer(shown, page)]
    assert len(found) > 2
    wrong = [
        f"{name}: {match[0]}" for name, match in found if tuple(filter(None, match.groups())) not in places
    ]
    assert wrong == [], "\n".join(("correct the places:", *wrong))


def test_the_architecture_says_what_each_package_contains() -> None:
    listed = set(re.findall(r"^\| `([\w/]+)/`", PAGES["docs/architecture.md"], re.MULTILINE))
    inner = [ROOT / "shared" / name for name in ("app",)]
    folders = [path.parent for place in (ROOT / "shared", *inner) for path in place.glob("*/__init__.py")]
    packages = {folder.relative_to(ROOT).as_posix() for folder in folders} - {"shared/app"}
    assert len(packages) > 15
    assert packages - listed == set()


def test_the_page_of_the_local_cloud_says_what_each_slice_contains() -> None:
    table = PAGES["docs/local-cloud.md"].partition("| slice |")[2].partition("\n\n")[0]
    slices = {path.parent.name for path in (ROOT / "localcloud").glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == slices - {"common", "demo"}


def test_the_classes_that_share_the_limit_of_another_one_are_named() -> None:
    line = re.search(r"^\| `RETRY_LIMITS` .*$", PAGES["docs/settings.md"], re.MULTILINE)
    assert line is not None
    for kind in REMEDIES:
        base = next((ancestor for ancestor in kind.__mro__ if ancestor in DEFAULTS), kind)
        assert base is kind or f"`{kind.__name__}`" in line[0], kind


def test_the_fields_of_each_object_of_the_api_are_explained_in_one_section() -> None:
    page = PAGES["docs/api.md"]
    sections = [set(re.findall(r"[\w-]+", code_of(section))) for section in page.split("\n## ")]
    objects = [
        var.__annotations__.keys() for var in vars(schema).values() if hasattr(var, "__required_keys__")
    ]
    assert len(objects) > 60
    for fields in objects:
        parts = (part for part in objects if part < fields)  # a summary, of what has more than that
        own = fields - set().union(*parts)
        assert any(own <= section for section in sections), fields


def test_every_action_of_a_plan_is_explained() -> None:
    named = set(re.findall(r"[\w-]+", code_of(PAGES["docs/api.md"])))
    assert {action.value for action in Action} - named == set()


def test_each_git_host_has_a_page_and_one_that_sends_webhooks_a_command_that_sets_it_up() -> None:
    assert {guide_of(host) for host in get_args(GitHostName)} - {*PAGES} == set()
    assert {f"roadstead setup {host}" for host in READERS} - {*commands()} == set()


def test_every_setting_is_explained() -> None:
    page = PAGES["docs/settings.md"]
    named = {name.lower() for name in re.findall(r"`([A-Za-z_]+)`", page)} | {"website_hostname"}
    example = json.loads((ROOT / "local.settings.example.json").read_text())["Values"]
    unexplained = sorted(name.upper() for name in Settings.model_fields if name.lower() not in named)
    assert unexplained == [], f"docs/settings.md has no line of {', '.join(unexplained)}"
    hosts_own = {"functions_worker_runtime", "azurewebjobsstorage"}
    assert {name.lower() for name in example} - named - hosts_own == set()


def test_the_defaults_of_settings_are_those_of_the_code() -> None:
    page = PAGES["docs/settings.md"]
    documented = dict(re.findall(r"^\| `([A-Z_]+)` \| `?([\w.:/*][\w.:/* -]*?)`? \|", page, re.MULTILINE))
    defaults = {
        name.upper(): f"{field.default:.12g}" if isinstance(field.default, float | int) else field.default
        for name, field in Settings.model_fields.items()
        if field.default not in (None, "", 0) and not field.is_required()
    }
    assert defaults
    wrong = {name: default for name, default in defaults.items() if documented.get(name) != default}
    assert wrong == {}, "docs/settings.md has other defaults"


def test_the_page_on_errors_is_generated_from_the_table_of_advice() -> None:
    assert PAGES["docs/errors.md"] == error_page.page(), "make generate writes it again"


def test_the_wording_check_finds_what_the_vocabulary_replaces() -> None:
    vocabulary = wording.vocabulary("# a comment\nold terms? = new term\n")
    text = "The page has an old\nterm. An Old Term."
    assert list(wording.findings(text, vocabulary)) == [
        (0, "old term", "new term"),
        (1, "Old Term", "new term"),
    ]
    assert len(list(wording.files(ROOT, wording.CHECKED))) > 30
