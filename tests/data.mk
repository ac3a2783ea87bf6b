# Tests of data.
check_PROGRAMS += tests/check_nifti
tests_check_nifti_SOURCES = tests/check_nifti.c tests/nifti_maker.h tests/suite.h
tests_check_nifti_LDADD = $(TEST_LDADD) $(ZLIB_LIBS)
TESTS += tests/check_nifti
check_PROGRAMS += tests/check_volume
tests_check_volume_SOURCES = tests/check_volume.c tests/suite.h
tests_check_volume_LDADD = $(TEST_LDADD)
TESTS += tests/check_volume
check_PROGRAMS += tests/check_transforms
tests_check_transforms_SOURCES = tests/check_transforms.c tests/suite.h tests/tolerance.h
tests_check_transforms_LDADD = $(TEST_LDADD)
TESTS += tests/check_transforms
