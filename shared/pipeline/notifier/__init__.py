"""The notifier: it tells the routes of ``spec.notifications`` what they have not been told."""
