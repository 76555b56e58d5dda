"""The roadstead command: a thin shell over the API and the shared functions."""
