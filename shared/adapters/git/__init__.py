"""Any git server over HTTPS: read by fetching, without pull requests, statuses or reviews."""

from shared.adapters.git.host import GitServerHost

__all__ = ["GitServerHost"]
