"""Reading and parsing in other processes, on this machine or on others, through Ray."""
