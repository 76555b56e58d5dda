"""How an app is set up: its settings, what is wrong with them, and the ports that they become."""
