# Files of core/report.
