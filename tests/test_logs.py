"""No log line shows a secret, whoever writes it."""

from __future__ import annotations

import io
import logging
import re

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared import logs
from shared.masking import Masker
from shared.ports.process.together import in_threads
from tests.support import fleet_files
from tests.support.pipeline_runs import push


def test_a_secret_is_masked_in_messages_arguments_and_tracebacks(written: io.StringIO) -> None:
    logs.configure(Masker(["canary-secret", "canary-secret-long"]))
    logger = logging.getLogger("some_client")
    logger.info("token canary-secret and %s", "canary-secret-long")
    try:
        int("canary-secret")
    except ValueError:
        logger.exception("failed")
    assert "canary" not in written.getvalue()
    assert written.getvalue().startswith("token *** and ***\n")
    assert "with base 10: '***'" in written.getvalue()


def test_short_values_are_not_masked(written: io.StringIO) -> None:
    logs.configure(Masker(["", "git"]))
    logging.getLogger("some_client").info("git %d", 5)
    assert written.getvalue() == "git 5\n"


def test_the_client_libraries_are_quiet() -> None:
    logs.configure(Masker([]))
    assert not logging.getLogger("azure.core.pipeline.policies.http_logging_policy").isEnabledFor(
        logging.INFO
    )


def test_a_line_says_what_it_is_about_at_its_end(written: io.StringIO) -> None:
    logs.configure(Masker(["canary-secret"]), "example")
    logger = logging.getLogger("some_client")
    with logs.about(cluster="one", generation=3):
        with logs.about(step="cluster", attempt=2):
            logger.info("a token: %s", "canary-secret")
        logger.info("done")
    logger.info("later")
    assert written.getvalue().splitlines() == [
        "a token: *** fleet=example cluster=one generation=3 step=cluster attempt=2",
        "done fleet=example cluster=one generation=3",
        "later fleet=example",
    ]


def test_what_is_done_in_several_threads_is_about_the_same(written: io.StringIO) -> None:
    logs.configure(Masker([]))
    with logs.about(commit="c0ffee"):
        in_threads(logging.getLogger("some_client").info, ["a", "b"])
    assert sorted(written.getvalue().splitlines()) == ["a commit=c0ffee", "b commit=c0ffee"]


def test_every_line_about_a_job_or_a_plan_says_whose_it_is(caplog: pytest.LogCaptureFixture) -> None:
    factory = logging.getLogRecordFactory()
    logs.configure(Masker([]), "example")
    caplog.set_level(logging.INFO, logger="shared")
    try:
        cloud = MemoryCloud()
        push(cloud, fleet_files.fleet("one"))
        cloud.run()
        push(cloud, fleet_files.fleet())
        cloud.run()
    finally:
        logging.setLogRecordFactory(factory)
    lines = [(record.name, record.getMessage()) for record in caplog.records]
    assert all(" fleet=example" in text for _, text in lines)
    of_jobs = [text for name, text in lines if name.startswith("shared.pipeline.worker")]
    of_plans = [text for name, text in lines if name == "shared.pipeline.planner.planner"]
    assert len(of_jobs) > 10
    assert of_plans
    for text in of_jobs:
        assert re.search(r" cluster=one commit=[0-9a-f]{40} generation=\d step=[a-z-]+ attempt=\d+$", text), (
            text
        )
    assert any(re.search(r" commit=[0-9a-f]{40}$", text) for text in of_plans)
