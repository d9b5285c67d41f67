"""Plans as data: checked, compiled to operations, written as text and read from files."""
