"""How good the data of a collection is: what is missing, repeated, damaged or unusual."""
