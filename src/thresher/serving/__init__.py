"""A model as a service over HTTP, which may learn while it answers."""
