"""No log line shows a secret, whoever writes it."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from shared import logs
from shared.masking import Masker


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    factory = logging.getLogRecordFactory()
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    logger = logging.getLogger("some_client")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield out
    logger.removeHandler(handler)
    logging.setLogRecordFactory(factory)


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
