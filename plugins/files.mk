# Files of plugins.
