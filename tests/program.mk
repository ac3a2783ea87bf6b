# Tests of programs: storage, memory plan, update section, golden runs.
check_PROGRAMS += tests/check_memory
tests_check_memory_SOURCES = tests/check_memory.c
tests_check_memory_LDADD = $(TEST_LDADD)
TESTS += tests/check_memory

check_PROGRAMS += tests/check_program
tests_check_program_SOURCES = tests/check_program.c
tests_check_program_LDADD = $(TEST_LDADD)
TESTS += tests/check_program

check_PROGRAMS += tests/check_collective
tests_check_collective_SOURCES = tests/check_collective.c tests/suite.h tests/tolerance.h
tests_check_collective_LDADD = $(TEST_LDADD)
TESTS += tests/check_collective

check_PROGRAMS += tests/check_update
tests_check_update_SOURCES = tests/check_update.c
tests_check_update_LDADD = $(TEST_LDADD)
TESTS += tests/check_update

check_PROGRAMS += tests/check_passes
tests_check_passes_SOURCES = tests/check_passes.c tests/suite.h
tests_check_passes_LDADD = $(TEST_LDADD)
TESTS += tests/check_passes

# Golden tests of programs share golden_program.c and load the built plugins.
GOLDEN_COMMON = tests/golden_program.c tests/golden_program.h tests/suite.h tests/tolerance.h
GOLDEN_PROGRAM = $(GOLDEN_COMMON) tests/golden_modes.c
check_PROGRAMS += tests/check_masked_loss
tests_check_masked_loss_SOURCES = tests/check_masked_loss.c $(GOLDEN_PROGRAM)
tests_check_masked_loss_LDADD = $(TEST_LDADD)
TESTS += tests/check_masked_loss
check_PROGRAMS += tests/check_scaling
tests_check_scaling_SOURCES = tests/check_scaling.c tests/suite.h
tests_check_scaling_LDADD = $(TEST_LDADD)
TESTS += tests/check_scaling
check_PROGRAMS += tests/check_joined
tests_check_joined_SOURCES = tests/check_joined.c $(GOLDEN_PROGRAM)
tests_check_joined_LDADD = $(TEST_LDADD)
TESTS += tests/check_joined
check_PROGRAMS += tests/check_golden_losses tests/check_golden_optimizers \
	tests/check_golden_networks tests/check_golden_trajectory
tests_check_golden_losses_SOURCES = tests/check_golden_losses.c $(GOLDEN_PROGRAM)
tests_check_golden_losses_LDADD = $(TEST_LDADD)
tests_check_golden_optimizers_SOURCES = tests/check_golden_optimizers.c $(GOLDEN_PROGRAM)
tests_check_golden_optimizers_LDADD = $(TEST_LDADD)
tests_check_golden_networks_SOURCES = tests/check_golden_networks.c $(GOLDEN_PROGRAM)
tests_check_golden_networks_LDADD = $(TEST_LDADD)
tests_check_golden_trajectory_SOURCES = tests/check_golden_trajectory.c $(GOLDEN_PROGRAM)
tests_check_golden_trajectory_LDADD = $(TEST_LDADD)
TESTS += tests/check_golden_losses tests/check_golden_optimizers tests/check_golden_networks \
	tests/check_golden_trajectory

check_PROGRAMS += tests/check_local
tests_check_local_SOURCES = tests/check_local.c tests/suite.h
tests_check_local_LDADD = $(TEST_LDADD)
TESTS += tests/check_local
