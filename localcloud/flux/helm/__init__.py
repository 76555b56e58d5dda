"""Charts and their releases: what the source-controller packages, and what the helm-controller installs."""
