"""``python -m localcloud azure`` says what is wrong when it cannot do what it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcloud.runtime import azure_command


def test_without_a_running_cloud_it_says_how_to_start_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert azure_command.main(["one", "stop", "--state", str(tmp_path)]) == 1
    assert f"no local cloud runs in {tmp_path}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one", "explode"], "invalid choice: 'explode'"),
        (["one", "scale", "count"], "'count' is not of the form FIELD=VALUE"),
    ],
)
def test_a_wrong_command_line_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        azure_command.main(arguments)
    assert message in capsys.readouterr().err
