# Files of plugins/devices.

# The cpu device. Its loops over lanes are compiled once for each kind of processor; -O2 in CFLAGS
# comes behind these flags and does not take them back.
CPU_LOOPS = -ftree-vectorize $(VECTORS_ALWAYS) -fno-math-errno -fno-trapping-math \
	-Wno-psabi
CPU_LANES = plugins/devices/cpu/map/map_lanes.c plugins/devices/cpu/map/interpreter/interpreter.c \
	plugins/devices/cpu/map/interpreter/interpreter_memory.c \
	plugins/devices/cpu/map/interpreter/interpreter_moments.c \
	plugins/devices/cpu/map/interpreter/interpreter_instruction.h \
	plugins/devices/cpu/map/interpreter/interpreter_random.c \
	plugins/devices/cpu/map/interpreter/interpreter_vector.h \
	plugins/devices/cpu/map/interpreter/interpreter.h \
	plugins/devices/cpu/conv/few_channels/loops_vector.c \
	plugins/devices/cpu/conv/few_channels/loops_planar.c \
	plugins/devices/cpu/conv/few_channels/few_channels_layout.c \
	plugins/devices/cpu/conv/few_channels/loops.h \
	plugins/devices/cpu/conv/few_channels/few_channels_vector.h plugins/devices/cpu/simd/shuffle.h \
	plugins/devices/cpu/simd/lane_math.h plugins/devices/cpu/conv/direct/direct_lanes.c \
	plugins/devices/cpu/conv/direct/direct.h plugins/devices/cpu/simd/vector.h \
	plugins/devices/cpu/pool/row_loops_lanes.c plugins/devices/cpu/pool/row_loops.h \
	plugins/devices/cpu/map/map_lanes.h
CPU_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS) $(CPU_LOOPS)

noinst_LTLIBRARIES += libcpubaseline.la libcpudevice.la
libcpubaseline_la_SOURCES = $(CPU_LANES)
libcpubaseline_la_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ISA=baseline
libcpubaseline_la_CFLAGS = $(CPU_CFLAGS)
libcpudevice_la_LIBADD = libcpubaseline.la
if X86_64
noinst_LTLIBRARIES += libcpuavx2.la libcpuavx512.la
libcpuavx2_la_SOURCES = $(CPU_LANES)
libcpuavx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ISA=avx2
libcpuavx2_la_CFLAGS = $(CPU_CFLAGS) -mavx2 -mfma
libcpuavx512_la_SOURCES = $(CPU_LANES) plugins/devices/cpu/conv/bf16_gemm/engine_amx.c \
	plugins/devices/cpu/conv/bf16_gemm/engine_avx512_bf16.c \
	plugins/devices/cpu/conv/bf16_gemm/gemm_pack.c plugins/devices/cpu/conv/bf16_gemm/bf16_gemm.h \
	plugins/devices/cpu/conv/bf16_gemm/bf16_interleave.h \
	plugins/devices/cpu/conv/winograd/winograd_transform.c \
	plugins/devices/cpu/conv/winograd/winograd.h
libcpuavx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ISA=avx512
libcpuavx512_la_CFLAGS = $(CPU_CFLAGS) -mavx2 -mfma -mavx512f -mavx512bw -mavx512vl -mavx512dq \
	-mprefer-vector-width=512
# Loops of few_channels for processors that multiply pairs of bf16.
noinst_LTLIBRARIES += libcpubf16x2.la
libcpubf16x2_la_SOURCES = plugins/devices/cpu/conv/few_channels/loops_vector.c \
	plugins/devices/cpu/conv/few_channels/loops_planar.c \
	plugins/devices/cpu/conv/few_channels/loops_bf16x2.c \
	plugins/devices/cpu/conv/few_channels/loops_upsample2.c \
	plugins/devices/cpu/conv/few_channels/loops_interleave.c \
	plugins/devices/cpu/conv/few_channels/loops_in_place.c \
	plugins/devices/cpu/conv/bf16_gemm/bf16_interleave.h
