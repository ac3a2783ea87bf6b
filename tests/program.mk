# Tests of programs: storage, memory plan, update section, golden runs.
PROGRAM_TESTS += tests/check_collective tests/check_local tests/check_memory tests/check_passes \
	tests/check_loss_scale tests/check_program tests/check_scaling tests/check_update

# Golden tests of programs share golden_program.c and load the built plugins.
GOLDEN_PROGRAM = tests/golden_program.c tests/golden_modes.c
PROGRAM_TESTS += tests/check_golden_losses tests/check_golden_networks \
	tests/check_golden_optimizers tests/check_golden_trajectory tests/check_joined \
	tests/check_masked_loss
tests_check_masked_loss_SOURCES = tests/check_masked_loss.c $(GOLDEN_PROGRAM)
tests_check_joined_SOURCES = tests/check_joined.c $(GOLDEN_PROGRAM)
tests_check_golden_losses_SOURCES = tests/check_golden_losses.c $(GOLDEN_PROGRAM)
tests_check_golden_optimizers_SOURCES = tests/check_golden_optimizers.c $(GOLDEN_PROGRAM)
tests_check_golden_networks_SOURCES = tests/check_golden_networks.c $(GOLDEN_PROGRAM)
tests_check_golden_trajectory_SOURCES = tests/check_golden_trajectory.c $(GOLDEN_PROGRAM)
