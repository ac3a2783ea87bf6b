/*
 * commands.c - the list of commands, in the order in which help shows them.
 */
#include "cli/command.h"

extern const command command_help, command_plugin_check, command_plugin_list, command_plugin_show,
    command_predict, command_train;

const command *const commands[] = {
    &command_train,
    &command_predict,
    &command_plugin_list,
    &command_plugin_show,
    &command_plugin_check,
    &command_help,
    NULL
};
