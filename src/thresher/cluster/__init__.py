"""Reading and parsing in other processes, on this machine or on others, through Ray.

Files are divided among processes, not examples among models: merging models costs accuracy except for one
rule in short rounds, and learning a non-zero takes less time than reading it (docs/scale-out.md has the
figures). A piece begins where a block of the serial pass begins, so chunks, places, reports and checkpoints
are those of a single process, and law 10 holds for everything built on them. Where blocks begin is found by
reading only their ends. That is impossible in compressed files and where line breaks may be quoted, and with
`--where` the rows left out would be counted elsewhere: such files are one piece each.
"""
