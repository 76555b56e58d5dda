"""Who else acts, in some seeds: the authors of pull requests, and a second app of a fleet.

Each has a random stream of its own, so that a seed without them is what it was before.
"""
