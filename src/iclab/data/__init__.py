"""Files that are made from the code and read by it."""
