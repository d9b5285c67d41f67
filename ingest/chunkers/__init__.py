"""The ways to cut a document into chunks, a file each behind one small Protocol."""
