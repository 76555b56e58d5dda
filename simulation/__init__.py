"""The seeded fault simulation: whole fleets lived through in memory, with everything that can go wrong.

A seed decides what people commit and when, which messages are lost in between, and what fails. The real
planner and engine run over the local worlds in one thread on a virtual clock, and ``checker`` holds what
they do against what git asked for. ``python -m simulation --help``.
"""
