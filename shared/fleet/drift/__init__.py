"""Drift: what Azure has, compared with what the manifest of a cluster owns. Pure."""
