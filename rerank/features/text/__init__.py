"""Templates over texts: translations, transcripts, samples."""
