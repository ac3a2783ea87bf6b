# Tests of graph.
