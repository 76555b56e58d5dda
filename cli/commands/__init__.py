"""One command of ``roadstead`` in each file; ``cli.app`` lists them."""
