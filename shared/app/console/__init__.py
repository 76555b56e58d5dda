"""The console: pages for people, each a template and a view model of the API's own objects, in ``pages``."""
