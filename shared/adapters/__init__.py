"""One outside system per file; the errors of its client library are translated here."""
