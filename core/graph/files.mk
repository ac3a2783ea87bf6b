# Files of core/graph.
ponsinclude_HEADERS += core/pons/plugin.h core/pons/graph.h core/pons/model.h core/pons/loss.h \
	core/pons/optimizer.h core/pons/schedule.h core/pons/device.h core/pons/sink.h core/pons/op.h \
	core/pons/comm.h core/pons/pons.h
libcore_la_SOURCES += core/graph/node.h core/graph/ir_internal.h core/graph/build.h core/graph/build.c \
	core/graph/shape.h core/graph/shape.c core/graph/leaf.h core/graph/leaf.c \
	core/graph/patch.h core/graph/patch.c core/graph/all_reduce.c core/graph/gradient.h \
	core/graph/sort.h core/graph/op.h \
	core/graph/kinds.c core/graph/map.c core/graph/map_gradient.c core/graph/reduce.c \
	core/graph/convolution.c core/graph/pool.c core/graph/move.c core/graph/layers.c \
	core/graph/target.c core/graph/gradient.c

# programs
libcore_la_SOURCES += core/graph/device_handle.h core/graph/program.h core/graph/explain.h \
	core/graph/plan.h core/graph/table.h \
	core/graph/memory.h core/graph/memory.c core/graph/mirror.h \
	core/graph/mirror.c core/graph/hosted.c core/graph/storage.h \
	core/graph/storage.c core/graph/formula.h core/graph/formula.c core/graph/recipe.h \
	core/graph/recipe.c core/graph/update.h core/graph/update.c \
	core/graph/update_class.h core/graph/update_class.c core/graph/update_kernel.c core/graph/table.c \
	core/graph/compile.h core/graph/program.c core/graph/gradients.c core/graph/place.c \
	core/graph/prepare.c core/graph/collective.c core/graph/bucket.c core/graph/bind.c \
	core/graph/queue.h core/graph/range.h core/graph/segment.c core/graph/run.c core/graph/describe.c

# passes
libcore_la_SOURCES += core/graph/simplify.h core/graph/precision.h core/graph/recompute.h \
	core/graph/communicate.h \
	core/graph/lower.h core/graph/fuse.h core/graph/lower.c core/graph/fuse.c \
	core/graph/fuse_source.c core/graph/fuse_place.c core/graph/fuse_slice.c core/graph/fuse_unit.c \
	core/graph/fuse_join.c core/graph/fuse_store.c core/graph/fuse_split.c core/graph/fuse_lower.c \
	core/graph/plan.c core/graph/communicate.c core/graph/op.c core/graph/sort.c \
	core/graph/simplify.c core/graph/precision.c core/graph/recompute.c

# reference
libcore_la_SOURCES += core/graph/reference/reference.h core/graph/reference/reference_internal.h \
	core/graph/reference/reference.c \
	core/graph/reference/op.c core/graph/reference/patch.c core/graph/reference/numbers.c \
	core/graph/reference/index.c \
	core/graph/reference/kernels_float.c core/graph/reference/kernels_double.c \
	core/graph/reference/kernels_body.h core/graph/reference/convolution_body.h \
	core/graph/reference/map_body.h core/graph/reference/move_body.h \
	core/graph/reference/window_body.h
libcore_la_SOURCES += core/graph/print.c core/graph/print.h
