# Plugins of the kinds that need no library of their own. One of a single file NAME.c is NAME.la in its
# kind's list.
sink_LTLIBRARIES += plugins/sinks/csv.la
schedule_LTLIBRARIES += plugins/schedules/constant.la plugins/schedules/cosine.la \
	plugins/schedules/flat_cos.la plugins/schedules/poly.la
model_LTLIBRARIES += plugins/models/dynunet.la plugins/models/segresnet.la plugins/models/unet.la
