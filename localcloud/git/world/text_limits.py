"""What GitHub takes as the texts of pull requests, comments and check runs (docs.github.com/rest)."""

from __future__ import annotations

from typing import Any

from localcloud.git.world.issues import MAX_TITLE
from shared.cluster.failures.errors import InvalidManifest

MAX_COMMENT = 65_536
MAX_SUMMARY = 65_535
MAX_ANNOTATIONS = 50
CONCLUSIONS = ("action_required", "cancelled", "failure", "neutral", "skipped", "success", "timed_out")


def check_text(title: str, body: str) -> None:
    """Check the title and the body of a pull request; raise InvalidManifest."""
    if not 1 <= len(title) <= MAX_TITLE or len(body) > MAX_COMMENT:
        raise InvalidManifest("title or body is too long (maximum is 256 and 65536 characters)")


def check_comment(body: str) -> None:
    """Check a comment; raise InvalidManifest."""
    if not body.strip():
        raise InvalidManifest("Body cannot be blank")
    if len(body) > MAX_COMMENT:
        raise InvalidManifest(f"body is too long (maximum is {MAX_COMMENT} characters)")


_ANNOTATION = frozenset({"path", "start_line", "end_line", "annotation_level", "message"})


def check_output(
    body: dict[str, Any], output: dict[str, Any], annotations: tuple[dict[str, Any], ...]
) -> None:
    """Check the output of a check run, with the annotations of one call; raise InvalidManifest."""
    if body.get("conclusion") is not None and body["conclusion"] not in CONCLUSIONS:
        raise InvalidManifest("conclusion is not included in the list")
    if output and not {"title", "summary"} <= set(output):
        raise InvalidManifest("output needs a title and a summary")
    if len(output.get("summary", "")) > MAX_SUMMARY:
        raise InvalidManifest(f"summary is too long (maximum is {MAX_SUMMARY} characters)")
    if len(annotations) > MAX_ANNOTATIONS:
        raise InvalidManifest(f"annotations has more than {MAX_ANNOTATIONS} items")
    if any(not set(a) >= _ANNOTATION for a in annotations):
        raise InvalidManifest("an annotation lacks a required field")
