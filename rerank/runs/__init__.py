"""The course of a recipe over lists, from extraction to the report."""
