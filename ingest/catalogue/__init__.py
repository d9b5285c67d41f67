"""What makes a library of a collection: repeats, and texts that belong to books."""
