"""Promotions: what is proven in an environment, and what another one may get of it. Pure."""
