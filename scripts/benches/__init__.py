"""What `ranvier bench` can measure, one bench a file."""
