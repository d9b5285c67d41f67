"""One loader per file format; `table` names them, `registry.load` runs them."""
