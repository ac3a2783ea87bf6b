# Files of plugins/devices.

# The cpu device. Its loops over lanes are compiled once for each kind of processor; -O2 in CFLAGS
# comes behind these flags and does not take them back.
CPU_LOOPS = -ftree-vectorize $(VECTORS_ALWAYS) -fno-math-errno -fno-trapping-math \
	-Wno-psabi
CPU_LANES = plugins/devices/cpu/map_lanes.c plugins/devices/cpu/map_machine.c \
	plugins/devices/cpu/map_machine_memory.c plugins/devices/cpu/map_machine_moments.c \
	plugins/devices/cpu/map_instruction.h \
	plugins/devices/cpu/map_random.c plugins/devices/cpu/map_vector.h \
	plugins/devices/cpu/map_machine.h \
	plugins/devices/cpu/narrow_wide.c plugins/devices/cpu/narrow_planar.c \
	plugins/devices/cpu/narrow_layout.c plugins/devices/cpu/narrow_lanes.h \
	plugins/devices/cpu/narrow_vector.h plugins/devices/cpu/shuffle.h plugins/devices/cpu/lane.h \
	plugins/devices/cpu/direct_lanes.c plugins/devices/cpu/direct.h \
	plugins/devices/cpu/vector.h plugins/devices/cpu/rows_lanes.c plugins/devices/cpu/rows.h \
	plugins/devices/cpu/map_lanes.h
CPU_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS) $(CPU_LOOPS)

noinst_LTLIBRARIES += libcpubaseline.la libcpudevice.la
libcpubaseline_la_SOURCES = $(CPU_LANES)
libcpubaseline_la_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ROW=baseline
libcpubaseline_la_CFLAGS = $(CPU_CFLAGS)
libcpudevice_la_LIBADD = libcpubaseline.la
if X86_64
noinst_LTLIBRARIES += libcpuavx2.la libcpuavx512.la
libcpuavx2_la_SOURCES = $(CPU_LANES)
libcpuavx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ROW=avx2
libcpuavx2_la_CFLAGS = $(CPU_CFLAGS) -mavx2 -mfma
libcpuavx512_la_SOURCES = $(CPU_LANES) plugins/devices/cpu/wide_amx.c \
	plugins/devices/cpu/wide_dots.c plugins/devices/cpu/wide_pack.c plugins/devices/cpu/wide.h \
	plugins/devices/cpu/wide_zip.h plugins/devices/cpu/winograd_lanes.c \
	plugins/devices/cpu/winograd.h
libcpuavx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ROW=avx512
libcpuavx512_la_CFLAGS = $(CPU_CFLAGS) -mavx2 -mfma -mavx512f -mavx512bw -mavx512vl -mavx512dq \
	-mprefer-vector-width=512
# The loops of narrow convolutions once more, for processors that multiply pairs of bf16.
noinst_LTLIBRARIES += libcpupairs.la
libcpupairs_la_SOURCES = plugins/devices/cpu/narrow_wide.c plugins/devices/cpu/narrow_planar.c \
	plugins/devices/cpu/narrow_pairs.c plugins/devices/cpu/narrow_up.c \
	plugins/devices/cpu/narrow_zip.c plugins/devices/cpu/narrow_place.c \
	plugins/devices/cpu/wide_zip.h
libcpupairs_la_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ROW=pairs -DVECTOR_PAIRS
libcpupairs_la_CFLAGS = $(libcpuavx512_la_CFLAGS) -mavx512bf16
# The loops of maps once more, for processors that make bf16 of floats.
noinst_LTLIBRARIES += libcpuhalves.la
libcpuhalves_la_SOURCES = plugins/devices/cpu/map_lanes.c plugins/devices/cpu/map_machine.c \
	plugins/devices/cpu/map_machine_memory.c plugins/devices/cpu/map_machine_moments.c \
	plugins/devices/cpu/map_random.c
