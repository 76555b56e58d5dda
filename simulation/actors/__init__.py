"""Who else acts, in some seeds: the authors and reviewers of pull requests, a second app.

Each has a random stream of its own, so that a seed without them is what it was before.
"""
