"""Plans of pull requests: their queue, their comments, their limits."""
