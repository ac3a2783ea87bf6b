# Files of core/cli. A command is a file here and a row in commands.c.
libcore_la_SOURCES += core/cli/arguments.c core/cli/arguments.h core/cli/command.c \
	core/cli/command.h core/cli/command_config.c core/cli/command_devices.c core/cli/command_doctor.c \
	core/cli/command_text.c core/cli/command_text.h \
	core/cli/command_launch.c core/cli/command_report.c \
	core/cli/commands.c core/cli/environment.c core/cli/environment.h \
	core/cli/machine.c core/cli/machine.h core/cli/pons_main.c core/cli/train_folds.c \
	core/cli/train_folds.h core/cli/usage.c core/cli/usage.h
libcore_la_SOURCES += core/cli/train/command_train.c core/cli/train/command_train.h \
	core/cli/train/train_checkpoint.c core/cli/train/train_folder.c \
	core/cli/train/train_internal.h core/cli/train/train_observer.c core/cli/train/train_run.c
libcore_la_SOURCES += core/cli/evaluate/command_evaluate.c core/cli/evaluate/evaluate_slides.c \
	core/cli/evaluate/evaluate_slides.h
libcore_la_SOURCES += core/cli/explain/command_explain.c core/cli/explain/explain_kernels.c \
	core/cli/explain/explain_kernels.h core/cli/explain/explain_prediction.c \
	core/cli/explain/explain_prediction.h
libcore_la_SOURCES += core/cli/exchange/bundle_network.c core/cli/exchange/bundle_network.h \
	core/cli/exchange/bundle_state.c core/cli/exchange/bundle_state.h \
	core/cli/exchange/bundle_transforms.c core/cli/exchange/bundle_transforms.h \
	core/cli/exchange/command_export.c core/cli/exchange/command_import.c \
	core/cli/exchange/export_bundle.c core/cli/exchange/export_bundle.h \
	core/cli/exchange/export_folder.c core/cli/exchange/export_folder.h \
	core/cli/exchange/export_nnunet.c core/cli/exchange/export_nnunet.h \
	core/cli/exchange/monai_classes.c core/cli/exchange/monai_classes.h \
	core/cli/exchange/option_json.c core/cli/exchange/option_json.h
libcore_la_SOURCES += core/cli/help/command_help.c core/cli/help/help_search.c core/cli/help/help_search.h \
	core/cli/help/help_transforms.c \
	core/cli/help/help_transforms.h core/cli/help/options_list.c core/cli/help/options_list.h
libcore_la_SOURCES += core/cli/manual/completion.c core/cli/manual/completion.h \
	core/cli/manual/completion_words.c core/cli/manual/completion_words.h core/cli/manual/manual.c \
	core/cli/manual/manual.h core/cli/manual/option_tables.c core/cli/manual/option_tables.h \
	core/cli/manual/pages.c core/cli/manual/pages.h core/cli/manual/pages_plugin.c \
	core/cli/manual/roff.c core/cli/manual/roff.h
libcore_la_SOURCES += core/cli/predict/command_predict.c core/cli/predict/label_tables.c \
	core/cli/predict/label_tables.h core/cli/predict/predict_bids.c core/cli/predict/predict_bids.h \
	core/cli/predict/predict_cases.c core/cli/predict/predict_classes.c \
	core/cli/predict/predict_classes.h core/cli/predict/predict_dataset.c \
	core/cli/predict/predict_dataset.h core/cli/predict/predict_internal.h \
	core/cli/predict/predict_maps.c core/cli/predict/predict_modalities.c \
	core/cli/predict/predict_modalities.h core/cli/predict/predict_networks.c \
	core/cli/predict/predict_patches.c core/cli/predict/predict_patches.h \
	core/cli/predict/predict_paths.c core/cli/predict/predict_segmentation.c \
	core/cli/predict/predict_tasks.c core/cli/predict/predict_volumes.c
libcore_la_SOURCES += core/cli/bench/bench_data.c core/cli/bench/bench_data.h \
	core/cli/bench/bench_experiment.c core/cli/bench/bench_experiment.h \
	core/cli/bench/bench_kernels.c core/cli/bench/bench_kernels.h core/cli/bench/bench_model.c \
	core/cli/bench/bench_model.h core/cli/bench/bench_modes.c core/cli/bench/bench_modes.h \
	core/cli/bench/command_bench.c core/cli/bench/command_find_rate.c
libcore_la_SOURCES += core/cli/data/check_geometry.c core/cli/data/check_geometry.h \
	core/cli/data/check_report.c core/cli/data/check_report.h core/cli/data/check_report_json.c \
	core/cli/data/command_data_check.c core/cli/data/command_data_crop.c \
	core/cli/data/command_data_phantom.c core/cli/data/command_data_preprocess.c \
	core/cli/data/command_data_show.c core/cli/data/preprocess.c core/cli/data/preprocess.h \
	core/cli/data/show.c core/cli/data/show.h
libcore_la_SOURCES += core/cli/plugin/command_plugin_check.c core/cli/plugin/command_plugin_list.c \
	core/cli/plugin/command_plugin_new.c core/cli/plugin/command_plugin_new.h \
	core/cli/plugin/command_plugin_show.c core/cli/plugin/plugin_check.c \
	core/cli/plugin/plugin_check.h core/cli/plugin/plugin_check_comm.c \
	core/cli/plugin/plugin_check_device.c core/cli/plugin/plugin_check_graph.c \
	core/cli/plugin/plugin_check_op.c core/cli/plugin/plugin_check_random.c \
	core/cli/plugin/plugin_check_requests.c core/cli/plugin/plugin_check_sink.c \
	core/cli/plugin/plugin_check_transform.c
libcore_la_SOURCES += core/cli/init/command_init.c core/cli/init/ini_text.c core/cli/init/ini_text.h \
	core/cli/init/init_plan.c core/cli/init/init_plan.h core/cli/init/init_plan_ini.c \
	core/cli/init/init_plan_table.c core/cli/init/init_plan_trial.c
# The sources that 'pons plugin new' writes are those of the pages.
PLUGIN_PAGES = docs/kinds/loss.md docs/kinds/model.md docs/kinds/op.md docs/kinds/optimizer.md \
	docs/kinds/schedule.md docs/kinds/sink.md docs/kinds/transform.md
nobase_dist_doc_DATA += $(PLUGIN_PAGES)
EXTRA_DIST += core/cli/plugin/templates.awk
BUILT_SOURCES += core/cli/plugin/plugin_templates.h
CLEANFILES += core/cli/plugin/plugin_templates.h
core/cli/plugin/plugin_templates.h: $(PLUGIN_PAGES) core/cli/plugin/templates.awk
	$(AM_V_GEN)$(MKDIR_P) core/cli/plugin && for page in $(PLUGIN_PAGES); do echo "$(srcdir)/$$page"; done \
	    | xargs awk -f $(srcdir)/core/cli/plugin/templates.awk >$@.part && mv $@.part $@
core/cli/plugin/command_plugin_new.lo: core/cli/plugin/plugin_templates.h
