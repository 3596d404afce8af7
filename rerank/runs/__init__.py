"""The course of a recipe, from extraction to evaluation and the report."""
