"""How GitHub speaks: its REST API, git over HTTP, and signed webhooks."""
