"""Write a report as Markdown, LaTeX, CSV, figures or HTML."""
