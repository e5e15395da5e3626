"""The command line: one module per command. Each command imports what it needs when it runs."""
