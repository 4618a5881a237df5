"""The kinds of conversion, one a file."""
