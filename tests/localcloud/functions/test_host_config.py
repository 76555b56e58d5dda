"""What the development host reads: settings, host.json, and the functions' bindings."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import azure.functions as func
import pytest
from azure.functions.meta import Datum

from localcloud.functions.host_config import (
    ConfigError,
    ServiceBusConfig,
    apply_settings,
    read_host_json,
    read_settings,
    seconds,
)
from localcloud.functions.host_logs import HOST, set_up_logging
from localcloud.functions.worker.function_index import Function, HttpTrigger, Input, SessionTrigger
from localcloud.functions.worker.in_process import functions_of
from localcloud.functions.worker.invocations import Closed, Invoker

ROOT = Path(__file__).parents[3]


def test_the_environment_wins_over_the_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "local.settings.json"
    file.write_text(json.dumps({"IsEncrypted": False, "Values": {"FLEET": "file", "BRANCH": "main"}}))
    environ = {"FLEET": "shell"}
    assert apply_settings(read_settings(file), environ) == ["FLEET"]
    assert environ == {"FLEET": "shell", "BRANCH": "main"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"Values": {"A": 1}}', "must be strings: A"),
        ('{"IsEncrypted": true, "Values": {}}', "encrypted"),
        ("{}", "Values"),
        ("[", "not JSON"),
    ],
)
def test_settings_that_cannot_be_read_are_named(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "local.settings.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match=message):
        read_settings(file)


def test_the_projects_own_host_json_is_understood() -> None:
    config = read_host_json(ROOT / "host.json")
    assert config.timeout_seconds == 300
    assert config.route_prefix == ""
    assert config.service_bus == ServiceBusConfig(
        max_concurrent_sessions=16, max_concurrent_calls=2, session_idle_seconds=0.5, renew_seconds=43_200
    )
    bundle = json.loads((ROOT / "host.json").read_text())["extensionBundle"]
    assert bundle == {"id": "Microsoft.Azure.Functions.ExtensionBundle", "version": "[4.*, 5.0.0)"}


def test_a_host_json_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "host.json").write_text('{"version": "1.0"}')
    with pytest.raises(ConfigError, match=r"2\.0"):
        read_host_json(tmp_path / "host.json")


def test_an_unknown_log_level_is_named(tmp_path: Path) -> None:
    content = {"version": "2.0", "logging": {"logLevel": {"Function": "Loud"}}}
    (tmp_path / "host.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="Function: there is no log level Loud"):
        read_host_json(tmp_path / "host.json")


def test_time_spans_are_read_as_dotnet_writes_them() -> None:
    assert [seconds("00:05:00"), seconds("1.02:00:00"), seconds("00:00:00.5")] == [300, 93600, 0.5]
    with pytest.raises(ConfigError, match="hh:mm:ss"):
        seconds("5 minutes")


def queue_app() -> func.FunctionApp:
    app = func.FunctionApp()

    @app.service_bus_queue_trigger(
        arg_name="message", queue_name="%JOBS%", connection="ServiceBus", is_sessions_enabled=True
    )
    def work(message: func.ServiceBusMessage) -> None: ...

    return app


def test_settings_are_put_into_bindings() -> None:
    (work,) = functions_of(queue_app(), {"JOBS": "jobs", "ServiceBus": "Endpoint=sb://x"})
    assert work.trigger == SessionTrigger("jobs", "Endpoint=sb://x", binary=False)


@pytest.mark.parametrize(
    ("environ", "missing"), [({"ServiceBus": "x"}, "%JOBS%"), ({"JOBS": "jobs"}, "ServiceBus")]
)
def test_a_missing_setting_is_named_with_its_function(environ: dict[str, str], missing: str) -> None:
    with pytest.raises(ConfigError, match=f"function 'work'.*{missing}"):
        functions_of(queue_app(), environ)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    level = root.level
    text = io.StringIO()
    handler = set_up_logging(
        text, {"default": "Warning", "Function": "Information", "Function.loud.User": "Error"}
    )
    yield text
    root.removeHandler(handler)
    root.setLevel(level)


GIVEN = Input(Datum("1", "string"))


def function(name: str, call: Callable[[str], None]) -> Function:
    return Function(name, HttpTrigger(name, ()), lambda given, _id: call(given.value.value))


def run(name: str, call: Callable[[str], None]) -> None:
    invoker = Invoker(threads=1, timeout=0)
    invoker.submit(function(name, call), GIVEN).result()
    invoker.close(1)


def test_each_invocation_is_one_line_and_a_failure_has_its_traceback(log: io.StringIO) -> None:
    def fine(x: str) -> None:
        logging.getLogger("shared").info("working on %s", x)

    def bad(x: str) -> None:
        raise ValueError("no such thing")

    run("fine", fine)
    run("bad", bad)
    lines = log.getvalue().splitlines()
    assert lines[0].endswith("INFO    fine  working on 1")
    assert "INFO    fine  Executed 'Functions.fine' (Succeeded, " in lines[1]
    assert "ERROR   bad  Executed 'Functions.bad' (Failed, " in lines[2]
    assert lines[-1] == "ValueError: no such thing"


def test_levels_follow_the_categories_of_host_json(log: io.StringIO) -> None:
    run("loud", lambda x: logging.getLogger().warning("noise %s", x))
    logging.getLogger(HOST).info("about the host")
    logging.getLogger("azure.servicebus").error("the host's own client")
    (line,) = log.getvalue().splitlines()
    assert "Executed 'Functions.loud' (Succeeded" in line


def test_an_invocation_that_takes_too_long_is_reported_once(log: io.StringIO) -> None:
    invoker = Invoker(threads=1, timeout=0.0)

    def report(x: str) -> None:
        invoker.report_overdue()
        invoker.report_overdue()

    invoker.submit(function("slow", report), GIVEN).result()
    assert invoker.close(1)
    assert log.getvalue().count("Timeout value of 0 s exceeded by 'Functions.slow'") == 1
    with pytest.raises(Closed):
        invoker.submit(function("late", report), GIVEN)
