/*
 * profile_files_internal.h - the writers of a profile's files.
 */
#ifndef CORE_REPORT_PROFILE_PROFILE_FILES_INTERNAL_H
#define CORE_REPORT_PROFILE_PROFILE_FILES_INTERNAL_H

#include "report/profile/profile_files.h"

#include <stdio.h>

/* The profile as it is written: the end is the time of writing. */
typedef struct profile_writing {
    const profile *profile;
    const profile_subject *of;
    double end;
} profile_writing;

/* Seconds in all ranges of a track that lie in no other one. */
double profile_track_seconds(const profile_track *t);

void profile_totals_put(FILE *to, const profile_writing *w);
void trace_events_put(FILE *to, const profile_writing *w);
void flame_graph_put(FILE *to, const profile_writing *w);

#endif
