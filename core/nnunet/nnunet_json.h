/*
 * nnunet_json.h - the members of JSON files of nnU-Net, read strictly: a value that is missing,
 * unknown or of another kind is refused, and its key is named.
 */
#ifndef CORE_NNUNET_NNUNET_JSON_H
#define CORE_NNUNET_NNUNET_JSON_H

#include "base/arena.h"
#include "base/file/json.h"

/*
 * An object of a file. The first failure of any member is kept in 'err' (PONS_CONFIG); functions
 * return 0 or NULL for it, so a caller looks at 'err' once, at the end.
 */
typedef struct nnunet_json {
    arena *memory;
    const char *where;        /* the file                                                         */
    const char *path;         /* keys from the root, "configurations.2d"; "": the root            */
    const json_t *object;
    pons_error *err;
} nnunet_json;

/*
 * Read a file whose root is an object; *root is released by json_decref. NaN and Infinity, which
 * are no JSON, are read as null. PONS_DATA: no JSON.
 */
pons_status nnunet_json_read(nnunet_json *out, arena *memory, const char *path, json_t **root,
                             pons_error *err);
bool nnunet_json_has(const nnunet_json *j, const char *key); /* false also for null               */
/* The member; a missing one is refused. */
const json_t *nnunet_json_member(const nnunet_json *j, const char *key);
nnunet_json nnunet_json_object(const nnunet_json *j, const char *key);
const char *nnunet_json_text(const nnunet_json *j, const char *key);
bool nnunet_json_flag(const nnunet_json *j, const char *key);
/* A whole number from 'low' to 'high'. */
int nnunet_json_integer(const nnunet_json *j, const char *key, int low, int high);
/* The numbers of a list of 'count'. */
void nnunet_json_numbers(const nnunet_json *j, const char *key, int count, double *out);
/* Refuse the value of a key: "found VALUE, expected ...". */
void nnunet_json_refuse(const nnunet_json *j, const char *key, const char *expected);
/* Expect one of two values; NULL stands for null, and for a key that is missing. */
void nnunet_json_expect(const nnunet_json *j, const char *key, const char *one, const char *other);
/* Refuse the first key that 'known' (ended by NULL) does not have. */
void nnunet_json_refuse_unknown(const nnunet_json *j, const char *const *known);

#endif
