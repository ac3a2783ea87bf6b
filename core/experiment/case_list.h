/*
 * case_list.h - which cases a run trains on and validates, as its checkpoints keep it.
 */
#ifndef CORE_EXPERIMENT_CASE_LIST_H
#define CORE_EXPERIMENT_CASE_LIST_H

#include "base/arena.h"
#include "base/log.h"
#include "data/cache/cache.h"

enum { CASE_ROLE_COUNT = 2 };

/* "training cases" and "validation cases". */
extern const char *const case_role_names[CASE_ROLE_COUNT];

/* Of each role "ID/CONTENT/ID/CONTENT/", the cases in order; no content: it was not read. */
typedef struct case_record {
    const char *text[CASE_ROLE_COUNT];
} case_record;

/* 'held' is NULL before the cases are read. The texts belong to 'memory'. */
pons_status case_record_make(arena *memory, const dataset *d, const cache *held, case_record *out,
                             pons_error *err);
/*
 * PONS_CONFIG with the first case that is new, missing or of another role. A text that is NULL in
 * 'before' was not kept and is not compared.
 */
pons_status case_record_compare(const case_record *before, const case_record *now,
                                pons_error *err);
/* A warning for the first case of each role with another content; the ids were compared. */
void case_record_warn(const case_record *before, const case_record *now, logger *l);

#endif
