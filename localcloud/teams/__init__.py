"""Teams: a route of notifications, as its workflows take messages."""
