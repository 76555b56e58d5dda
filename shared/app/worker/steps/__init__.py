"""The steps of the recipes: ``registry`` has one function for each step."""
