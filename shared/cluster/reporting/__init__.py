"""What is said of a record: why it is so, its events, its summary in a list, and its measurements. Pure."""
