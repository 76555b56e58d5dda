"""The failures that Microsoft's pages show, as the local Azure gives them."""
