"""The seams to a store: one Protocol a file, one method an atomic step. They take no ``now``: the backend owns time."""
