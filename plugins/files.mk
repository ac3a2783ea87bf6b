# Plugins of the kinds that need no library of their own. One of a single file NAME.c is NAME.la in its
# kind's list.
sink_LTLIBRARIES += plugins/sinks/csv.la plugins/sinks/tensorboard.la plugins/sinks/wandb.la
RUN_PARAMETERS = plugins/sinks/run_parameters.c plugins/sinks/run_parameters.h
noinst_LTLIBRARIES += libprotobuf_fields.la libevents.la libwandb_records.la
libprotobuf_fields_la_SOURCES = plugins/sinks/protobuf.c plugins/sinks/protobuf.h
libprotobuf_fields_la_LIBADD = $(JANSSON_LIBS)
libevents_la_SOURCES = plugins/sinks/tensorboard/event.c plugins/sinks/tensorboard/event.h \
	plugins/sinks/tensorboard/graph_def.c plugins/sinks/tensorboard/graph_def.h
libevents_la_LIBADD = libprotobuf_fields.la
plugins_sinks_tensorboard_la_SOURCES = plugins/sinks/tensorboard/tensorboard.c \
	plugins/sinks/tensorboard/event_files.c plugins/sinks/tensorboard/event_files.h $(RUN_PARAMETERS)
plugins_sinks_tensorboard_la_LIBADD = libevents.la $(INIH_LIBS)
libwandb_records_la_SOURCES = plugins/sinks/wandb/transaction_log.c plugins/sinks/wandb/transaction_log.h \
	plugins/sinks/wandb/run_record.c plugins/sinks/wandb/run_record.h
libwandb_records_la_LIBADD = libprotobuf_fields.la $(ZLIB_LIBS)
plugins_sinks_wandb_la_SOURCES = plugins/sinks/wandb/wandb.c plugins/sinks/wandb/offline_folder.c \
	plugins/sinks/wandb/offline_folder.h plugins/sinks/wandb/last_values.c plugins/sinks/wandb/last_values.h \
	plugins/sinks/wandb/rename_run.c plugins/sinks/wandb/rename_run.h $(RUN_PARAMETERS)
plugins_sinks_wandb_la_LIBADD = libwandb_records.la $(JANSSON_LIBS) $(INIH_LIBS)
MLFLOW_FILES = plugins/sinks/mlflow/mlflow.c plugins/sinks/mlflow/delivery.c plugins/sinks/mlflow/delivery.h \
	plugins/sinks/mlflow/client.c plugins/sinks/mlflow/client.h
EXTRA_DIST += $(MLFLOW_FILES)
if HAVE_CURL
sink_LTLIBRARIES += plugins/sinks/mlflow.la
plugins_sinks_mlflow_la_SOURCES = $(MLFLOW_FILES) $(RUN_PARAMETERS)
plugins_sinks_mlflow_la_CPPFLAGS = $(AM_CPPFLAGS) $(CURL_CFLAGS)
plugins_sinks_mlflow_la_LIBADD = $(CURL_LIBS) $(JANSSON_LIBS) $(INIH_LIBS)
endif
schedule_LTLIBRARIES += plugins/schedules/constant.la plugins/schedules/cosine.la \
	plugins/schedules/exponential.la plugins/schedules/flat_cos.la plugins/schedules/linear.la \
	plugins/schedules/one_cycle.la plugins/schedules/poly.la plugins/schedules/step.la
model_LTLIBRARIES += plugins/models/attention_unet.la plugins/models/basicunet.la \
	plugins/models/dynunet.la plugins/models/efficientnet.la plugins/models/fast_ddpm.la \
	plugins/models/highresnet.la plugins/models/meshnet.la plugins/models/mlp.la plugins/models/plain_unet.la \
	plugins/models/residual_unet.la plugins/models/resnet.la plugins/models/segresnet.la \
	plugins/models/swin_unetr.la plugins/models/unet.la plugins/models/vnet.la plugins/models/xresnet.la
UPSAMPLE = plugins/models/upsample.c plugins/models/upsample.h
plugins_models_basicunet_la_SOURCES = plugins/models/basicunet.c $(UPSAMPLE)
plugins_models_segresnet_la_SOURCES = plugins/models/segresnet.c $(UPSAMPLE)
UNET_BLOCK = plugins/models/unet_block.c plugins/models/unet_block.h
plugins_models_dynunet_la_SOURCES = plugins/models/dynunet.c $(UNET_BLOCK)
plugins_models_swin_unetr_la_SOURCES = plugins/models/swin_unetr.c $(UNET_BLOCK) \
	plugins/models/swin_block.c plugins/models/swin_block.h plugins/models/window_attention.c \
	plugins/models/window_attention.h
NNUNET_BLOCKS = plugins/models/nnunet_blocks.c plugins/models/nnunet_blocks.h
plugins_models_plain_unet_la_SOURCES = plugins/models/plain_unet.c $(NNUNET_BLOCKS)
plugins_models_residual_unet_la_SOURCES = plugins/models/residual_unet.c $(NNUNET_BLOCKS)
RESNET_BLOCKS = plugins/models/resnet_blocks.c plugins/models/resnet_blocks.h
plugins_models_resnet_la_SOURCES = plugins/models/resnet.c $(RESNET_BLOCKS)
plugins_models_efficientnet_la_SOURCES = plugins/models/efficientnet.c $(RESNET_BLOCKS)
plugins_models_xresnet_la_SOURCES = plugins/models/xresnet.c $(RESNET_BLOCKS)