libcpubf16x2_la_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ISA=bf16x2 -DVECTOR_BF16X2
libcpubf16x2_la_CFLAGS = $(libcpuavx512_la_CFLAGS) -mavx512bf16
# Loops of maps for processors that convert floats to bf16.
noinst_LTLIBRARIES += libcpuavx512bf16.la
libcpuavx512bf16_la_SOURCES = plugins/devices/cpu/map/map_lanes.c \
	plugins/devices/cpu/map/interpreter/interpreter.c \
	plugins/devices/cpu/map/interpreter/interpreter_memory.c \
	plugins/devices/cpu/map/interpreter/interpreter_moments.c \
	plugins/devices/cpu/map/interpreter/interpreter_random.c
libcpuavx512bf16_la_CPPFLAGS = $(AM_CPPFLAGS) -DCPU_ISA=avx512bf16
libcpuavx512bf16_la_CFLAGS = $(libcpuavx512_la_CFLAGS) -mavx512bf16
libcpudevice_la_LIBADD += libcpuavx2.la libcpuavx512.la libcpubf16x2.la libcpuavx512bf16.la
endif
libcpudevice_la_SOURCES = plugins/devices/cpu/cpu.h plugins/devices/cpu/cpu_device.c \
	plugins/devices/cpu/alloc_probe.c plugins/devices/cpu/alloc_probe.h \
	plugins/devices/cpu/cache_size.c plugins/devices/cpu/cache_size.h plugins/devices/cpu/isa.c \
	plugins/devices/cpu/isa.h plugins/devices/cpu/map/map_kernel.c \
	plugins/devices/cpu/map/map_internal.h plugins/devices/cpu/map/map_convert.c \
	plugins/devices/cpu/map/map_pass.c plugins/devices/cpu/map/map_reduce.c \
	plugins/devices/cpu/map/map_run.c plugins/devices/cpu/isa_rows.c plugins/devices/cpu/isa_rows.h \
	plugins/devices/cpu/map/map_space.c plugins/devices/cpu/cpu_op.c plugins/devices/cpu/cpu_patch.c \
	plugins/devices/cpu/map/bytecode/bytecode.c plugins/devices/cpu/map/bytecode/bytecode.h \
	plugins/devices/cpu/map/bytecode/bytecode_node.c \
	plugins/devices/cpu/map/bytecode/bytecode_output.c plugins/devices/cpu/map/map_nodes.c \
	plugins/devices/cpu/map/jit/jit.c plugins/devices/cpu/map/jit/jit.h \
	plugins/devices/cpu/map/jit/jit_internal.h plugins/devices/cpu/map/jit/jit_operands.c \
	plugins/devices/cpu/map/jit/jit_steps.c plugins/devices/cpu/map/jit/jit_vector.c \
	plugins/devices/cpu/map/jit/x86_assembler.c plugins/devices/cpu/map/jit/x86_assembler.h \
	plugins/devices/cpu/map/map_tile.c plugins/devices/cpu/map/interpreter/interpreter_visit.c \
	plugins/devices/cpu/move/move_kernel.c plugins/devices/cpu/cpu_threads.c \
	plugins/devices/cpu/pool/pool_kernel.c plugins/devices/cpu/pool/resize.c \
	plugins/devices/cpu/pool/argmax.c plugins/devices/cpu/pool/separable.c \
	plugins/devices/cpu/pool/separable.h plugins/devices/cpu/pool/argmax_axes.c \
	plugins/devices/cpu/move/pad_gradient.c plugins/devices/cpu/pool/pool_internal.h \
	plugins/devices/cpu/pool/pool_gradient.c plugins/devices/cpu/move/gather_copy.c \
	plugins/devices/cpu/move/gather_copy.h plugins/devices/cpu/conv/direct/direct.c \
	plugins/devices/cpu/conv/direct/direct_matmul.c \
	plugins/devices/cpu/conv/direct/direct_weight_gradient.c plugins/devices/cpu/peak.c \
	plugins/devices/cpu/peak.h plugins/devices/cpu/pool/row_loops.h plugins/devices/cpu/conv/select.c \
	plugins/devices/cpu/conv/problem.c plugins/devices/cpu/conv/problem.h \
	plugins/devices/cpu/conv/solver.h plugins/devices/cpu/conv/conv_testing.h \
	plugins/devices/cpu/conv/matmul_select.c plugins/devices/cpu/cpu_testing.h \
	plugins/devices/cpu/conv/direct/direct_cost.c \
	plugins/devices/cpu/conv/few_channels/few_channels.c \
	plugins/devices/cpu/conv/few_channels/few_channels.h \
	plugins/devices/cpu/conv/few_channels/few_channels_plan.h \
	plugins/devices/cpu/conv/few_channels/few_channels_run.c \
	plugins/devices/cpu/conv/few_channels/few_channels_internal.h \
	plugins/devices/cpu/conv/few_channels/few_channels_rows.c \
	plugins/devices/cpu/conv/few_channels/few_channels_buffer.c \
	plugins/devices/cpu/conv/few_channels/few_channels_forward.c \
	plugins/devices/cpu/conv/few_channels/few_channels_forward_planar.c \
	plugins/devices/cpu/conv/few_channels/few_channels_input_gradient.c \
	plugins/devices/cpu/conv/few_channels/few_channels_weight_gradient.c \
	plugins/devices/cpu/conv/few_channels/few_channels_weight.c \
	plugins/devices/cpu/conv/onednn/onednn.h plugins/devices/cpu/conv/bf16_gemm/bf16_gemm.h \
	plugins/devices/cpu/conv/few_channels_amx/few_channels_amx.h \
	plugins/devices/cpu/conv/onednn/onednn_compat.h
