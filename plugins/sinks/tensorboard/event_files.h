/*
 * event_files.h - the event files that earlier starts of a run have left in its folder.
 */
#ifndef PLUGINS_SINKS_TENSORBOARD_EVENT_FILES_H
#define PLUGINS_SINKS_TENSORBOARD_EVENT_FILES_H

#include <pons/sink.h>

#define EVENT_FILE_START "events.out.tfevents."
#define EVENT_FILE_END ".pons"

/* The facts of what stays. */
typedef struct event_files {
    long long time;     /* later than those of all names; set to the present before               */
    bool graph;         /* they have the graph of the network                                     */
} event_files;

/* Remove the records after 'keep', and files that have no others. */
pons_status event_files_cut(const char *folder, pons_sink_kept keep, event_files *out,
                            pons_error *err);

#endif
