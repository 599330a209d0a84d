"""From finished runs to the numbers and answers of a report."""
