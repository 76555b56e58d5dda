"""The notifier: it notifies the routes of ``spec.notifications``."""
