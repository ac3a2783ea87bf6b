/*
 * run_parameters.h - the name of a run, and the values of its resolved.ini.
 */
#ifndef PLUGINS_SINKS_RUN_PARAMETERS_H
#define PLUGINS_SINKS_RUN_PARAMETERS_H

/*
 * Call 'take' with each value that is not empty, in the order of the file; 'name' is "SECTION.KEY".
 * The file is complete once the first record is written. Without a file there are no values.
 */
void run_parameters_read(const char *folder,
                         void (*take)(void *context, const char *name, const char *value),
                         void *context);
/* The name of a run that is given none: the last part of the path of its folder. */
const char *run_default_name(const char *folder);

#endif
