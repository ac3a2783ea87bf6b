/*
 * case_record.h - which cases a run trains on and validates, as its checkpoints keep it.
 */
#ifndef CORE_TRAIN_CASE_RECORD_H
#define CORE_TRAIN_CASE_RECORD_H

#include "base/arena.h"
#include "base/log.h"
#include "data/dataset.h"

enum { CASE_ROLE_COUNT = 2 };

/* "training cases" and "validation cases". */
extern const char *const case_role_names[CASE_ROLE_COUNT];

/* Of each role "ID/BYTES/ID/BYTES/", the cases in order with the size of their files. */
typedef struct case_record {
    const char *text[CASE_ROLE_COUNT];
} case_record;

/* Sizes are those of now. The texts belong to 'memory'. */
case_record case_record_make(arena *memory, const dataset *d);
/*
 * PONS_CONFIG with the first case that is new, missing or of another role; files of another size
 * are a warning. A text that is NULL in 'before' was not kept and is not compared.
 */
pons_status case_record_compare(const case_record *before, const case_record *now, logger *l,
                                pons_error *err);

#endif
