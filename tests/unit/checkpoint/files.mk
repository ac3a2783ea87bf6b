# Tests of core/checkpoint and of run folders.
PROGRAM_TESTS += %D%/check_checkpoint %D%/check_run_folder %D%/check_safetensors %D%/check_saving \
	%D%/check_torch_file %D%/check_torch_write
SOAK_TESTS += %D%/check_checkpoint
%C%_check_safetensors_SOURCES = %D%/check_safetensors.c tests/fuzz/fuzz_safetensors.c
%C%_check_torch_file_SOURCES = %D%/check_torch_file.c tests/fuzz/fuzz_torch.c
EXTRA_%C%_check_saving_DEPENDENCIES = tests/plugins/disk_shim.la
