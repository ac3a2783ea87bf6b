# Files of core/data.
