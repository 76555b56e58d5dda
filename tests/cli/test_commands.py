"""docs/commands.md has every command, and every command keeps the conventions of ``roadstead``."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from cli.app import COMMANDS as SECTIONS
from cli.errors import ExitCode
from cli.terminal.output import Output
from localcloud.memory.memory_cloud import MemoryCloud
from shared.prices.price_file import Prices, written
from shared.rollouts.rollout import Rollout
from tests.support import fleet_files
from tests.support.pipeline_runs import cloud_with, push, record_of
from tests.support.recorded_prices import DAY
from tests.support.roadstead_command import GROUPS, commands, on_terminal, options, roadstead, write
from tests.support.served_api import served

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "commands.md").read_text()
LISTS = {
    "roadstead status": [],
    "roadstead why": ["one"],
    "roadstead tree": ["one"],
    "roadstead output": ["one"],
    "roadstead drift": [],
    "roadstead ready": ["--environment", "nowhere"],
    "roadstead events": ["one"],
    "roadstead plans": [],
    "roadstead log": ["--from", ""],
    "roadstead audit": [],
    "roadstead health": [],
    "roadstead contexts": [],
    "roadstead dead-letters": [],
    "roadstead notify": [],
    "roadstead promote": [],
    "roadstead rollout list": [],
    "roadstead rollout show": [],
    "roadstead plan": ["fleet", "--empty"],
    "roadstead cost": [],
    "roadstead validate": ["fleet"],
    "roadstead explain": ["one", "fleet"],
}
"""Every command that lists or shows, with arguments."""
DOCTOR = "roadstead doctor"
"""It waits for the apps: tests/cli/test_doctor.py has its formats."""
COMMANDS = commands()
SUMMARIES = {
    f"{prefix} {name}": entry.summary
    for prefix, sections in (("roadstead", SECTIONS), *((f"roadstead {g}", GROUPS[g]) for g in GROUPS))
    for entries in sections.values()
    for name, entry in entries.items()
}


@pytest.fixture
def cloud() -> MemoryCloud:
    made = cloud_with(fleet_files.fleet("one"))
    made.state.save_rollout(Rollout("a" * 40, made.clock(), (), ()))
    return made


def test_every_command_has_a_section_with_an_example() -> None:
    for name in COMMANDS:
        assert re.search(rf"^### {name}\n```console\n(\$ )?{name}\b", PAGE, re.MULTILINE), name


def test_the_help_of_a_command_begins_like_its_entry_in_the_list() -> None:
    for name in COMMANDS:
        first = COMMANDS[name].help.split("\n")[0]
        assert first.startswith(SUMMARIES[name].removesuffix(".")), name
        assert first.endswith("."), name


def test_the_page_names_no_command_and_no_option_that_does_not_exist() -> None:
    assert set(re.findall(r"^### (roadstead .+)$", PAGE, re.MULTILINE)) == set(COMMANDS)
    examples = "\n".join(re.findall(r"```console\n(.*?)```", PAGE, re.S)).replace("\\\n", " ")
    for text in re.findall(r"^(?:\$ )?(roadstead .*)$", examples, re.MULTILINE):
        parts = shlex.split(text)
        command = COMMANDS.get(" ".join(parts[:2])) or COMMANDS.get(" ".join(parts[:3]))
        if command is not None:
            assert {part.partition("=")[0] for part in parts if part.startswith("--")} <= options(command), (
                text
            )


def test_the_page_names_every_option() -> None:
    taken = set().union(*map(options, COMMANDS.values()))
    named = set(re.findall(r"--[a-z-]+", PAGE))
    assert {option for option in taken if option.startswith("--")} - named == set()


def test_the_page_has_every_exit_code() -> None:
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)} == set(ExitCode)


def test_metavars_are_upper_case_nouns_and_no_option_takes_a_secret() -> None:
    for name in COMMANDS:
        for parameter in COMMANDS[name].params:
            shown = parameter.metavar or ""
            takes_value = parameter.param_type_name == "argument" or not getattr(parameter, "is_flag", False)
            assert re.fullmatch(r"[A-Z_]+", shown) if takes_value else True, (parameter.name, shown)
        assert not {"--key", "--token", "--password"} & options(COMMANDS[name]), name


def test_every_command_that_asks_the_api_takes_the_same_options() -> None:
    asking = {name: options(command) for name, command in COMMANDS.items() if "--url" in options(command)}
    assert len(asking) > 8
    assert {name for name, found in asking.items() if not {"--key-file", "--timeout"} <= found} == set()


def test_every_command_that_lists_or_shows_takes_the_same_formats() -> None:
    assert {name for name, command in COMMANDS.items() if "--output" in options(command)} == {*LISTS, DOCTOR}


@pytest.mark.lives
@pytest.mark.parametrize("name", sorted(LISTS))
def test_the_formats_are_those_of_kubectl(tmp_path: Path, url: str, name: str) -> None:
    prices = written(Prices(DAY, "USD", "https://prices.example.com", ())).encode()
    write(tmp_path / "fleet", {**fleet_files.fleet("one"), "prices.yaml": prices})
    arguments = [*name.split()[1:], *LISTS[name]]
    shown = {
        output: roadstead(*arguments, "-o", output.value, cwd=tmp_path, ROADSTEAD_URL=url)
        for output in Output
    }
    assert {done.returncode for done in shown.values()} == {0}, shown
    assert yaml.safe_load(shown[Output.YAML].stdout) == json.loads(shown[Output.JSON].stdout)
    kinds = {
        "cluster/",
        "event/",
        "plan/",
        "commit/",
        "dead-letter/",
        "act/",
        "context/",
        "route/",
        "rollout/",
        "environment/",
        "output/",
    }
    for line in shown[Output.NAME].stdout.splitlines():
        assert any(line.startswith(kind) for kind in kinds), line
    for text in (shown[Output.TABLE].stdout, shown[Output.WIDE].stdout):
        assert text
        assert all(line == line.rstrip() for line in text.splitlines())


def test_a_pipe_gets_whole_lines_and_a_terminal_wrapped_ones(cloud: MemoryCloud, url: str) -> None:
    record = record_of(cloud, "one")
    piped = roadstead("status", "one", ROADSTEAD_URL=url).stdout.splitlines()
    subscription = next(line for line in piped if line.startswith("location"))
    assert subscription.endswith(record.document["spec"]["subscriptionId"])
    narrow = on_terminal("status", "one", columns=40, ROADSTEAD_URL=url)[1]
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", narrow).split("\r\n"))) <= 40


@pytest.mark.parametrize("arguments", [[], ["new"], ["-h"], ["--help"], ["status", "-h"]])
def test_help_is_printed_and_is_no_error(arguments: list[str]) -> None:
    done = roadstead(*arguments)
    assert (done.returncode, done.stderr, done.stdout.startswith("Usage: roadstead")) == (0, "", True)


def test_the_version_is_that_of_the_project() -> None:
    assert re.fullmatch(r"roadstead \d+\.\d+\.\d+\n", roadstead("--version").stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_commands(shell: str) -> None:
    done = roadstead("--show-completion", shell)
    assert (done.returncode, "_ROADSTEAD_COMPLETE" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
def test_a_shell_without_completion_is_a_usage_error_and_nothing_is_installed(
    tmp_path: Path, option: str
) -> None:
    done = roadstead(option, "nosuch", HOME=str(tmp_path))
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert "'nosuch' is not one of 'bash', 'zsh', 'fish'" in done.stderr


def test_completion_is_installed_for_the_shell_that_is_named(tmp_path: Path) -> None:
    done = roadstead("--install-completion", "fish", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["roadstead.fish"]
    completed = roadstead(_ROADSTEAD_COMPLETE="complete_bash", COMP_WORDS="roadstead st", COMP_CWORD="1")
    assert completed.stdout == "status\n"


UNKNOWN = {
    "roadstead new cluster": ["two", "fleet", "--class", "nope"],
    "roadstead import": ["/subscriptions/x", "fleet", "--class", "nope"],
    "roadstead explain": ["nope", "fleet"],
    "roadstead plan": ["fleet", "--cluster", "nope"],
    "roadstead status": ["nope"],
    "roadstead why": ["nope"],
    "roadstead tree": ["nope"],
    "roadstead events": ["nope"],
    "roadstead replay": ["nope"],
    "roadstead approve": ["0123abcd"],
    "roadstead dead-letters": ["nope"],
    "roadstead wait": ["nope", "--timeout", "1"],
}
"""Every command that takes a name, with a name that does not exist."""


@pytest.mark.lives
@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_an_unknown_name_has_the_exit_code_1_in_every_command(tmp_path: Path, url: str, name: str) -> None:
    write(tmp_path / "fleet", fleet_files.fleet("one"))
    done = roadstead(*name.split()[1:], *UNKNOWN[name], cwd=tmp_path, ROADSTEAD_URL=url)
    assert (done.returncode, done.stderr.count("\n")) == (ExitCode.FAILED, 1), done.stderr


def test_names_are_accepted_as_they_are_printed(tmp_path: Path, url: str) -> None:
    write(tmp_path / "fleet", fleet_files.fleet("one"))
    name = "cluster/one"
    for arguments in (
        *(["status", name], ["why", name], ["events", name], ["wait", name], ["explain", name, "fleet"]),
        ["plan", "fleet", "--cluster", name],
    ):
        done = roadstead(*arguments, cwd=tmp_path, ROADSTEAD_URL=url)
        assert done.returncode == 0, (arguments, done.stderr)
    assert "one has not failed" in roadstead("replay", name, ROADSTEAD_URL=url).stderr
    commit = roadstead("plans", "-o", "name", ROADSTEAD_URL=url).stdout.strip()
    assert "needs approval" in roadstead("approve", commit, ROADSTEAD_URL=url).stderr


@pytest.mark.parametrize(
    ("arguments", "text"), [(["status", "--watch"], "clusters Ready"), (["wait", "other"], "no cluster")]
)
def test_ctrl_c_is_silent_and_has_its_exit_code(url: str, arguments: list[str], text: str) -> None:
    code, written = on_terminal(*arguments, interrupt_at=text, ROADSTEAD_URL=url)
    assert code == ExitCode.INTERRUPTED
    assert "Traceback" not in written
    assert "Abort" not in written


@pytest.mark.parametrize(("height", "columns"), [(8, 80), (24, 120)])
def test_a_watched_fleet_is_redrawn_in_place_and_cut_to_the_terminal(height: int, columns: int) -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet(*(f"cluster-{number:02}" for number in range(40))))
    cloud.step()
    with served(cloud.ports) as url:
        _, written = on_terminal(
            "status", "--watch", rows=height, columns=columns, interrupt_at="more lines", ROADSTEAD_URL=url
        )
    screen, _, left_behind = written.partition("\x1b[?1049h")[2].partition("\x1b[?1049l")
    assert "more lines" in screen
    frames = screen.split("\x1b[H")[1:]
    assert frames
    assert max(frame.count("\n") for frame in frames) < height
    assert "cluster-39" not in screen
    assert "cluster-39" in left_behind