if X86_64
libcpudevice_la_SOURCES += plugins/devices/cpu/peak_x86.c
else
libcpudevice_la_SOURCES += plugins/devices/cpu/peak_plain.c
endif
EXTRA_DIST += plugins/devices/cpu/peak_x86.c plugins/devices/cpu/peak_plain.c
CPU_WIDE = plugins/devices/cpu/conv/few_channels_amx/few_channels_amx.c \
	plugins/devices/cpu/conv/few_channels_amx/few_channels_amx_weight.c \
	plugins/devices/cpu/conv/few_channels_amx/few_channels_amx_gradient.c \
	plugins/devices/cpu/conv/bf16_gemm/gemm_grid.c plugins/devices/cpu/conv/bf16_gemm/gemm_grid.h \
	plugins/devices/cpu/conv/bf16_gemm/gemm_image.c \
	plugins/devices/cpu/conv/bf16_gemm/engine_select.c \
	plugins/devices/cpu/conv/bf16_gemm/bf16_gemm_cost.c \
	plugins/devices/cpu/conv/bf16_gemm/gemm_terms.c plugins/devices/cpu/conv/bf16_gemm/gemm_terms.h \
	plugins/devices/cpu/conv/bf16_gemm/gemm_weight_rows.c \
	plugins/devices/cpu/conv/bf16_gemm/gemm_weight_rows.h \
	plugins/devices/cpu/conv/bf16_gemm/gemm_weight_plain.c \
	plugins/devices/cpu/conv/bf16_gemm/gemm_weight_gradient.c \
	plugins/devices/cpu/conv/winograd/winograd.c \
	plugins/devices/cpu/conv/winograd/winograd_cost.c \
	plugins/devices/cpu/conv/winograd/winograd_weight_pack.c \
	plugins/devices/cpu/conv/winograd/winograd_weight_gradient.c
if X86_64
libcpudevice_la_SOURCES += $(CPU_WIDE)
else
libcpudevice_la_SOURCES += plugins/devices/cpu/conv/x86_absent.c
endif
EXTRA_DIST += $(CPU_WIDE) plugins/devices/cpu/conv/bf16_gemm/engine_amx.c \
	plugins/devices/cpu/conv/bf16_gemm/engine_avx512_bf16.c \
	plugins/devices/cpu/conv/bf16_gemm/gemm_pack.c plugins/devices/cpu/conv/x86_absent.c \
	plugins/devices/cpu/conv/few_channels/loops_bf16x2.c \
	plugins/devices/cpu/conv/winograd/winograd_transform.c
if HAVE_ONEDNN
libcpudevice_la_SOURCES += plugins/devices/cpu/conv/onednn/onednn.c \
	plugins/devices/cpu/conv/onednn/onednn_compat.c
libcpudevice_la_LIBADD += $(ONEDNN_LIBS)
else
libcpudevice_la_SOURCES += plugins/devices/cpu/conv/onednn/onednn_absent.c
endif
EXTRA_DIST += plugins/devices/cpu/conv/onednn/onednn.c \
	plugins/devices/cpu/conv/onednn/onednn_compat.c plugins/devices/cpu/conv/onednn/onednn_absent.c
