"""The version of this package, as ``pyproject.toml`` has it: an instance says which one it runs."""

VERSION = "0.1.0"
