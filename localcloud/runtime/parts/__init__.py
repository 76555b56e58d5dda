"""The processes of the local cloud, as ``python -m localcloud.runtime.parts.github_part STATE``."""
