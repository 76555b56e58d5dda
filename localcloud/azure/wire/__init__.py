"""How Azure speaks: HTTPS with bearer tokens, and the endpoint that issues the tokens."""
