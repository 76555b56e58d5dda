"""Git repositories, as every git host of the local cloud has them."""
