"""``python -m localcloud.simulation``: many seeds, or one with its story."""

from localcloud.simulation.runner import main

if __name__ == "__main__":
    raise SystemExit(main())
