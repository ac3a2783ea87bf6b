/*
 * manual.h - man pages and completions, from the tables of commands, sections and plugins.
 */
#ifndef CORE_CLI_MANUAL_MANUAL_H
#define CORE_CLI_MANUAL_MANUAL_H

#include <pons/plugin.h>

/*
 * Write pons.1, pons-COMMAND.1, pons.ini.5 and pons-plugin.7, and the completions pons (bash),
 * _pons (zsh) and pons.fish into a folder, which is made. Files of these names are replaced.
 */
pons_status manual_write(const char *folder, pons_error *err);

#endif
