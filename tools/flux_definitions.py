"""``python -m tools.flux_definitions FILE VERSION``: reduce the definitions of Flux's kinds.

FILE is the output of ``flux install --export`` of that version. The result has the definitions of all kinds
in it, without descriptions. Plans check fields with them where a cluster has its definitions from elsewhere,
and tests install them in place of the short ones of the examples. It is the same bytes every time.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from shared.platform.schemas import published

DATA = Path(str(published.__file__)).with_name(published.FLUX)


def reduced(text: str, version: str) -> dict[str, Any]:
    """Return the definitions of an export."""
    found = [
        document
        for document in yaml.safe_load_all(text)
        if document and document["kind"] == "CustomResourceDefinition"
    ]
    return {
        "source": f"flux install --version={version} --export",
        "licence": "Apache-2.0",
        "definitions": [_without_descriptions(document) for document in found],
    }


def _without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {
            key: item for key, item in value.items() if not (key == "description" and isinstance(item, str))
        }
        return {key: _without_descriptions(item) for key, item in kept.items()}
    return [_without_descriptions(item) for item in value] if isinstance(value, list) else value


def main() -> int:
    """Write the file."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    content = json.dumps(reduced(Path(sys.argv[1]).read_text(), sys.argv[2]), sort_keys=True)
    DATA.write_bytes(gzip.compress(content.encode(), mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
