"""Promotions: pull requests that give an environment what is proven in another one."""
