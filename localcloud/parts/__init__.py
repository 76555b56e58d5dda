"""The local cloud's own server processes, as ``python -m localcloud.parts.github STATE``."""
