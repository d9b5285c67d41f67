"""Drawings as SVG and displays as HTML: pure functions of records, by the standard library."""
