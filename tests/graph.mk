# Tests of graph.

check_PROGRAMS += tests/check_fuse
tests_check_fuse_SOURCES = tests/check_fuse.c tests/graphs.h
tests_check_fuse_LDADD = $(TEST_LDADD)
TESTS += tests/check_fuse
