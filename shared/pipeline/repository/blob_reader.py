"""Files of a commit, read in as few calls as that takes, and each believed only by its blob id.

A blob's content never changes, so what was read once is kept and asked for by its id: the shared files that
every plan needs, manifests with mistakes, what pull requests bring. Many files that nobody has read yet come
in one archive; what that leaves out, or has in another form, is read by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from shared.fleet.resolve.blob_ids import blob_id
from shared.ports import Ports

log = logging.getLogger(__name__)

ARCHIVE_FROM = 20
"""More unknown files than this are read as one archive: two calls, and the bytes of the whole repository."""
ASKED_FOR = 1000
"""At most so many blobs are looked up among those that are kept: each lookup is a read of the state, and an
archive is quicker than thousands of these."""
MAX_KEPT_BYTES = 60_000
"""What an entity of the state holds."""
_AT_ONCE = 100


def read_blobs(commit: str, wanted: Mapping[str, str], ports: Ports) -> Mapping[str, bytes]:
    """Return the content of files of a commit by blob id; ``wanted`` has the id of each path.

    Reads the state for each when they are few, then the archive or a blob each. A read that fails raises,
    and what was read until then is kept.
    """
    ids = dict.fromkeys(wanted.values())
    found = _right(ports.state.blobs(ids), ids) if ids and len(ids) <= ASKED_FOR else {}
    missing = {path: sha for path, sha in wanted.items() if sha not in found}
    if len({*missing.values()}) > ARCHIVE_FROM:
        found |= _kept(_unpacked(commit, missing, ports), ports)
    left = [sha for sha in dict.fromkeys(missing.values()) if sha not in found]
    for some in _parts(left):
        found |= _kept({sha: ports.repository.blob(sha) for sha in some}, ports)
    return found


def _right(blobs: Mapping[str, bytes], ids: Iterable[str]) -> dict[str, bytes]:
    return {sha: blobs[sha] for sha in ids if sha in blobs and blob_id(blobs[sha]) == sha}


def _unpacked(commit: str, wanted: Mapping[str, str], ports: Ports) -> dict[str, bytes]:
    """Return, by blob id, what a commit's archive has of these paths."""
    files = ports.repository.archive(commit, wanted.keys())
    log.info("the archive of %s has %d of %d files", commit[:8], len(files), len(wanted))
    found: dict[str, bytes] = {}
    for path, content in files.items():
        # An archive has the line ends that .gitattributes asks for, the blob those that git keeps.
        for form in (content, content.replace(b"\r\n", b"\n")):
            if blob_id(form) == wanted.get(path):
                found[blob_id(form)] = form
                break
    return found


def _kept(blobs: dict[str, bytes], ports: Ports) -> dict[str, bytes]:
    """Keep the blobs that are small enough, and return all."""
    small = {sha: content for sha, content in blobs.items() if len(content) <= MAX_KEPT_BYTES}
    if small:
        ports.state.save_blobs(small)
    return blobs


def _parts(ids: Sequence[str]) -> Iterator[tuple[str, ...]]:
    rest = iter(ids)
    while some := tuple(islice(rest, _AT_ONCE)):
        yield some
