/*
 * commands.c - the list of commands, in the order in which help shows them.
 */
#include "cli/command.h"

extern const command command_init;
extern const command command_train;
extern const command command_launch;
extern const command command_predict;
extern const command command_import;
extern const command command_evaluate;
extern const command command_config;
extern const command command_report;
extern const command command_explain;
extern const command command_export;
extern const command command_bench;
extern const command command_find_rate;
extern const command command_data_preprocess;
extern const command command_data_show;
extern const command command_data_phantom;
extern const command command_data_crop;
extern const command command_plugin_list;
extern const command command_plugin_show;
extern const command command_plugin_check;
extern const command command_plugin_new;
extern const command command_devices;
extern const command command_doctor;
extern const command command_help;
extern const command command_data_check;

const command *const commands[] = {
    &command_init,
    &command_train,
    &command_launch,
    &command_predict,
    &command_import,
    &command_evaluate,
    &command_config,
    &command_report,
    &command_explain,
    &command_export,
    &command_bench,
    &command_find_rate,
    &command_data_show,
    &command_data_preprocess,
    &command_data_phantom,
    &command_data_crop,
    &command_data_check,
    &command_plugin_list,
    &command_plugin_show,
    &command_plugin_check,
    &command_plugin_new,
    &command_devices,
    &command_doctor,
    &command_help,
    NULL
};
