# Tests of the cuda device, on the made-up libraries of tests/fake or on a GPU.
PROGRAM_TESTS += %D%/check_fake_cuda
%C%_check_fake_cuda_LDADD = tests/fake/libcuda.la $(LDADD)
SCRIPT_TESTS += %D%/check_on_card.sh
EXTRA_DIST += %D%/check_autotune.sh %D%/check_blas.c %D%/check_cuda.c %D%/check_cuda_access.c %D%/check_cuda_text.c \
	%D%/check_cuda_train.sh %D%/check_dnn.c %D%/check_dnn_library.c %D%/check_gpus.sh %D%/check_recording.c \
	%D%/check_segments.c
if HAVE_CUDA
TESTS += %D%/check_autotune.sh %D%/check_cuda_train.sh %D%/check_gpus.sh
PROGRAM_TESTS += %D%/check_blas %D%/check_cuda %D%/check_recording %D%/check_segments
%C%_check_blas_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
%C%_check_blas_LDADD = $(CUDA_LDADD)
EXTRA_%C%_check_blas_DEPENDENCIES = $(OPENED_FAKES)
%C%_check_cuda_LDADD = $(CUDA_LDADD)
EXTRA_%C%_check_cuda_DEPENDENCIES = $(OPENED_FAKES)
%C%_check_recording_LDADD = $(CUDA_LDADD)
EXTRA_%C%_check_recording_DEPENDENCIES = $(OPENED_FAKES)
%C%_check_segments_SOURCES = %D%/check_segments.c tests/support/graph/golden_modes_cuda.c
EXTRA_%C%_check_segments_DEPENDENCIES = $(OPENED_FAKES)
if HAVE_CUDNN
PROGRAM_TESTS += %D%/check_dnn
%C%_check_dnn_LDADD = $(CUDA_LDADD)
EXTRA_%C%_check_dnn_DEPENDENCIES = $(OPENED_FAKES)
if HAVE_CUDNN_LIBRARY
PROGRAM_TESTS += %D%/check_dnn_library
%C%_check_dnn_library_LDADD = $(CUDA_LDADD)
endif
endif
if HAVE_NVRTC
PROGRAM_TESTS += %D%/check_cuda_access
# The longest program, on one processor: it begins among the first.
check_PROGRAMS += %D%/check_cuda_text
TESTS += %D%/check_cuda_text
SOAK_TESTS += %D%/check_cuda_text
%C%_check_cuda_access_LDADD = $(CUDA_LDADD)
%C%_check_cuda_text_LDADD = $(CUDA_LDADD)
endif
endif
