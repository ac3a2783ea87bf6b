# Files of plugins.
sink_LTLIBRARIES += plugins/sinks/csv.la
plugins_sinks_csv_la_SOURCES = plugins/sinks/csv.c
plugins_sinks_csv_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_sinks_csv_la_LIBADD = $(PLUGIN_LIBADD)
# Model and schedule plugins.
model_LTLIBRARIES += plugins/models/unet.la plugins/models/segresnet.la plugins/models/dynunet.la

plugins_models_unet_la_SOURCES = plugins/models/unet.c plugins/models/model_layers.c \
	plugins/models/model_layers.h
plugins_models_unet_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_models_unet_la_LIBADD = $(PLUGIN_LIBADD)
plugins_models_segresnet_la_SOURCES = plugins/models/segresnet.c plugins/models/model_layers.c \
	plugins/models/model_layers.h
plugins_models_segresnet_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_models_segresnet_la_LIBADD = $(PLUGIN_LIBADD)
plugins_models_dynunet_la_SOURCES = plugins/models/dynunet.c plugins/models/model_layers.c \
	plugins/models/model_layers.h
plugins_models_dynunet_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_models_dynunet_la_LIBADD = $(PLUGIN_LIBADD)

schedule_LTLIBRARIES += plugins/schedules/constant.la plugins/schedules/poly.la plugins/schedules/cosine.la plugins/schedules/flat_cos.la

plugins_schedules_constant_la_SOURCES = plugins/schedules/constant.c
plugins_schedules_constant_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_schedules_constant_la_LIBADD = $(PLUGIN_LIBADD)
plugins_schedules_poly_la_SOURCES = plugins/schedules/poly.c
plugins_schedules_poly_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_schedules_poly_la_LIBADD = $(PLUGIN_LIBADD)
plugins_schedules_cosine_la_SOURCES = plugins/schedules/cosine.c
plugins_schedules_cosine_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_schedules_cosine_la_LIBADD = $(PLUGIN_LIBADD)
plugins_schedules_flat_cos_la_SOURCES = plugins/schedules/flat_cos.c
plugins_schedules_flat_cos_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_schedules_flat_cos_la_LIBADD = $(PLUGIN_LIBADD)
