"""The experiment file: read, checked, and expanded into runs. Reads no data."""
