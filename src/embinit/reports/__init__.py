"""Reports: tables, figures and one page, from an experiment and the results of its runs."""
