# Tests of core/graph: nodes, gradients, passes, storage, memory plan, update section.
PROGRAM_TESTS += %D%/check_collective %D%/check_fuse %D%/check_gradient %D%/check_graph %D%/check_joined \
	%D%/check_loss_scale %D%/check_masked_loss %D%/check_memory %D%/check_passes %D%/check_program \
	%D%/check_reference %D%/check_update
SCRIPT_TESTS += %D%/check_loss_pass.sh
EXTRA_%C%_check_gradient_DEPENDENCIES = $(OP_MODULES)
