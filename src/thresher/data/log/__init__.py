"""Logs of rows: what a server has acknowledged, in the order in which it is learned."""
