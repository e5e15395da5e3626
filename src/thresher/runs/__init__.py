"""What the commands and the public functions do, once for both."""
