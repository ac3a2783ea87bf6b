/*
 * cache_lmdb.c - hold cases in one file of LMDB, which processes read and write together.
 *
 * A case is written in one transaction, so a killed process leaves the file as it was. Cases are
 * found and verified in short transactions while the cache is filled, since the map of the file
 * moves when it grows. Then one transaction that lasts as long as the cache keeps the pages of the
 * cases, which are used where they lie.
 */
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/aside.h"
#include "base/file/file.h"
#include "base/file/file_system.h"
#include "base/integer.h"
#include "data/cache/cache_internal.h"
#include "data/cache/cache_lmdb.h"

/* Readers of the file at a time: threads that fill it and processes that use it. */
enum { READERS_MAX = 4096 };

/* The byte of the lock file that all users of the file lock; keys lock those before 2^48. */
static const off_t users = (off_t)1 << 50;

/* The file grows at least by this size. */
static const size_t growth_unit = 1 << 20;

typedef struct cache_lmdb {
    char *path;
    MDB_env *env;              /* NULL: the file is not used                                      */
    MDB_dbi table;
    MDB_txn *reading;          /* of the mapped cases; NULL: none is mapped                       */
    pthread_rwlock_t moving;   /* read: by a transaction; written: the map moves                  */
    bool lost;                 /* the map could not be moved                                      */
    pid_t process;
    file_identity folder;
    struct cache_lmdb *next;   /* of 'opened'                                                     */
} cache_lmdb;

static void tell_unused(const cache_lmdb *m, logger *l, const char *cause)
{
    if (l != NULL)
        log_warning(l, "no case is kept in '%s': %s", m->path, cause);
}

/* ---- one opening a process ------------------------------------------------------------------- */

/*
 * LMDB's locks belong to the process, and a second opening of a file would end those of the first.
 * So the files that are open are listed.
 */
static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER;
static cache_lmdb *opened;

static bool is_opened(const cache_lmdb *m)
{
    for (const cache_lmdb *o = opened; o != NULL; o = o->next)
        if (o->process == m->process && o->folder.device == m->folder.device
            && o->folder.inode == m->folder.inode)
            return true;
    return false;
}

static bool enter_opened(cache_lmdb *m)
{
    bool first;

    pthread_mutex_lock(&opened_lock);
    first = !is_opened(m);
    if (first) {
        m->next = opened;
        opened = m;
    }
    pthread_mutex_unlock(&opened_lock);
    return first;
}

static void leave_opened(cache_lmdb *m)
{
    cache_lmdb **at = &opened;

    pthread_mutex_lock(&opened_lock);
    while (*at != NULL && *at != m)
        at = &(*at)->next;
    if (*at == m)
        *at = m->next;
    pthread_mutex_unlock(&opened_lock);
}

/* ---- opening --------------------------------------------------------------------------------- */

static pons_status refuse_shared(const char *folder, pons_error *err)
{
    const char *name = file_system_shared_at(folder);

    if (name == NULL)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "[data] cache = lmdb: '%s' is on %s, which LMDB cannot "
                     "share between machines, expected a local disk\nhint: --set data.cache=disk, "
                     "or a local --set data.cache_dir=FOLDER", folder, name);
}

/* Lock the users' byte: F_WRLCK alone, F_RDLCK with others. */
static bool lock_users(int descriptor, short how, bool wait)
{
    struct flock range = { .l_type = how, .l_whence = SEEK_SET, .l_start = users, .l_len = 1 };
    int code;

    do
        code = fcntl(descriptor, wait ? F_OFD_SETLKW : F_OFD_SETLK, &range);
    while (code != 0 && errno == EINTR);
    return code == 0;
}

/* Links, folders and devices are left alone. */
static bool is_file_or_absent(const char *path)
{
    struct stat s;

    return lstat(path, &s) == 0 ? S_ISREG(s.st_mode) : errno == ENOENT;
}

static bool check_kinds(const cache_lmdb *m, logger *l)
{
    char *lock;
    bool fine;

    if (asprintf(&lock, "%s-lock", m->path) < 0)
        return false;
    fine = is_file_or_absent(m->path) && is_file_or_absent(lock);
    free(lock);
    if (!fine)
        tell_unused(m, l, "it is no regular file");
    return fine;
}