libcpuhalves_la_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ROW=avx512bf16
libcpuhalves_la_CFLAGS = $(libcpuavx512_la_CFLAGS) -mavx512bf16
libcpudevice_la_LIBADD += libcpuavx2.la libcpuavx512.la libcpupairs.la libcpuhalves.la
endif
libcpudevice_la_SOURCES = plugins/devices/cpu/cpu.h plugins/devices/cpu/device.c plugins/devices/cpu/headroom.c \
	plugins/devices/cpu/headroom.h plugins/devices/cpu/caches.c plugins/devices/cpu/caches.h \
	plugins/devices/cpu/isa.c plugins/devices/cpu/isa.h \
	plugins/devices/cpu/map.c plugins/devices/cpu/map.h plugins/devices/cpu/map_number.c \
	plugins/devices/cpu/map_pass.c plugins/devices/cpu/map_reduce.c plugins/devices/cpu/map_run.c \
	plugins/devices/cpu/map_rows.c plugins/devices/cpu/map_space.c \
	plugins/devices/cpu/op.c plugins/devices/cpu/patch.c \
	plugins/devices/cpu/map_code.c plugins/devices/cpu/map_code.h \
	plugins/devices/cpu/map_code_node.c plugins/devices/cpu/map_code_out.c \
	plugins/devices/cpu/map_nodes.c \
	plugins/devices/cpu/map_compile.c plugins/devices/cpu/map_compile.h \
	plugins/devices/cpu/map_compile_parts.h plugins/devices/cpu/map_compile_place.c \
	plugins/devices/cpu/map_compile_steps.c plugins/devices/cpu/map_compile_vector.c \
	plugins/devices/cpu/x86_code.c plugins/devices/cpu/x86_code.h \
	plugins/devices/cpu/map_tile.c plugins/devices/cpu/map_visit.c plugins/devices/cpu/move.c \
	plugins/devices/cpu/parallel.c plugins/devices/cpu/pool.c plugins/devices/cpu/resize.c \
	plugins/devices/cpu/arg_max.c plugins/devices/cpu/blend.c plugins/devices/cpu/blend.h \
	plugins/devices/cpu/extreme.c plugins/devices/cpu/pad_gradient.c \
	plugins/devices/cpu/pool.h plugins/devices/cpu/pool_gradient.c \
	plugins/devices/cpu/take.c plugins/devices/cpu/take.h \
	plugins/devices/cpu/direct.c plugins/devices/cpu/direct_matmul.c \
	plugins/devices/cpu/direct_weight.c \
	plugins/devices/cpu/limits.c plugins/devices/cpu/limits.h plugins/devices/cpu/rows.h \
	plugins/devices/cpu/convolution.c plugins/devices/cpu/narrow.c plugins/devices/cpu/narrow.h \
	plugins/devices/cpu/narrow_plan.h plugins/devices/cpu/narrow_run.c \
	plugins/devices/cpu/narrow_work.h plugins/devices/cpu/narrow_rows.c \
	plugins/devices/cpu/narrow_buffer.c plugins/devices/cpu/narrow_forward.c \
	plugins/devices/cpu/narrow_forward_planar.c plugins/devices/cpu/narrow_spread.c \
	plugins/devices/cpu/narrow_gradient.c \
	plugins/devices/cpu/narrow_weight.c plugins/devices/cpu/onednn.h plugins/devices/cpu/wide.h \
	plugins/devices/cpu/narrow_tile.h \
	plugins/devices/cpu/onednn_version.h
if X86_64
libcpudevice_la_SOURCES += plugins/devices/cpu/limits_x86.c
else
libcpudevice_la_SOURCES += plugins/devices/cpu/limits_plain.c
endif
EXTRA_DIST += plugins/devices/cpu/limits_x86.c plugins/devices/cpu/limits_plain.c
CPU_WIDE = plugins/devices/cpu/narrow_tile.c plugins/devices/cpu/narrow_tile_weight.c \
	plugins/devices/cpu/narrow_tile_gradient.c \
	plugins/devices/cpu/wide_grid.c plugins/devices/cpu/wide_grid.h \
	plugins/devices/cpu/wide_image.c plugins/devices/cpu/wide_runs.c \
	plugins/devices/cpu/wide_terms.c plugins/devices/cpu/wide_terms.h \
	plugins/devices/cpu/wide_lines.c plugins/devices/cpu/wide_lines.h \
	plugins/devices/cpu/wide_plain.c plugins/devices/cpu/wide_weight.c \
	plugins/devices/cpu/winograd.c plugins/devices/cpu/winograd_pack.c \
	plugins/devices/cpu/winograd_weight.c
