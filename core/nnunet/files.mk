# Files of core/nnunet.
libcore_la_SOURCES += core/nnunet/nnunet_json.c core/nnunet/nnunet_json.h \
	core/nnunet/nnunet_model.c core/nnunet/nnunet_model.h core/nnunet/nnunet_plan.c \
	core/nnunet/nnunet_plan.h core/nnunet/nnunet_plan_labels.c \
	core/nnunet/nnunet_plan_network.c core/nnunet/nnunet_plan_values.c \
	core/nnunet/nnunet_postprocess.c core/nnunet/nnunet_postprocess.h
