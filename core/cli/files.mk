# Files of core/cli. A command is a file here and a row in commands.c.
libcore_la_SOURCES += core/cli/arguments.c core/cli/command.h core/cli/command_help.c \
	core/cli/command_plugin_check.c core/cli/command_plugin_list.c \
	core/cli/command_plugin_show.c core/cli/commands.c core/cli/environment.c \
	core/cli/plugin_check.c core/cli/plugin_check.h \
	core/cli/plugin_check_comm.c core/cli/plugin_check_device.c \
	core/cli/plugin_check_graph.c core/cli/plugin_check_op.c core/cli/plugin_check_random.c \
	core/cli/plugin_check_requests.c \
	core/cli/plugin_check_sink.c core/cli/plugin_check_transform.c core/cli/pons_main.c \
	core/cli/usage.c
libcore_la_SOURCES += core/cli/command_data_crop.c core/cli/command_data_phantom.c \
	core/cli/command_data_preprocess.c
libcore_la_SOURCES += core/cli/bench_kernels.c core/cli/bench_kernels.h core/cli/command_bench.c core/cli/command_evaluate.c \
	core/cli/command_explain.c core/cli/command_predict.c \
	core/cli/command_train.c
libcore_la_SOURCES += core/cli/command_data_check.c core/cli/options_list.c
libcore_la_SOURCES += core/cli/bench_data.c core/cli/bench_data.h
libcore_la_SOURCES += core/cli/command_launch.c
libcore_la_SOURCES += core/cli/command_devices.c core/cli/command_doctor.c core/cli/machine.c \
	core/cli/machine.h
libcore_la_SOURCES += core/cli/bench_model.c core/cli/bench_model.h core/cli/bench_modes.c \
	core/cli/bench_modes.h
