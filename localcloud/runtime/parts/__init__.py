"""The local cloud's own server processes, as ``python -m localcloud.runtime.parts.github_part STATE``."""
