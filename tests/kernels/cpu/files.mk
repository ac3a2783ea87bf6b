# Tests of the cpu device.
PROGRAM_TESTS += %D%/check_bf16_gemm %D%/check_caches %D%/check_choice %D%/check_device_table %D%/check_direct \
	%D%/check_few_channels %D%/check_kernels %D%/check_lane %D%/check_map %D%/check_map_compile
%C%_check_bf16_gemm_LDADD = $(DEVICE_LDADD)
%C%_check_caches_LDADD = $(DEVICE_LDADD)
%C%_check_choice_LDADD = $(DEVICE_LDADD)
%C%_check_device_table_LDADD = $(DEVICE_LDADD)
EXTRA_%C%_check_device_table_DEPENDENCIES = $(OP_MODULES)
%C%_check_direct_LDADD = $(DEVICE_LDADD)
%C%_check_few_channels_LDADD = $(DEVICE_LDADD)
%C%_check_kernels_LDADD = $(DEVICE_LDADD)
%C%_check_lane_LDADD = $(DEVICE_LDADD)
%C%_check_map_LDADD = $(DEVICE_LDADD)
%C%_check_map_compile_LDADD = $(DEVICE_LDADD)
EXTRA_DIST += %D%/check_onednn.c
if HAVE_ONEDNN
PROGRAM_TESTS += %D%/check_onednn
%C%_check_onednn_LDADD = $(DEVICE_LDADD)
endif
