"""Tasks: hashing and analyzing captures, in processes of this machine or on a cluster. Only one run at a time works on an archive."""
