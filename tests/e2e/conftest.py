"""A local cloud per test, and its operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import Options
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.warm_processes import spawn


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a cloud with the options of a test; it ends with the test, whatever its functions are doing."""
    with ExitStack() as stack:

        def begin(options: Options) -> Operator:
            cloud = stack.enter_context(LocalCloud(tmp_path / "cloud", options, spawn=spawn))
            operator = Operator(cloud, tmp_path / "clone")
            stack.callback(operator.close)
            stack.callback(cloud.kill_functions)
            return operator

        yield begin
