"""The commands of the project, one file each."""
