"""What a release publishes: ``python -m tools.package FOLDER`` writes it, the same bytes for the same commit.

- ``roadstead-VERSION.zip``: the files of the function app, built: with the libraries of the lock, so that a
  deployment asks no package index, with ``bin/kustomize``, which builds what Flux applies, and with the
  bytecode of what an instance imports;
- ``roadstead-VERSION.cdx.json``: the bill of materials (CycloneDX) of what then runs;
- ``SHA256SUMS``: the digests of both.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from shared.adapters.kustomize import OWN
from tools.bytecode import compile_start, example_settings, interpreter
from tools.deployed import deployed
from tools.kustomize import MODULE, NotBrought, bring, version_of
from tools.libraries import NotInstalled, install
from tools.lock import DECLARED, Locked, locked

ROOT = Path(__file__).parent.parent
FIRST_MOMENT = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the package: the first that a zip file can have."""
MODE, PROGRAM_MODE = 0o100644 << 16, 0o100755 << 16


PROGRAM = OWN.relative_to(ROOT)
LIBRARIES = Path(".python_packages/lib/site-packages")
"""Where the worker of Azure looks for the libraries of an app that was built elsewhere."""


OTHERS_READ = frozenset({".c", ".h", ".mo", ".pot", ".pxd", ".po", ".proto", ".pyi", ".pyx", "RECORD"})
"""Ends of files, and names, that compilers, translators, type checkers and installers read of a library."""
UNUSED = frozenset({"aio", "sboms", "tests"})
"""Folders of libraries that nothing reads by itself: clients for asyncio, bills of material, and tests."""
USED_OF = ("azure/data/tables/_generated/aio/", "azure/keyvault/secrets/_generated/aio/")
"""What libraries import of these with their clients that are not for asyncio."""
UNUSED_OF = (
    "apprise/assets/",
    "apprise/cli.py",
    "cffi/",
    "click/",
    "dulwich/cli.py",
    "dulwich/porcelain/",
    "invoke/",
    "multidict/_testcapi",
    "pycparser/",
)
"""Icons that a message in plain text has not, commands with what they consist of, what compiles bindings,
and what paramiko runs commands of an OpenSSH configuration with: the package has at most 110 MB."""


def main(arguments: Sequence[str]) -> int:
    """Write the files of a release to the folder that is the one argument, and say what is in the package."""
    folder = Path(arguments[0])
    try:
        bring(OWN, os.environ.get("KUSTOMIZE", ""))
        with tempfile.TemporaryDirectory(prefix="libraries-") as libraries:
            install(ROOT / "requirements.txt", runtime(), Path(libraries))
            compiled = write(folder, Path(libraries), interpreter(runtime()))
    except (NotBrought, NotInstalled) as error:
        print(error, file=sys.stderr)
        return 1
    print(*sorted(path.name for path in folder.iterdir()), sep="\n")
    print(said_of(OWN))
    if not compiled:
        print(
            f"The package has no bytecode, so that each start of an instance takes twice as long: build it "
            f"with Python {runtime()} on Linux."
        )
    return 0


def said_of(program: Path) -> str:
    """Return what is to be known of the kustomize in the package."""
    if program.is_file():
        return f"The package has kustomize {version_of(program) or 'of an unknown version'}."
    return (
        "The package has no kustomize: without one, each change of the platform counts as a removal of what "
        "it reaches. Install Go, or set KUSTOMIZE to the path of a kustomize for Linux on amd64."
    )


