"""The ports on client libraries, one outside system per file or folder, with their errors translated."""
