# Files of core/onnx: trained networks as ONNX models. The messages of onnx.proto are generated.
libcore_la_SOURCES += core/onnx/onnx_export.h
if HAVE_ONNX
ONNX_MESSAGES = core/onnx/onnx.pb-c.c core/onnx/onnx.pb-c.h
BUILT_SOURCES += core/onnx/onnx.pb-c.h
CLEANFILES += $(ONNX_MESSAGES)
nodist_libcore_la_SOURCES = $(ONNX_MESSAGES)
libcore_la_SOURCES += core/onnx/onnx_dimension.c core/onnx/onnx_export.c core/onnx/onnx_fuse.c \
	core/onnx/onnx_internal.h core/onnx/onnx_map.c core/onnx/onnx_message.c \
	core/onnx/onnx_message.h core/onnx/onnx_node.c core/onnx/onnx_value.c
core/onnx/onnx.pb-c.h: core/onnx/onnx.pb-c.c
core/onnx/onnx.pb-c.c: $(ONNX_PROTO)
	$(AM_V_GEN)$(MKDIR_P) core/onnx && $(PROTOC_C) --c_out=core/onnx -I$$(dirname $(ONNX_PROTO)) $(ONNX_PROTO)
else
libcore_la_SOURCES += core/onnx/onnx_export_absent.c
endif