def write(folder: Path, libraries: Path, python: str = "") -> bool:
    """Write the files of a release to a folder, with the installed libraries of another one.

    ``python`` compiles what an instance imports; return whether it did.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = f"roadstead-{version()}"
    package, bill = folder / f"{name}.zip", folder / f"{name}.cdx.json"
    compiled = write_package(package, libraries, python=python)
    bill.write_text(bill_of_materials())
    digests = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in (package, bill)]
    (folder / "SHA256SUMS").write_text("".join(digests))
    return compiled


def version() -> str:
    """Return the version of the project."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def write_package(target: Path, libraries: Path, folder: Path = ROOT, python: str = "") -> bool:
    """Write the zip file of the function app: no clock or machine has an influence on it.

    ``python`` compiles what an instance imports; return whether it did.
    """
    files = {path.relative_to(folder): path for path in deployed(folder)}
    installed = {path.relative_to(libraries): path for path in _files_of(libraries)}
    files |= {LIBRARIES / name: path for name, path in installed.items() if _runs(name)}
    with (
        tempfile.TemporaryDirectory(prefix="bytecode-") as bytecode,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as package,
    ):
        compiled = bool(python) and _compile(files, python, folder, Path(bytecode))
        files |= {path.relative_to(bytecode): path for path in _files_of(Path(bytecode))}
        for name, path in files.items():
            entry = zipfile.ZipInfo(name.as_posix(), FIRST_MOMENT)
            entry.external_attr, entry.create_system = PROGRAM_MODE if name == PROGRAM else MODE, 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            package.writestr(entry, path.read_bytes())
    return compiled


def _runs(file: Path) -> bool:
    """Return whether the app may read a file of its libraries."""
    return not (
        {file.suffix, file.name} & OTHERS_READ
        or ({*file.parts[:-1]} & UNUSED and not file.as_posix().startswith(USED_OF))
        or file.as_posix().startswith(UNUSED_OF)
    )


def _files_of(folder: Path) -> Sequence[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _compile(files: Mapping[Path, Path], python: str, root: Path, target: Path) -> bool:
    """Compile what an instance imports of the files, by their names in the package, as they lie in Azure."""
    with tempfile.TemporaryDirectory(prefix="app-") as app:
        for name, path in files.items():
            placed = Path(app) / name
            placed.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, placed)
        return compile_start(Path(app).resolve(), LIBRARIES, python, target, example_settings(root))


def runtime() -> str:
    """Return the version of Python on which the function apps run."""
    found = re.search(r"version: '([\d.]+)'", (ROOT / "infra" / "function.bicep").read_text())
    return found[1] if found else ""


def bill_of_materials(program: Path = OWN) -> str:
    """Return the bill of materials as CycloneDX 1.6: the app, its libraries and programs, who needs whom."""
    libraries = locked(ROOT / "requirements.txt", runtime())
    brought = [_program(program)] if program.is_file() else []
    app = Component(
        name="roadstead",
        version=version(),
        type=ComponentType.APPLICATION,
        bom_ref="roadstead",
        licenses=[LicenseExpression("Apache-2.0")],
    )
    components = {library.name: _component(library) for library in libraries}
    users = {**components, DECLARED: app}
    content = "".join(f"{library.name}=={library.version}\n" for library in libraries)
    content += "".join(f"{component.name}=={component.version}\n" for component in brought)
    bom = Bom(
        components=[*components.values(), *brought],
        metadata=BomMetaData(component=app),
        # A serial number that follows from the content: the same bill has the same one.
        serial_number=UUID(bytes=hashlib.sha256(f"{version()}\n{content}".encode()).digest()[:16], version=5),
    )
    bom.metadata.timestamp = None  # type: ignore[assignment]  # optional in CycloneDX
    for library in libraries:
        for user in set(library.needed_by) & set(users):  # a user may be there for another Python only
            bom.register_dependency(users[user], [components[library.name]])
    bom.register_dependency(app, brought)
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2) + "\n"


def _program(program: Path) -> Component:
    version = version_of(program)
    purl = PackageURL("golang", MODULE.rpartition("/")[0], MODULE.rpartition("/")[2], version or None)
    return Component(
        name=program.name,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=str(purl),
        purl=purl,
        hashes=[
            HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(program.read_bytes()).hexdigest())
        ],
    )


def _component(library: Locked) -> Component:
    purl = PackageURL("pypi", name=library.name, version=library.version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(str(purl)),
        comment="SHA-256 of each file that pip may install",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in library.hashes],
    )
    return Component(
        name=library.name,
        version=library.version,
        type=ComponentType.LIBRARY,
        bom_ref=str(purl),
        purl=purl,
        external_references=[files],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
