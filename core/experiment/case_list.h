/*
 * case_list.h - the training and validation cases of a run, as stored in its checkpoints.
 */
#ifndef CORE_EXPERIMENT_CASE_LIST_H
#define CORE_EXPERIMENT_CASE_LIST_H

#include "base/arena.h"
#include "base/log.h"
#include "data/cache/cache.h"

enum { CASE_ROLE_COUNT = 2 };

/* "training cases" and "validation cases", the names of the stored texts. */
extern const char *const case_role_names[CASE_ROLE_COUNT];

/* For each role "ID/HASH/ID/HASH/...", in order; an empty hash: the case was not read. */
typedef struct case_list {
    const char *text[CASE_ROLE_COUNT];
} case_list;

/* Make the lists. 'cases' is NULL before the cases are read. Texts belong to 'memory'. */
pons_status case_list_make(arena *memory, const dataset *d, const cache *cases, case_list *out,
                           pons_error *err);
/*
 * PONS_CONFIG with the first case that is new, missing or of another role. A list that is NULL in
 * 'before' was not stored and is not compared.
 */
pons_status case_list_compare(const case_list *before, const case_list *now,
                              pons_error *err);
/* Warn of the first case of each role whose content differs. The ids must have been compared. */
void case_list_warn(const case_list *before, const case_list *now, logger *l);

#endif
