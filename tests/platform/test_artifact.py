"""What is in the layer of an artifact, and the archives that are not unpacked."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.platform.source.tree import Tree
from shared.ports.artifact import (
    MAX_ENTRIES,
    MAX_LAYER,
    MAX_UNPACKED,
    ArtifactLayer,
    UnreadableArtifact,
    first_layer,
    unpacked,
    verified,
)
from tests.support.hypothesis_settings import GENERATED

FILES = {"platform/a.yaml": b"a: 1\n", "platform/deep/b.yaml": b"b: 1\n", "c.txt": b""}


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def tar(*entries: tarfile.TarInfo | tuple[str, bytes], pax: bool = True) -> bytes:
    """Return an archive of entries: headers as they are, and files."""
    content = io.BytesIO()
    with tarfile.open(
        fileobj=content, mode="w", format=tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT
    ) as archive:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry)
            else:
                header = tarfile.TarInfo(entry[0])
                header.size = len(entry[1])
                archive.addfile(header, io.BytesIO(entry[1]))
    return content.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, target
    return header


def tree_in(archive: bytes) -> Tree:
    return unpacked(gzip.compress(archive, mtime=0))


def files(contents: Mapping[str, bytes]) -> list[tuple[str, bytes]]:
    return [*contents.items()]


@pytest.mark.parametrize("pax", [True, False])
def test_the_files_of_a_layer_are_a_tree_as_of_a_commit(pax: bool) -> None:
    long = {f"platform/{'x' * 150}/{'y' * 120}.yaml": b"long"}
    tree = tree_in(tar(special("platform/", tarfile.DIRTYPE), *files(FILES | long), pax=pax))
    assert tree.contents == FILES | long
    assert tree.has("platform/a.yaml")
    assert {*tree.files.blobs} == {*FILES, *long}


def test_a_path_is_cleaned_and_the_last_of_two_files_counts() -> None:
    assert tree_in(tar(("./a.yaml", b"1"), ("b//c.yaml", b"2"), ("a.yaml", b"3"))).contents == {
        "a.yaml": b"3",
        "b/c.yaml": b"2",
    }


def test_a_link_is_left_out_and_a_hard_link_is_empty() -> None:
    links = special("a.yaml", tarfile.SYMTYPE, "/etc/passwd"), special("b.yaml", tarfile.LNKTYPE, "c.yaml")
    tree = tree_in(tar(("c.yaml", b"1"), *links))
    assert tree.contents == {"c.yaml": b"1", "b.yaml": b""}
    assert tree.files.other == {"a.yaml"}


def test_a_layer_may_be_compressed_in_parts() -> None:
    archive = tar(*files(FILES))
    layer = gzip.compress(archive[:700]) + gzip.compress(archive[700:])
    assert unpacked(layer).contents == FILES


def sparse(size: int) -> bytes:
    header = tarfile.TarInfo("a.yaml")
    header.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(size)}
    header.size = 512
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(header, io.BytesIO(b"1\n0\n0\n".ljust(512, b"\0")))
    return content.getvalue()


def with_size(field: bytes) -> bytes:
    """Return the archive of a file whose header has another size."""
    header = bytearray(tar(("a.yaml", b"1"))[:512])
    header[124:136] = field
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + b"1".ljust(512, b"\0") + b"\0" * 1024


def attributes(size: int) -> bytes:
    """Return an archive whose first header is followed by so many bytes of attributes."""
    header = special("a.yaml", tarfile.XHDTYPE)
    header.size = size
    return header.tobuf() + b"9" * size


HOSTILE: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "an absolute path": (lambda: tar(("/etc/passwd", b"")), "leads out of it"),
    "a path out of the archive": (lambda: tar(("a/../../b.yaml", b"")), "leads out of it"),
    "a path that is a folder": (lambda: tar(("a/..", b"")), "leads out of it"),
    "a path with a backslash": (lambda: tar(("a\\b.yaml", b"")), "leads out of it"),
    "a file in a file": (lambda: tar(("a", b""), ("a/b", b"")), "same path"),
    "a device": (lambda: tar(special("a", tarfile.CHRTYPE)), "neither a file nor a folder"),
    "a pipe": (lambda: tar(special("a", tarfile.FIFOTYPE)), "neither a file nor a folder"),
    "a million entries": (
        lambda: tar(*(special(f"{number}/", tarfile.DIRTYPE) for number in range(MAX_ENTRIES + 1))),
        "more than 20000 files",
    ),
    "a sparse file of a terabyte": (lambda: sparse(1 << 40), "unpacks to more than"),
    "a file with a negative size": (lambda: with_size(b"\xff" * 11 + b"\x00"), "a header of -"),
    "a file that is cut off": (lambda: with_size(b"00000077777\0"), "no archive"),
    "attributes without end": (lambda: attributes(1 << 20), "a header of 1048576 bytes"),
    "text": (lambda: b"no archive" * 100, "no archive"),
    "nothing": (lambda: b"", "no archive"),
    "rubbish after a file": (lambda: tar(("a.yaml", b""))[:512] + b"x" * 1024, "no archive after 1 files"),
    "a name that is no text": (lambda: tar(("a", b"")).replace(b"a\0", b"\xff\0", 1), "no archive"),
}


@pytest.mark.lives
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_not_unpacked(name: str) -> None:
    build, said = HOSTILE[name]
    with pytest.raises(UnreadableArtifact, match=said):
        tree_in(build())


def bomb(size: int) -> bytes:
    """Return so many zeros, compressed."""
    packer = zlib.compressobj(wbits=31)
    packed = [packer.compress(b"\0" * (1 << 20)) for _ in range(size >> 20)]
    return b"".join((*packed, packer.flush()))


LAYERS: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "plain": (lambda: tar(*files(FILES)), "not compressed"),
    "cut off": (lambda: gzip.compress(tar(*files(FILES)))[:-9], "cut off"),
    "empty": (lambda: b"", "cut off"),
    "a bomb": (lambda: bomb(MAX_UNPACKED + (1 << 20)), "unpacks to more than"),
    "a million empty parts": (lambda: gzip.compress(b"") * 500_000, "in more than 100 parts"),
}


@pytest.mark.lives
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_that_flux_does_not_take_or_that_is_too_large_is_not_unpacked(name: str) -> None:
    build, said = LAYERS[name]
    with pytest.raises(UnreadableArtifact, match=said):
        unpacked(build())


def test_a_content_counts_only_with_its_digest() -> None:
    assert verified(b"1", digest_of(b"1")) == b"1"
    with pytest.raises(UnreadableArtifact, match="another digest"):
        verified(b"1", digest_of(b"2"))


@GENERATED
@given(st.data())
def test_no_damaged_archive_is_another_error(data: st.DataObject) -> None:
    archive = bytearray(tar(*files(FILES), special("d", tarfile.SYMTYPE, "c.txt")))
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(archive) - 1))
        archive[place] = data.draw(st.integers(0, 255))
    try:
        tree = tree_in(bytes(archive[: data.draw(st.integers(0, len(archive)))]))
    except UnreadableArtifact:
        return
    assert {*tree.contents} == {*tree.files.blobs}


# Manifests


def manifest(**fields: Any) -> bytes:
    return json.dumps({"schemaVersion": 2, "config": {}, **fields}).encode()


def test_the_first_layer_of_a_manifest_counts() -> None:
    layers = [{"digest": digest_of(b"1"), "size": 1}, {"digest": digest_of(b"2"), "size": 2}]
    content = manifest(layers=layers)
    assert first_layer(content, digest_of(content)) == ArtifactLayer(digest_of(b"1"), 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" * 100_000, "cannot be read"),
        (b"[]", "cannot be read"),
        (b'{"layers": [{"digest": "x"}]}', "cannot be read"),
        (b'{"layers": {"digest": "x"}}', "cannot be read"),
        (manifest(layers=[]), "names no layers"),
        (manifest(manifests=[]), "a list of manifests"),
        (manifest(layers=[{"digest": "x", "size": MAX_LAYER + 1}]), "at most 16777216 are read"),
    ],
)
def test_a_manifest_without_a_layer_that_is_read_says_why(content: bytes, said: str) -> None:
    with pytest.raises(UnreadableArtifact, match=said):
        first_layer(content, digest_of(content))
