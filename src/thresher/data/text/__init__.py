"""Text for compiled code: reading eight or more bytes at a time, parsing numbers, sorting rows."""
