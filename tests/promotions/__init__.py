"""What is proven, and what automation may give, without a cloud."""
