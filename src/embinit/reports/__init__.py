"""Reports: tables, figures and one page, from an experiment and what came out of its runs."""
