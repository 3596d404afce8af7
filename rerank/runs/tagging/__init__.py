"""The course of a recipe of tagging."""
