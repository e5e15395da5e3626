"""The options of the program, each declared once, for the command line and Python."""
