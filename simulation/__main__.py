"""``python -m simulation``: many seeds, or one with its story."""

from simulation.runner import main

if __name__ == "__main__":
    raise SystemExit(main())
