"""Deterministic simulation testing: whole fleets in memory, with every fault that can happen in reality.

A seed decides what operators push and when, which messages are lost, and which calls fail. The real planner
and worker run over the worlds of the local cloud, in one thread on a virtual clock, and ``invariants`` checks
every write against git. ``python -m simulation --help``.
"""
