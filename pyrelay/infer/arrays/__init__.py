"""Arrays: subscripts, stores, views, products."""