/* Set a damaged file aside. The readers in its lock file are those of the damaged one. */
static bool set_aside(const cache_lmdb *m, const pons_error *cause, logger *l)
{
    pons_error err = PONS_ERROR_INIT;
    char *name = NULL, *lock = NULL;

    if (aside_move(m->path, m->path, ".damaged", &name, &err) != PONS_OK) {
        tell_unused(m, l, err.text);
        return false;
    }
    if (l != NULL)
        log_warning(l, "'%s' is damaged, and its cases are preprocessed again: %s; it is kept as "
                    "'%s'", m->path, cause->text, name);
    if (asprintf(&lock, "%s-lock", m->path) >= 0)
        unlink(lock);
    free(lock);
    free(name);
    return true;
}

/* Check a file that exists; false: it cannot be used. */
static bool check_pages(const cache_lmdb *m, bool alone, logger *l)
{
    pons_error cause = PONS_ERROR_INIT;
    struct stat s;

    if (stat(m->path, &s) != 0 || s.st_size == 0
        || cache_lmdb_check(m->path, alone, &cause) == PONS_OK)
        return true;
    if (alone && cause.status == PONS_DATA)
        return set_aside(m, &cause, l);
    tell_unused(m, l, cause.text);
    return false;
}

static int open_table(cache_lmdb *m, unsigned flags)
{
    MDB_txn *txn;
    int code = mdb_txn_begin(m->env, NULL, flags, &txn);

    if (code != MDB_SUCCESS)
        return code;
    code = mdb_dbi_open(txn, NULL, 0, &m->table);
    mdb_txn_abort(txn);
    return code;
}

/* LMDB reads without locks from a disk that is mounted read-only. */
static int try_environment(cache_lmdb *m, unsigned flags)
{
    int code = mdb_env_create(&m->env);

    if (code != MDB_SUCCESS)
        return code;
    code = mdb_env_set_maxreaders(m->env, READERS_MAX);
    if (code == MDB_SUCCESS)
        code = mdb_env_open(m->env, m->path, MDB_NOSUBDIR | MDB_NOTLS | flags, 0666);
    if (code == MDB_SUCCESS)
        code = open_table(m, MDB_RDONLY);
    if (code != MDB_SUCCESS) {
        mdb_env_close(m->env);
        m->env = NULL;
    }
    return code;
}

static void open_environment(cache_lmdb *m, logger *l)
{
    int code = try_environment(m, 0), dead;

    if (code == EROFS)
        code = try_environment(m, MDB_RDONLY);
    if (code != MDB_SUCCESS)
        tell_unused(m, l, mdb_strerror(code));
    else
        mdb_reader_check(m->env, &dead); /* readers of killed processes would keep old pages */
}

/* Open the file if it can be used. Otherwise one warning says why, and no case is held. */
static void open_file(cache *c, cache_lmdb *m, logger *l)
{
    bool alone = c->disk.lock >= 0 && lock_users(c->disk.lock, F_WRLCK, false);
    bool fresh;

    if (!alone && c->disk.lock >= 0)
        lock_users(c->disk.lock, F_RDLCK, true);
    fresh = access(m->path, F_OK) != 0;
    if (check_kinds(m, l) && check_pages(m, alone, l))
        open_environment(m, l);
    if (alone && fresh && m->env == NULL)
        unlink(m->path); /* a full disk may have left a part of its first pages */
    if (alone)
        lock_users(c->disk.lock, F_RDLCK, true);
}

