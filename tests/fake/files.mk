# A driver and a compiler that compute here, and the libraries of a GPU. Tests open them first, so that the device
# finds them under the names that it looks for.
FAKE_DRIVER = %D%/block.c %D%/block.h %D%/fake_capture.c %D%/fake_cuda.c %D%/fake_driver.h %D%/fake.h %D%/guard.c %D%/guard.h \
	%D%/fake_memory.c %D%/module.c %D%/order.c %D%/stream.c %D%/watch.c
EXTRA_DIST += $(FAKE_DRIVER) %D%/blas.c %D%/compiler.c %D%/cupti.c %D%/dnn.c %D%/named.h %D%/fake_dcgm.c %D%/fake_nccl.c %D%/fake_nvml.c \
	%D%/fake_nvtx.c %D%/shim.h
check_LTLIBRARIES += %D%/libcuda.la
%C%_libcuda_la_SOURCES = $(FAKE_DRIVER)
%C%_libcuda_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
%C%_libcuda_la_LDFLAGS = -rpath /nowhere -version-info 1:0:0
if HAVE_CUDA
check_LTLIBRARIES += %D%/libcublasLt.la %D%/libcupti.la %D%/libdcgm.la %D%/libnvrtc.la %D%/libnvidia-ml.la %D%/libnvtx.la
%C%_libcupti_la_SOURCES = %D%/cupti.c
%C%_libcupti_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
%C%_libcupti_la_LDFLAGS = -rpath /nowhere -version-info 13:0:0
%C%_libcupti_la_LIBADD = %D%/libcuda.la
%C%_libcublasLt_la_SOURCES = %D%/blas.c
%C%_libcublasLt_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
%C%_libcublasLt_la_LDFLAGS = -rpath /nowhere -version-info 13:0:0 \
	-export-symbols-regex '^(cublasLt|fake_blas)'
%C%_libcublasLt_la_LIBADD = libcore.la %D%/libcuda.la
%C%_libdcgm_la_SOURCES = %D%/fake_dcgm.c
%C%_libdcgm_la_LDFLAGS = -rpath /nowhere -version-info 4:0:0
%C%_libnvtx_la_SOURCES = %D%/fake_nvtx.c
%C%_libnvtx_la_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
%C%_libnvtx_la_LDFLAGS = -rpath /nowhere -avoid-version
%C%_libnvidia_ml_la_SOURCES = %D%/fake_nvml.c
%C%_libnvidia_ml_la_LDFLAGS = -rpath /nowhere -version-info 1:0:0
%C%_libnvrtc_la_SOURCES = %D%/compiler.c
%C%_libnvrtc_la_CPPFLAGS = $(AM_CPPFLAGS) -DHOST_CC='"$(CC)"' \
	-DHOST_SHIM='"$(abs_top_srcdir)/tests/fake/shim.h"' -DHOST_SANITIZERS='"$(KERNEL_SANITIZERS)"'
%C%_libnvrtc_la_LDFLAGS = -rpath /nowhere -version-info 13:0:0 -export-symbols-regex '^nvrtc'
%C%_libnvrtc_la_LIBADD = libcore.la
# The libraries that support/graph/fakes.c opens.
OPENED_FAKES = %D%/libcublasLt.la %D%/libcuda.la %D%/libnvrtc.la
if HAVE_CUDNN
OPENED_FAKES += %D%/libcudnn.la
check_LTLIBRARIES += %D%/libcudnn.la
%C%_libcudnn_la_SOURCES = %D%/dnn.c
%C%_libcudnn_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
%C%_libcudnn_la_LDFLAGS = -rpath /nowhere -version-info 9:0:0 -export-symbols-regex '^(cudnn|fake_dnn)'
%C%_libcudnn_la_LIBADD = libcore.la %D%/libcuda.la
endif
endif
if HAVE_NCCL
check_LTLIBRARIES += %D%/libnccl.la
%C%_libnccl_la_SOURCES = %D%/fake_nccl.c
%C%_libnccl_la_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
%C%_libnccl_la_LDFLAGS = -rpath /nowhere -version-info 2:0:0
%C%_libnccl_la_LIBADD = %D%/libcuda.la
endif
