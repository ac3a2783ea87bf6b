# Files of core/pons.
ponsinclude_HEADERS += core/pons/comm.h core/pons/device.h core/pons/graph.h core/pons/loss.h \
	core/pons/model.h core/pons/nn.h core/pons/op.h core/pons/optimizer.h core/pons/plugin.h \
	core/pons/pons.h core/pons/predict.h core/pons/schedule.h core/pons/sink.h core/pons/train.h core/pons/transform.h
