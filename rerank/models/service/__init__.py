"""A model at work for other programs: requests over HTTP, what is measured of them, and a page to try it."""
