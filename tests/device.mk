# Tests of device.
PROGRAM_TESTS += tests/check_caches tests/check_choice tests/check_direct tests/check_kernels tests/check_lane tests/check_map \
	tests/check_map_compile tests/check_narrow tests/check_wide
tests_check_caches_LDADD = $(DEVICE_LDADD)
tests_check_choice_LDADD = $(DEVICE_LDADD)
tests_check_lane_LDADD = $(DEVICE_LDADD)
tests_check_map_LDADD = $(DEVICE_LDADD)
tests_check_map_compile_LDADD = $(DEVICE_LDADD)
tests_check_direct_SOURCES = tests/check_direct.c tests/kernel_trial.c
tests_check_direct_LDADD = $(DEVICE_LDADD)
tests_check_wide_LDADD = $(DEVICE_LDADD)
tests_check_kernels_SOURCES = tests/check_kernels.c tests/kernel_trial.c
tests_check_kernels_LDADD = $(DEVICE_LDADD)
tests_check_narrow_SOURCES = tests/check_narrow.c tests/kernel_trial.c
tests_check_narrow_LDADD = $(DEVICE_LDADD)
if HAVE_ONEDNN
PROGRAM_TESTS += tests/check_onednn
tests_check_onednn_SOURCES = tests/check_onednn.c tests/kernel_trial.c
tests_check_onednn_LDADD = $(DEVICE_LDADD)
endif
EXTRA_DIST += tests/check_onednn.c tests/onednn_3.sh

# These print; run by hand.
check_PROGRAMS += tests/bench_kernels tests/bench_map tests/bench_narrow
tests_bench_kernels_LDADD = $(DEVICE_LDADD)
tests_bench_map_LDADD = $(DEVICE_LDADD)
tests_bench_narrow_LDADD = $(DEVICE_LDADD)

# Instructions of kernels, counted.
check_PROGRAMS += tests/count_kernels
tests_count_kernels_SOURCES = tests/count_kernels.c tests/step_counter.c tests/step_counter.h
tests_count_kernels_LDADD = $(DEVICE_LDADD)
SCRIPT_TESTS += tests/check_benches.sh tests/check_counts.sh tests/check_peers.sh \
	tests/check_steps.sh
EXTRA_DIST += tests/counts tests/counts.sh tests/counts_avx512bf16

# A driver and a compiler that compute here: tests open them first, so that the device finds them
# under the names that it looks for.
FAKE_DRIVER = tests/fake/block.c tests/fake/block.h tests/fake/capture.c tests/fake/cuda.c \
	tests/fake/driver.h tests/fake/fake.h tests/fake/guard.c tests/fake/guard.h \
	tests/fake/memory.c tests/fake/module.c tests/fake/order.c tests/fake/stream.c \
	tests/fake/watch.c
EXTRA_DIST += $(FAKE_DRIVER) tests/fake/blas.c tests/fake/compiler.c tests/fake/named.h \
	tests/fake/shim.h \
	tests/check_blas.c tests/check_cuda.c \
	tests/check_recording.c tests/cupti_trace.c tests/fake/cupti.c tests/fake/nvml.c \
	tests/fake/nvtx.c
check_LTLIBRARIES += tests/fake/libcuda.la
tests_fake_libcuda_la_SOURCES = $(FAKE_DRIVER)
tests_fake_libcuda_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_fake_libcuda_la_LDFLAGS = -rpath /nowhere -version-info 1:0:0
PROGRAM_TESTS += tests/check_fake_cuda
tests_check_fake_cuda_LDADD = tests/fake/libcuda.la $(LDADD)
if HAVE_CUDA
check_LTLIBRARIES += tests/fake/libcublasLt.la tests/fake/libcupti.la tests/fake/libnvrtc.la \
	tests/fake/libnvidia-ml.la tests/fake/libnvtx.la tests/libcuptitrace.la
# The library that CUDA_INJECTION64_PATH names for a trace of kernels, and a made-up CUPTI.
tests_libcuptitrace_la_SOURCES = tests/cupti_trace.c
tests_libcuptitrace_la_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
tests_libcuptitrace_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_libcuptitrace_la_LDFLAGS = -rpath /nowhere -module -avoid-version
tests_fake_libcupti_la_SOURCES = tests/fake/cupti.c
tests_fake_libcupti_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_fake_libcupti_la_LDFLAGS = -rpath /nowhere -version-info 13:0:0
tests_fake_libcupti_la_LIBADD = tests/fake/libcuda.la
tests_fake_libcublasLt_la_SOURCES = tests/fake/blas.c
tests_fake_libcublasLt_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_fake_libcublasLt_la_LDFLAGS = -rpath /nowhere -version-info 13:0:0 \
	-export-symbols-regex '^(cublasLt|fake_blas)'
tests_fake_libcublasLt_la_LIBADD = libcore.la tests/fake/libcuda.la
tests_fake_libnvtx_la_SOURCES = tests/fake/nvtx.c
tests_fake_libnvtx_la_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
tests_fake_libnvtx_la_LDFLAGS = -rpath /nowhere -avoid-version
tests_fake_libnvidia_ml_la_SOURCES = tests/fake/nvml.c
tests_fake_libnvidia_ml_la_LDFLAGS = -rpath /nowhere -version-info 1:0:0
tests_fake_libnvrtc_la_SOURCES = tests/fake/compiler.c
tests_fake_libnvrtc_la_CPPFLAGS = $(AM_CPPFLAGS) -DHOST_CC='"$(CC)"' \
	-DHOST_SHIM='"$(abs_top_srcdir)/tests/fake/shim.h"' -DHOST_SANITIZERS='"$(KERNEL_SANITIZERS)"'
