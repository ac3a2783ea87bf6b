# Tests of core/plan.
PROGRAM_TESTS += %D%/check_dataset_statistics %D%/check_network_plan