static pons_status open_lmdb(cache *c, const cache_settings *s, logger *l, pons_error *err)
{
    cache_lmdb *m;

    if (cache_keyed_folder(c, s, err) != PONS_OK || refuse_shared(c->disk.folder, err) != PONS_OK)
        return err->status;
    m = c->lmdb = calloc(1, sizeof *m);
    if (m == NULL || asprintf(&m->path, "%s/cases.mdb", c->disk.folder) < 0) {
        free(m);
        c->lmdb = NULL;
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    m->process = getpid();
    pthread_rwlock_init(&m->moving, NULL);
    if (!file_identify(c->disk.folder, &m->folder))
        tell_unused(m, l, strerror(errno));
    else if (!enter_opened(m))
        tell_unused(m, l, "this process has another cache in it");
    else
        open_file(c, m, l);
    return PONS_OK;
}

static void close_lmdb(cache *c)
{
    cache_lmdb *m = c->lmdb;

    if (m != NULL) {
        if (m->reading != NULL) {
            mdb_txn_abort(m->reading);
            pthread_rwlock_unlock(&m->moving);
        }
        if (m->env != NULL)
            mdb_env_close(m->env);
        leave_opened(m);
        pthread_rwlock_destroy(&m->moving);
        free(m->path);
        free(m);
        c->lmdb = NULL;
    }
    cache_disk_close(&c->disk);
}

/* ---- transactions ---------------------------------------------------------------------------- */

/* Map the file anew; 0: in the size that another process has given it. */
static int move_map(cache_lmdb *m, size_t size)
{
    int code = mdb_env_set_mapsize(m->env, size);

    m->lost = m->lost || code != MDB_SUCCESS;
    return code;
}

/* Take over the size that another process has given the file, unless cases are mapped. */
static int follow_growth(cache_lmdb *m)
{
    int code;

    if (m->reading != NULL)
        return MDB_MAP_RESIZED;
    pthread_rwlock_wrlock(&m->moving);
    code = m->lost ? ENOMEM : move_map(m, 0);
    pthread_rwlock_unlock(&m->moving);
    return code;
}

/* Grow a map of 'before' bytes for a value of 'size' bytes, unless another thread has. */
static int grow_map(cache_lmdb *m, size_t before, size_t size)
{
    int code = m->reading != NULL ? MDB_MAP_FULL : MDB_SUCCESS;
    MDB_envinfo info;

    if (code != MDB_SUCCESS)
        return code;
    pthread_rwlock_wrlock(&m->moving);
    mdb_env_info(m->env, &info);
    if (m->lost)
        code = ENOMEM;
    else if (info.me_mapsize <= before)
        code = move_map(m, round_up_u64(before + (before > 2 * size ? before : 2 * size),
                                        growth_unit));
    pthread_rwlock_unlock(&m->moving);
    return code;
}

/* Begin a transaction, which holds the map in its place until end_transaction. */
static int begin_transaction(cache_lmdb *m, unsigned flags, MDB_txn **txn)
{
    int code;

    if (m->env == NULL)
        return ENOENT;
    do {
        pthread_rwlock_rdlock(&m->moving);
        code = m->lost ? ENOMEM : mdb_txn_begin(m->env, NULL, flags, txn);
        if (code == MDB_SUCCESS)
            return code;
        pthread_rwlock_unlock(&m->moving);
    } while (code == MDB_MAP_RESIZED && (code = follow_growth(m)) == MDB_SUCCESS);
    return code;
}

static int end_transaction(cache_lmdb *m, MDB_txn *txn, int code)
{
    if (code == MDB_SUCCESS)
        code = mdb_txn_commit(txn);
    else
        mdb_txn_abort(txn);
    pthread_rwlock_unlock(&m->moving);
    return code;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static MDB_val key_value(const char *key)
{
    return (MDB_val){ strlen(key), (void *)key };
}

static int put_time(cache_lmdb *m, MDB_txn *txn, const char *key)
{
    char name[sizeof CACHE_LMDB_USED + CASE_KEY_SIZE];
    int64_t now = time(NULL);
    MDB_val k, v = { sizeof now, &now };

    snprintf(name, sizeof name, "%s%s", CACHE_LMDB_USED, key);
    k = key_value(name);
    return mdb_put(txn, m->table, &k, &v, 0);
}

static void warn_case(logger *l, const char *name, const char *what, const char *cause)
{
    if (l != NULL)
        log_warning(l, "case '%s': %s: %s", name, what, cause);
}

/* Use a value where it lies, after it has been verified. */
static bool use_value(const cache_lmdb *m, const MDB_val *value, const char *key, const char *name,
                      logger *l, stored_case *out)
{
    pons_error cause = PONS_ERROR_INIT;
    mapped_file *bytes = value->mv_size > 0 ? mapped_file_watch(value->mv_data, value->mv_size)
                                            : NULL;

    if (bytes == NULL)
        return false;
    if (packed_case_file_use(bytes, value->mv_size, key, &out->packed, &out->note, &cause)
        == PONS_OK)
        return true;
    mapped_file_close(bytes);
    if (l != NULL)
        log_warning(l, "case '%s': is preprocessed again: its record in '%s' cannot be used: %s",
                    name, m->path, cause.text);
    return false;
}

static bool find_record(cache *c, const char *key, const char *name, logger *l, stored_case *out)
{
    cache_lmdb *m = c->lmdb;
    MDB_val k = key_value(key), value;
    MDB_txn *txn;

    if (begin_transaction(m, MDB_RDONLY, &txn) != MDB_SUCCESS)
        return false;
    out->reading = txn;
    if (mdb_get(txn, m->table, &k, &value) == MDB_SUCCESS
        && use_value(m, &value, key, name, l, out))
        return true;
    end_transaction(m, txn, MDB_NOTFOUND);
    return false;
}

/* A case is mapped after all have been found, when the map moves no more. */
static void end_record(cache *c, stored_case *found, packed_case *out)
{
    (void)out;
    packed_case_clear(&found->packed);
    end_transaction(c->lmdb, found->reading, MDB_NOTFOUND);
}

static int put_record(cache_lmdb *m, const char *key, const void *bytes, size_t size)
{
    MDB_val k = key_value(key), value = { size, (void *)bytes };
    MDB_envinfo info;
    MDB_txn *txn;
    int code;

    do {
        code = begin_transaction(m, 0, &txn);
        if (code != MDB_SUCCESS)
            return code;
        mdb_env_info(m->env, &info);
        code = mdb_put(txn, m->table, &k, &value, 0);
        if (code == MDB_SUCCESS)
            code = put_time(m, txn, key);
        code = end_transaction(m, txn, code);
    } while (code == MDB_MAP_FULL
             && (code = grow_map(m, info.me_mapsize, size)) == MDB_SUCCESS);
    return code;
}

static bool write_record(cache *c, const char *key, const char *name, const packed_case *p,
                         const char *note, logger *l)
{
    static const char what[] = "cannot be kept, and is read each time";
    pons_error cause = PONS_ERROR_INIT;
    char *bytes;
    size_t size;
    int code;

    if (c->lmdb->env == NULL)
        return false; /* a warning has been logged */
    if (packed_case_file_make(key, p, note, &bytes, &size, &cause) != PONS_OK) {
        warn_case(l, name, what, cause.text);
        return false;
    }
    code = put_record(c->lmdb, key, bytes, size);
    free(bytes);
    if (code == MDB_SUCCESS)
        return true;
    pons_fail(&cause, PONS_FAILURE, "cannot write to '%s': %s", c->lmdb->path, mdb_strerror(code));
    warn_case(l, name, what, cause.text);
    return false;
}

static bool map_record(cache *c, const char *key, const char *name, logger *l, packed_case *out)
{
    cache_lmdb *m = c->lmdb;
    MDB_val k = key_value(key), value;
    stored_case found;

    if (m->reading == NULL && begin_transaction(m, MDB_RDONLY, &m->reading) != MDB_SUCCESS) {
        m->reading = NULL;
        return false;
    }
    if (mdb_get(m->reading, m->table, &k, &value) != MDB_SUCCESS
        || !use_value(m, &value, key, name, l, &found))
        return false;
    *out = found.packed;
    return true;
}

/* ---- time of use and size limit -------------------------------------------------------------- */

typedef struct kept_case {
    char key[CASE_KEY_SIZE];
    int64_t size, used;
} kept_case;

static int compare_use(const void *a, const void *b)
{
    const kept_case *x = a, *y = b;

    return x->used != y->used ? (x->used < y->used ? -1 : 1) : strcmp(x->key, y->key);
}

static int64_t time_of_use(const cache_lmdb *m, MDB_txn *txn, const char *key)
{
    char name[sizeof CACHE_LMDB_USED + CASE_KEY_SIZE];
    MDB_val k, v;
    int64_t used = 0;

    snprintf(name, sizeof name, "%s%s", CACHE_LMDB_USED, key);
    k = key_value(name);
    if (mdb_get(txn, m->table, &k, &v) == MDB_SUCCESS && v.mv_size == sizeof used)
        memcpy(&used, v.mv_data, sizeof used);
    return used;
}

/* The cases of the file, from the least recently used on; *out is NULL without memory. */
static size_t list_cases(const cache_lmdb *m, MDB_txn *txn, kept_case **out)
{
    size_t count = 0;
    MDB_cursor *at;
    MDB_val k, v;
    MDB_stat all;

    *out = NULL;
    if (mdb_stat(txn, m->table, &all) != MDB_SUCCESS
        || mdb_cursor_open(txn, m->table, &at) != MDB_SUCCESS)
        return 0;
    *out = calloc(all.ms_entries + 1, sizeof **out);
    while (*out != NULL && count < all.ms_entries
           && mdb_cursor_get(at, &k, &v, MDB_NEXT) == MDB_SUCCESS) {
        kept_case *one = &(*out)[count];
        if (k.mv_size != CASE_KEY_SIZE - 1)
            continue;
        memcpy(one->key, k.mv_data, k.mv_size);
        one->size = (int64_t)v.mv_size;
        one->used = time_of_use(m, txn, one->key);
        count++;
    }
    mdb_cursor_close(at);
    if (count > 0)
        qsort(*out, count, sizeof **out, compare_use);
    return count;
}

static int remove_case(const cache_lmdb *m, MDB_txn *txn, const char *key)
{
    char name[sizeof CACHE_LMDB_USED + CASE_KEY_SIZE];
    MDB_val k = key_value(key), used;
    int code = mdb_del(txn, m->table, &k, NULL);

    snprintf(name, sizeof name, "%s%s", CACHE_LMDB_USED, key);
    used = key_value(name);
    if (code == MDB_SUCCESS)
        code = mdb_del(txn, m->table, &used, NULL);
    return code == MDB_NOTFOUND ? MDB_SUCCESS : code;
}

/* Remove the least recently used cases, down to 'limit' bytes; none used at 'begin' or later. */
static int trim_cases(const cache_lmdb *m, MDB_txn *txn, int64_t limit, int64_t begin)
{
    kept_case *list;
    size_t count = list_cases(m, txn, &list);
    int64_t total = 0;
    int code = MDB_SUCCESS;

    for (size_t i = 0; i < count; i++)
        total += list[i].size;
    for (size_t i = 0; i < count && total > limit && list[i].used < begin && code == MDB_SUCCESS;
         i++) {
        code = remove_case(m, txn, list[i].key);
        total -= list[i].size;
    }
    free(list);
    return code;
}

/*
 * A failure leaves the times and the size as they were. It is one where another process has made
 * the file grow meanwhile, since the map cannot follow under the cases that lie in it.
 */
static void finish_lmdb(fill *f, int tier)
{
    cache_lmdb *m = f->cache->lmdb;
    int64_t limit = f->cache->tier[tier].limit;
    int code = MDB_SUCCESS;
    MDB_txn *txn;

    if (f->memory.self != 0 || begin_transaction(m, 0, &txn) != MDB_SUCCESS)
        return;
    for (int i = 0; i < f->count && code == MDB_SUCCESS; i++) {
        const shared_case *e = &f->shared->entry[i];
        if (e->tier == tier && e->key[0] != '\0')
            code = put_time(m, txn, e->key);
    }
    if (code == MDB_SUCCESS && limit > 0)
        code = trim_cases(m, txn, limit, f->begin);
    end_transaction(m, txn, code);
}

static const cache_store records = { find_record, end_record, write_record, map_record };

const cache_kind cache_kind_lmdb = { .store = &records, .open = open_lmdb,
                                     .hold = cache_keyed_hold, .map = cache_keyed_map,
                                     .finish = finish_lmdb, .close = close_lmdb };