if X86_64
libcpudevice_la_SOURCES += $(CPU_WIDE)
else
libcpudevice_la_SOURCES += plugins/devices/cpu/wide_absent.c
endif
EXTRA_DIST += $(CPU_WIDE) plugins/devices/cpu/wide_amx.c plugins/devices/cpu/wide_dots.c \
	plugins/devices/cpu/wide_pack.c plugins/devices/cpu/wide_absent.c plugins/devices/cpu/narrow_pairs.c \
	plugins/devices/cpu/winograd_lanes.c
if HAVE_ONEDNN
libcpudevice_la_SOURCES += plugins/devices/cpu/onednn.c plugins/devices/cpu/onednn_version.c
libcpudevice_la_LIBADD += $(ONEDNN_LIBS)
else
libcpudevice_la_SOURCES += plugins/devices/cpu/onednn_absent.c
endif
EXTRA_DIST += plugins/devices/cpu/onednn.c plugins/devices/cpu/onednn_version.c \
	plugins/devices/cpu/onednn_absent.c
libcpudevice_la_CPPFLAGS = $(AM_CPPFLAGS) $(ONEDNN_CFLAGS) $(ISA_LIMIT)
libcpudevice_la_CFLAGS = $(CPU_CFLAGS)

device_LTLIBRARIES += cpu.la
cpu_la_SOURCES =
cpu_la_LIBADD = libcpudevice.la $(PLUGIN_LIBADD)
cpu_la_LDFLAGS = $(PLUGIN_LDFLAGS) $(OPENMP_CFLAGS)

# The cuda device. Nothing of CUDA is needed to build it: the driver and the compiler of its kernels
# are found when it is opened.
CUDA_FILES = plugins/devices/cuda/blas.c plugins/devices/cuda/blas.h \
	plugins/devices/cuda/blas_choose.c plugins/devices/cuda/blas_product.c plugins/devices/cuda/cuda.h plugins/devices/cuda/device.c \
	plugins/devices/cuda/dnn.h plugins/devices/cuda/driver.c \
	plugins/devices/cuda/driver.h plugins/devices/cuda/kernel.c \
	plugins/devices/cuda/library.c plugins/devices/cuda/memory.c \
	plugins/devices/cuda/queue.c plugins/devices/cuda/timer.c plugins/devices/cuda/limits.c plugins/devices/cuda/ranges.c \
	plugins/devices/cuda/ranges.h plugins/devices/cuda/recording.c \
	plugins/devices/cuda/sensors.c \
	plugins/devices/cuda/sensors.h plugins/devices/cuda/source.c \
	plugins/devices/cuda/source.h \
	plugins/devices/cuda/source_convolution.c plugins/devices/cuda/source_direct.c \
	plugins/devices/cuda/source_direct.h plugins/devices/cuda/source_extreme.c \
	plugins/devices/cuda/source_map.c plugins/devices/cuda/source_map.h \
	plugins/devices/cuda/source_patch.c plugins/devices/cuda/source_pool.c \
	plugins/devices/cuda/source_reduce.c \
	plugins/devices/cuda/source_take.c plugins/devices/cuda/source_value.c \
	plugins/devices/cuda/source_weight.c \
	plugins/devices/cuda/text.c plugins/devices/cuda/text.h \
	plugins/devices/cuda/text_preamble.c plugins/devices/cuda/toolkit.c \
	plugins/devices/cuda/toolkit.h plugins/devices/cuda/trial.c \
	plugins/devices/cuda/trial.h plugins/devices/cuda/unit.c
CUDNN_FILES = plugins/devices/cuda/dnn.c plugins/devices/cuda/dnn_choose.c \
	plugins/devices/cuda/dnn_convolution.c \
	plugins/devices/cuda/dnn_graph.c plugins/devices/cuda/dnn_plan.c
EXTRA_DIST += $(CUDA_FILES) $(CUDNN_FILES) plugins/devices/cuda/dnn_absent.c
if HAVE_CUDA
noinst_LTLIBRARIES += libcudadevice.la
libcudadevice_la_SOURCES = $(CUDA_FILES)
if HAVE_CUDNN
libcudadevice_la_SOURCES += $(CUDNN_FILES)
else
libcudadevice_la_SOURCES += plugins/devices/cuda/dnn_absent.c
endif
device_LTLIBRARIES += cuda.la
cuda_la_SOURCES =
cuda_la_LIBADD = libcudadevice.la $(PLUGIN_LIBADD)
cuda_la_LDFLAGS = $(PLUGIN_LDFLAGS)
endif
