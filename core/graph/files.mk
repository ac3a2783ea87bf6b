# Files of core/graph.
libcore_la_SOURCES += core/graph/ir/all_reduce.c core/graph/ir/build.c core/graph/ir/build.h \
	core/graph/ir/convolution.c core/graph/ir/gradient.c core/graph/ir/gradient.h \
	core/graph/ir/ir_internal.h core/graph/ir/kinds.c core/graph/ir/layers.c core/graph/ir/leaf.c \
	core/graph/ir/leaf.h core/graph/ir/map.c core/graph/ir/map_gradient.c core/graph/ir/move.c \
	core/graph/ir/node.h core/graph/ir/op.c core/graph/ir/op.h core/graph/ir/patch.c \
	core/graph/ir/patch.h core/graph/ir/pool.c core/graph/ir/print.c core/graph/ir/print.h \
	core/graph/ir/reduce.c core/graph/ir/shape.c core/graph/ir/shape.h core/graph/ir/sort.c \
	core/graph/ir/sort.h core/graph/ir/target.c
libcore_la_SOURCES += core/graph/nn/nn.c
libcore_la_SOURCES += core/graph/optimizer/loss_scaling.h core/graph/optimizer/map_builder.c \
	core/graph/optimizer/map_builder.h \
	core/graph/optimizer/optimizer_trace.c core/graph/optimizer/optimizer_trace.h \
	core/graph/optimizer/table_pool.c core/graph/optimizer/table_pool.h core/graph/optimizer/update.c \
	core/graph/optimizer/update.h core/graph/optimizer/update_class.c \
	core/graph/optimizer/update_internal.h core/graph/optimizer/update_kernel.c
libcore_la_SOURCES += core/graph/passes/communicate.c core/graph/passes/communicate.h \
	core/graph/passes/precision.c core/graph/passes/precision.h core/graph/passes/recompute.c \
	core/graph/passes/recompute.h core/graph/passes/simplify.c core/graph/passes/simplify.h
libcore_la_SOURCES += core/graph/passes/fuse/fuse.c core/graph/passes/fuse/fuse.h \
	core/graph/passes/fuse/fuse_join.c core/graph/passes/fuse/fuse_lower.c \
	core/graph/passes/fuse/fuse_materialise.c core/graph/passes/fuse/fuse_slice.c \
	core/graph/passes/fuse/fuse_source.c core/graph/passes/fuse/fuse_split.c \
	core/graph/passes/fuse/fuse_store.c core/graph/passes/fuse/fuse_unit.c \
	core/graph/passes/fuse/lower.c core/graph/passes/fuse/lower.h
libcore_la_SOURCES += core/graph/program/all_reduce_kernels.c core/graph/program/bind.c \
	core/graph/program/captured_graph.c core/graph/program/explain.c core/graph/program/explain.h \
	core/graph/program/gradient_buckets.c core/graph/program/gradients.c \
	core/graph/program/host_kernels.c core/graph/program/memory.c core/graph/program/memory.h \
	core/graph/program/plan.c core/graph/program/plan.h core/graph/program/prepare.c \
	core/graph/program/program.c core/graph/program/program.h core/graph/program/program_internal.h \
	core/graph/program/program_range.c core/graph/program/program_run.c \
	core/graph/program/program_testing.h \
	core/graph/program/schedule.c core/graph/program/tensor_layout.c
libcore_la_SOURCES += core/graph/reference/convolution_body.h core/graph/reference/kernels_body.h \
	core/graph/reference/kernels_double.c core/graph/reference/kernels_float.c \
	core/graph/reference/map_body.h core/graph/reference/move_body.h core/graph/reference/reference.c \
	core/graph/reference/reference.h core/graph/reference/reference_index.c \
	core/graph/reference/reference_internal.h core/graph/reference/reference_number.c \
	core/graph/reference/reference_op.c core/graph/reference/reference_patch.c \
	core/graph/reference/window_body.h
libcore_la_SOURCES += core/graph/storage/device_handle.h core/graph/storage/device_stream.h \
	core/graph/storage/profiler_range.h core/graph/storage/staging.c core/graph/storage/staging.h \
	core/graph/storage/storage.c core/graph/storage/storage.h
