/*
 * cache_lmdb_check.c - walk an LMDB file in a child process before it is used.
 *
 * The child visits each record with a cursor, finds it again by its key, which reads the keys of
 * the pages above, and reads the first and the last byte of its value. A child that is ended by a
 * signal tells of damage like one that finds an error.
 */
#include "data/cache/cache_lmdb.h"

#include <errno.h>
#include <lmdb.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/system/subprocess.h"
#include "data/packed/packed_case_file.h"

/* The time for each record; a slow disk reads four pages in milliseconds. */
enum { RECORD_SECONDS = 60 };

/* LMDB's own table of free pages, and the table of records. */
enum { FREE_TABLE = 0, MAIN_TABLE = 1 };

/* An insertion of this size makes LMDB read its whole table of free pages. */
enum { TRIAL_SIZE = 64 << 20 };

typedef struct checked_file {
    const char *path;
    bool alone;
} checked_file;

static pons_status tell_damage(int code, pons_error *err)
{
    return pons_fail(err, PONS_DATA, "%s", mdb_strerror(code));
}

static void touch_ends(const MDB_val *v)
{
    const volatile char *bytes = v->mv_data;

    if (v->mv_size > 0)
        (void)(bytes[0] + bytes[v->mv_size - 1]);
}

static bool is_known_key(const MDB_val *key)
{
    const size_t name = CASE_KEY_SIZE - 1, word = sizeof CACHE_LMDB_USED - 1;
    const char *at = key->mv_data;

    if (key->mv_size == name + word && memcmp(at, CACHE_LMDB_USED, word) == 0)
        at += word;
    else if (key->mv_size != name)
        return false;
    for (size_t i = 0; i < name; i++)
        if (strchr("0123456789abcdef", at[i]) == NULL || at[i] == '\0')
            return false;
    return true;
}

static bool is_in_order(const MDB_val *before, const MDB_val *key)
{
    size_t common = before->mv_size < key->mv_size ? before->mv_size : key->mv_size;
    int order = memcmp(before->mv_data, key->mv_data, common);

    return order < 0 || (order == 0 && before->mv_size < key->mv_size);
}

static pons_status check_record(MDB_txn *txn, const MDB_val *before, MDB_val *key,
                                const MDB_val *value, pons_error *err)
{
    MDB_val found;
    int code;

    if (!is_known_key(key))
        return pons_fail(err, PONS_DATA, "it has a record that is not of a case");
    if (before->mv_size > 0 && !is_in_order(before, key))
        return pons_fail(err, PONS_DATA, "its keys are not in order");
    code = mdb_get(txn, MAIN_TABLE, key, &found);
    if (code != MDB_SUCCESS)
        return tell_damage(code, err);
    if (found.mv_data != value->mv_data || found.mv_size != value->mv_size)
        return pons_fail(err, PONS_DATA, "a key leads to another record");
    touch_ends(value);
    return PONS_OK;
}

static pons_status walk_records(MDB_txn *txn, MDB_cursor *at, subprocess_child *child,
                                pons_error *err)
{
    MDB_val before = { 0, NULL }, key, value;
    int code;

    while ((code = mdb_cursor_get(at, &key, &value, MDB_NEXT)) == MDB_SUCCESS) {
        subprocess_stage(child, "a record");
        if (check_record(txn, &before, &key, &value, err) != PONS_OK)
            return err->status;
        before = key;
    }
    return code == MDB_NOTFOUND ? PONS_OK : tell_damage(code, err);
}

/* Each value of the table of free pages is their number and their list. */
static pons_status walk_free_pages(MDB_cursor *at, subprocess_child *child, pons_error *err)
{
    MDB_val key, value;
    size_t count;
    int code;

    while ((code = mdb_cursor_get(at, &key, &value, MDB_NEXT)) == MDB_SUCCESS) {
        subprocess_stage(child, "a list of free pages");
        touch_ends(&value);
        if (key.mv_size != sizeof(size_t) || value.mv_size < sizeof count)
            return pons_fail(err, PONS_DATA, "its table of free pages is damaged");
        memcpy(&count, value.mv_data, sizeof count);
        if (count > value.mv_size / sizeof count - 1)
            return pons_fail(err, PONS_DATA, "its table of free pages is damaged");
    }
    return code == MDB_NOTFOUND ? PONS_OK : tell_damage(code, err);
}

