/*
 * profile_files.h - a profile as files of a run's folder: profile.json with the totals,
 * profile.svg, a flame graph, and trace.json with the events of the first steps.
 */
#ifndef CORE_REPORT_PROFILE_PROFILE_FILES_H
#define CORE_REPORT_PROFILE_PROFILE_FILES_H

#include "base/profile/profile.h"

#include <pons/plugin.h>

/* Names in the titles of a profile. */
typedef struct profile_subject {
    const char *name;            /* of the run                                                    */
    const char *processor;
    int rank, ranks;             /* of the process                                                */
} profile_subject;

/* Write the three files into 'folder'; earlier ones are replaced. No thread records any more. */
pons_status profile_files_write(profile *p, const profile_subject *of, const char *folder,
                                pons_error *err);

/* Write the share of each phase in the time of all phases: "start 1.0 %, loading 0.1 %, ...". */
void profile_phases_text(const profile *p, char *out, size_t size);

#endif
