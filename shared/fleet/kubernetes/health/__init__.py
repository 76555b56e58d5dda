"""How a cluster does, as its objects show it. Pure."""
