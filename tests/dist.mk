# Tests of dist.
check_PROGRAMS += tests/check_place
tests_check_place_SOURCES = tests/check_place.c
tests_check_place_LDADD = $(TEST_LDADD)
TESTS += tests/check_place
check_PROGRAMS += tests/check_store
tests_check_store_SOURCES = tests/check_store.c
tests_check_store_LDADD = $(TEST_LDADD)
TESTS += tests/check_store
check_PROGRAMS += tests/replay_store
tests_replay_store_SOURCES = tests/fuzz_store.c tests/fuzz_file.h tests/fuzz_replay.c
tests_replay_store_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"tests/corpus/store"'
tests_replay_store_LDADD = $(TEST_LDADD)
TESTS += tests/replay_store
check_PROGRAMS += tests/check_visible
tests_check_visible_SOURCES = tests/check_visible.c tests/run_pons.h
tests_check_visible_LDADD = $(TEST_LDADD)
TESTS += tests/check_visible
check_PROGRAMS += tests/join_place
tests_join_place_SOURCES = tests/join_place.c
tests_join_place_LDADD = $(TEST_LDADD)
TESTS += tests/check_examples.sh
EXTRA_DIST += tests/check_examples.sh
