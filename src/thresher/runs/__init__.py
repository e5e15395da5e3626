"""What the commands and the public functions do, once for both.

A run prepares and trains, and knows its user only as a `Ui`: the command line adds a terminal, signals and
exit codes, Python adds nothing. Before, each command was conducted twice, once for each face, and the two had
begun to differ: what a hold-out with bad lines does, which options a model refuses, where resuming works.
"""
