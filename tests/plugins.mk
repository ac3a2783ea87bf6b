# Tests of plugins.
