"""HTTP: routes, callers and their rights, and the runs that they ask for."""
