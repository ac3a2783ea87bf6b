# Golden values of losses, optimizers, networks and trajectories, and runs and plugins of earlier versions.
PROGRAM_TESTS += %D%/check_golden_losses %D%/check_golden_networks %D%/check_golden_nnunet_networks \
	%D%/check_golden_optimizers %D%/check_golden_trajectory
SCRIPT_TESTS += %D%/check_old_plugins.sh %D%/check_old_runs.sh
EXTRA_DIST += %D%/old_runs.sh

# The same programs on the cuda device.
if HAVE_CUDA
CUDA_GOLDEN_TESTS = %D%/check_cuda_losses %D%/check_cuda_networks %D%/check_cuda_nnunet_networks \
	%D%/check_cuda_optimizers %D%/check_cuda_trajectory
check_PROGRAMS += $(CUDA_GOLDEN_TESTS)
TESTS += $(CUDA_GOLDEN_TESTS)
%C%_check_cuda_losses_SOURCES = %D%/check_golden_losses.c tests/support/graph/golden_modes_cuda.c
%C%_check_cuda_networks_SOURCES = %D%/check_golden_networks.c tests/support/graph/golden_modes_cuda.c
%C%_check_cuda_nnunet_networks_SOURCES = %D%/check_golden_nnunet_networks.c \
	tests/support/graph/golden_modes_cuda.c
%C%_check_cuda_optimizers_SOURCES = %D%/check_golden_optimizers.c tests/support/graph/golden_modes_cuda.c
%C%_check_cuda_trajectory_SOURCES = %D%/check_golden_trajectory.c tests/support/graph/golden_modes_cuda.c
EXTRA_%C%_check_cuda_losses_DEPENDENCIES = $(OPENED_FAKES)
EXTRA_%C%_check_cuda_networks_DEPENDENCIES = $(OPENED_FAKES)
EXTRA_%C%_check_cuda_nnunet_networks_DEPENDENCIES = $(OPENED_FAKES)
EXTRA_%C%_check_cuda_optimizers_DEPENDENCIES = $(OPENED_FAKES)
EXTRA_%C%_check_cuda_trajectory_DEPENDENCIES = $(OPENED_FAKES)
endif
