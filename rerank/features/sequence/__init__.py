"""Attributes of the tokens of a sentence, and features of whole label sequences."""