tests_fake_libnvrtc_la_LDFLAGS = -rpath /nowhere -version-info 13:0:0 -export-symbols-regex '^nvrtc'
tests_fake_libnvrtc_la_LIBADD = libcore.la
# What tests/fakes.c opens.
OPENED_FAKES = tests/fake/libcublasLt.la tests/fake/libcuda.la tests/fake/libnvrtc.la
PROGRAM_TESTS += tests/check_blas tests/check_cuda tests/check_recording
tests_check_blas_SOURCES = tests/check_blas.c tests/fakes.c tests/evaluate.c
tests_check_blas_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
tests_check_blas_LDADD = libcudadevice.la $(LDADD)
EXTRA_tests_check_blas_DEPENDENCIES = $(OPENED_FAKES)
tests_check_recording_SOURCES = tests/check_recording.c tests/fakes.c
tests_check_recording_LDADD = libcudadevice.la $(LDADD)
EXTRA_tests_check_recording_DEPENDENCIES = $(OPENED_FAKES)
tests_check_cuda_SOURCES = tests/check_cuda.c tests/fakes.c tests/op_table.c tests/evaluate.c
tests_check_cuda_LDADD = libcudadevice.la $(LDADD)
EXTRA_tests_check_cuda_DEPENDENCIES = $(OPENED_FAKES)

if HAVE_CUDNN
OPENED_FAKES += tests/fake/libcudnn.la
check_LTLIBRARIES += tests/fake/libcudnn.la
tests_fake_libcudnn_la_SOURCES = tests/fake/dnn.c
tests_fake_libcudnn_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_fake_libcudnn_la_LDFLAGS = -rpath /nowhere -version-info 9:0:0 \
	-export-symbols-regex '^(cudnn|fake_dnn)'
tests_fake_libcudnn_la_LIBADD = libcore.la tests/fake/libcuda.la
PROGRAM_TESTS += tests/check_dnn
tests_check_dnn_SOURCES = tests/check_dnn.c tests/fakes.c tests/evaluate.c
tests_check_dnn_LDADD = libcudadevice.la $(LDADD)
EXTRA_tests_check_dnn_DEPENDENCIES = $(OPENED_FAKES)
if HAVE_CUDNN_LIBRARY
PROGRAM_TESTS += tests/check_dnn_library
tests_check_dnn_library_SOURCES = tests/check_dnn_library.c $(GOLDEN_PROGRAM)
tests_check_dnn_library_LDADD = libcudadevice.la $(LDADD)
endif
endif

# The golden cases of programs, on it.
GOLDEN_CUDA = tests/golden_program.c tests/golden_modes_cuda.c tests/fakes.c
CUDA_GOLDEN_TESTS = tests/check_cuda_losses tests/check_cuda_optimizers tests/check_cuda_networks \
	tests/check_cuda_trajectory
check_PROGRAMS += $(CUDA_GOLDEN_TESTS)
tests_check_cuda_losses_SOURCES = tests/check_golden_losses.c $(GOLDEN_CUDA)
tests_check_cuda_optimizers_SOURCES = tests/check_golden_optimizers.c $(GOLDEN_CUDA)
tests_check_cuda_networks_SOURCES = tests/check_golden_networks.c $(GOLDEN_CUDA)
tests_check_cuda_trajectory_SOURCES = tests/check_golden_trajectory.c $(GOLDEN_CUDA)
EXTRA_tests_check_cuda_losses_DEPENDENCIES = $(OPENED_FAKES)
EXTRA_tests_check_cuda_optimizers_DEPENDENCIES = $(OPENED_FAKES)
EXTRA_tests_check_cuda_networks_DEPENDENCIES = $(OPENED_FAKES)
EXTRA_tests_check_cuda_trajectory_DEPENDENCIES = $(OPENED_FAKES)
TESTS += $(CUDA_GOLDEN_TESTS) tests/check_cuda_train.sh tests/check_autotune.sh tests/check_gpus.sh
# Launches of a step of the same networks.
PROGRAM_TESTS += tests/check_segments
tests_check_segments_SOURCES = tests/check_segments.c $(GOLDEN_CUDA)
EXTRA_tests_check_segments_DEPENDENCIES = $(OPENED_FAKES)
if HAVE_NVRTC
# What NVRTC says of the text of every golden case, and makes of some.
PROGRAM_TESTS += tests/check_cuda_access tests/check_cuda_text
tests_check_cuda_access_LDADD = libcudadevice.la $(LDADD)
SOAK_TESTS += tests/check_cuda_text
tests_check_cuda_text_SOURCES = tests/check_cuda_text.c $(GOLDEN_PROGRAM)
tests_check_cuda_text_LDADD = libcudadevice.la $(LDADD)
endif
endif
SCRIPT_TESTS += tests/check_on_card.sh
EXTRA_DIST += tests/on_card.sh tests/pack_card.sh tests/check_segments.c tests/golden_modes_cuda.c \
	tests/check_cuda_access.c tests/check_cuda_text.c \
	tests/check_cuda_train.sh tests/check_gpus.sh \
	tests/check_autotune.sh tests/fake/dnn.c tests/check_dnn.c tests/check_dnn_library.c tests/fakes.c tests/fakes.h