libcpudevice_la_CPPFLAGS = $(AM_CPPFLAGS) $(ONEDNN_CFLAGS) $(ISA_LIMIT)
libcpudevice_la_CFLAGS = $(CPU_CFLAGS)
# The limit of instructions is in isa.c alone, so a folder that is configured again compiles little. A rule without the
# variable would take the place of Automake's.
ISA_OBJECT = plugins/devices/cpu/libcpudevice_la-isa.lo
$(ISA_OBJECT): Makefile

device_LTLIBRARIES += cpu.la
cpu_la_SOURCES =
cpu_la_LIBADD = libcpudevice.la $(PLUGIN_LIBADD)
cpu_la_LDFLAGS = $(PLUGIN_LDFLAGS) $(OPENMP_CFLAGS)

# The cuda device. Nothing of CUDA is needed to build it: the driver and the compiler of its kernels
# are found when it is opened.
CUDA_FILES = plugins/devices/cuda/cublaslt/cublaslt.c plugins/devices/cuda/cublaslt/cublaslt.h \
	plugins/devices/cuda/cublaslt/cublaslt_choose.c plugins/devices/cuda/cublaslt/cublaslt_product.c \
	plugins/devices/cuda/cuda.h plugins/devices/cuda/cuda_device.c plugins/devices/cuda/cudnn/cudnn.h \
	plugins/devices/cuda/driver/driver.c plugins/devices/cuda/driver/driver.h \
	plugins/devices/cuda/cuda_kernel.c plugins/devices/cuda/module_cache.c \
	plugins/devices/cuda/driver/cuda_memory.c plugins/devices/cuda/driver/cuda_stream.c \
	plugins/devices/cuda/cuda_timer.c plugins/devices/cuda/cuda_peak.c \
	plugins/devices/cuda/driver/nvtx.c plugins/devices/cuda/driver/nvtx.h \
	plugins/devices/cuda/driver/dcgm.c plugins/devices/cuda/driver/dcgm.h \
	plugins/devices/cuda/driver/graph_capture.c plugins/devices/cuda/driver/nvml.c \
	plugins/devices/cuda/driver/nvml.h plugins/devices/cuda/codegen/codegen.c \
	plugins/devices/cuda/codegen/codegen.h plugins/devices/cuda/codegen/codegen_convolution.c \
	plugins/devices/cuda/codegen/codegen_direct.c plugins/devices/cuda/codegen/codegen_direct.h \
	plugins/devices/cuda/codegen/codegen_argmax.c plugins/devices/cuda/codegen/codegen_map.c \
	plugins/devices/cuda/codegen/codegen_internal.h plugins/devices/cuda/codegen/codegen_patch.c \
	plugins/devices/cuda/codegen/codegen_pool.c plugins/devices/cuda/codegen/codegen_reduce.c \
	plugins/devices/cuda/codegen/codegen_gather.c plugins/devices/cuda/codegen/codegen_value.c \
	plugins/devices/cuda/codegen/codegen_weight_gradient.c plugins/devices/cuda/codegen/code_text.c \
	plugins/devices/cuda/codegen/code_text.h plugins/devices/cuda/codegen/code_preamble.c \
	plugins/devices/cuda/driver/toolkit.c plugins/devices/cuda/driver/toolkit.h \
	plugins/devices/cuda/autotune.c plugins/devices/cuda/autotune.h \
	plugins/devices/cuda/compile_job.c
CUDNN_FILES = plugins/devices/cuda/cudnn/cudnn.c plugins/devices/cuda/cudnn/cudnn_choose.c \
	plugins/devices/cuda/cudnn/cudnn_convolution.c plugins/devices/cuda/cudnn/cudnn_graph.c \
	plugins/devices/cuda/cudnn/cudnn_plan.c
EXTRA_DIST += $(CUDA_FILES) $(CUDNN_FILES) plugins/devices/cuda/cudnn/cudnn_absent.c
if HAVE_CUDA
noinst_LTLIBRARIES += libcudadevice.la
libcudadevice_la_SOURCES = $(CUDA_FILES)
if HAVE_CUDNN
libcudadevice_la_SOURCES += $(CUDNN_FILES)
else
libcudadevice_la_SOURCES += plugins/devices/cuda/cudnn/cudnn_absent.c
endif
device_LTLIBRARIES += cuda.la
cuda_la_SOURCES =
cuda_la_LIBADD = libcudadevice.la $(PLUGIN_LIBADD)
cuda_la_LDFLAGS = $(PLUGIN_LDFLAGS)
endif