static pons_status walk_tables(MDB_txn *txn, subprocess_child *child, pons_error *err)
{
    MDB_cursor *at;
    MDB_dbi table;
    int code = mdb_dbi_open(txn, NULL, 0, &table);

    for (MDB_dbi n = FREE_TABLE; code == MDB_SUCCESS && n <= MAIN_TABLE; n++) {
        code = mdb_cursor_open(txn, n, &at);
        if (code != MDB_SUCCESS)
            break;
        if (n == FREE_TABLE)
            walk_free_pages(at, child, err);
        else
            walk_records(txn, at, child, err);
        mdb_cursor_close(at);
        if (err->status != PONS_OK)
            return err->status;
    }
    return code == MDB_SUCCESS ? PONS_OK : tell_damage(code, err);
}

/* An insertion may not fit into the map, which is no damage. */
static pons_status try_insertion(MDB_env *env, const char *digits, size_t size, pons_error *err)
{
    MDB_val key = { strlen(digits), (void *)digits }, value = { size, NULL };
    MDB_dbi table;
    MDB_txn *txn;
    int code = mdb_txn_begin(env, NULL, 0, &txn);

    if (code != MDB_SUCCESS)
        return tell_damage(code, err);
    code = mdb_dbi_open(txn, NULL, 0, &table);
    if (code == MDB_SUCCESS)
        code = mdb_put(txn, table, &key, &value, MDB_RESERVE);
    mdb_txn_abort(txn);
    return code == MDB_SUCCESS || code == MDB_MAP_FULL || code == ENOMEM ? PONS_OK
                                                                         : tell_damage(code, err);
}

static pons_status check_opened(MDB_env *env, const checked_file *f, subprocess_child *child,
                                pons_error *err)
{
    MDB_txn *txn;
    int code = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);

    if (code != MDB_SUCCESS)
        return tell_damage(code, err);
    walk_tables(txn, child, err);
    mdb_txn_abort(txn);
    if (err->status == PONS_OK && f->alone) {
        subprocess_stage(child, "an insertion");
        if (try_insertion(env, "0", TRIAL_SIZE, err) == PONS_OK)
            try_insertion(env, "g", sizeof(int64_t), err);
    }
    return err->status;
}

/* Whether a mapping as long as the file is possible, so that one of LMDB failed by its numbers. */
static bool can_be_mapped(const char *path)
{
    struct stat s;
    void *room;

    if (stat(path, &s) != 0)
        return false;
    room = mmap(NULL, (size_t)s.st_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, (size_t)s.st_size) == 0;
}

static pons_status check_file(const void *context, subprocess_child *child, pons_error *err)
{
    const checked_file *f = context;
    unsigned flags = MDB_NOSUBDIR | (f->alone ? MDB_NOLOCK : MDB_RDONLY);
    MDB_env *env;
    int code = mdb_env_create(&env);

    subprocess_stage(child, "its opening");
    if (code == MDB_SUCCESS)
        code = mdb_env_open(env, f->path, flags, 0666);
    if (code == MDB_SUCCESS)
        return check_opened(env, f, child, err); /* the end of the process closes it */
    if (code < 0 || ((code == ENOMEM || code == EINVAL) && can_be_mapped(f->path)))
        return tell_damage(code, err);
    return pons_fail(err, PONS_FAILURE, "%s", mdb_strerror(code));
}

pons_status cache_lmdb_check(const char *path, bool alone, pons_error *err)
{
    const checked_file f = { path, alone };
    const subprocess_terms terms = { "a check of its pages", RECORD_SECONDS, true, NULL };
    pons_error found = PONS_ERROR_INIT;

    if (subprocess_run(check_file, &f, &terms, &found) == PONS_PLUGIN)
        found.status = PONS_DATA;
    return found.status == PONS_OK ? PONS_OK : pons_fail(err, found.status, "%s", found.text);
}
