"""Which approval of a plan counts: one that was sent, an earlier one, or a review on GitHub."""
