"""Tasks: what is made of one capture, in processes here or on a cluster, by one run at a time."""
