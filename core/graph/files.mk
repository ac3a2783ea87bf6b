# Files of core/graph.
ponsinclude_HEADERS += core/pons/plugin.h core/pons/graph.h core/pons/model.h core/pons/loss.h \
	core/pons/optimizer.h core/pons/schedule.h core/pons/device.h core/pons/sink.h core/pons/pons.h
libcore_la_SOURCES += core/graph/node.h core/graph/program.h core/graph/plan.h
