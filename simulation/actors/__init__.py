"""Who else acts, in some seeds: the authors of pull requests.

Each has a random stream of its own, so that a seed without them is what it was before.
"""
