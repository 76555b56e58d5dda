"""How objects are changed: patches, server-side apply and its field paths."""
