"""Text, JSON and CSV from finished values: nothing is computed here."""
