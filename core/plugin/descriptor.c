/*
 * descriptor.c - load a plugin with dlopen and check its descriptor against its note. A damaged
 * file may crash even where its ELF tables are valid, so descriptor_try loads it in a child first.
 */
#include "plugin/descriptor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include <pons/op.h>
#include <pons/optimizer.h>
#include <pons/transform.h>

#include "base/system/cxx_memory.h"
#include "base/system/subprocess.h"
#include "config/config.h"
#include "plugin/function.h"

/* Loading takes milliseconds; large libraries on a slow disk take some seconds. */
enum { TRIAL_SECONDS = 60 };

/* Largest number of bytes of a plugin's operations and of its options. */
enum { SIZE_LIMIT = 1 << 20 };

/* ---- descriptor ------------------------------------------------------------------------------ */

static pons_status refuse_field(const verified *v, pons_error *err, const char *field,
                                const char *found, const char *expected)
{
    return pons_fail(err, PONS_PLUGIN, "cannot load '%s': %s in its descriptor is '%s', expected "
                     "'%s'", v->file.path, field, found, expected);
}

static pons_status check_sizes(const verified *v, const pons_plugin *d, pons_error *err)
{
    if (d->size < sizeof *d)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': its descriptor has %u bytes, "
                         "expected at least %zu", v->file.path, d->size, sizeof *d);
    if (d->abi_major != v->file.abi_major || d->abi_minor != v->file.abi_minor)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': ABI in its descriptor is %u.%u, its "
                         "note says %u.%u", v->file.path, d->abi_major, d->abi_minor,
                         v->file.abi_major, v->file.abi_minor);
    if (d->options != NULL && d->option_size != sizeof(pons_option))
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': an option of it has %u bytes, "
                         "expected %zu", v->file.path, d->option_size, sizeof(pons_option));
    if (d->operations == NULL || d->operations_size == 0)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': its descriptor has no operations",
                         v->file.path);
    if (d->operations_size > SIZE_LIMIT || d->config_size > SIZE_LIMIT)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': its operations have %llu bytes, its "
                         "options %llu, expected at most %d", v->file.path,
                         (unsigned long long)d->operations_size, (unsigned long long)d->config_size,
                         SIZE_LIMIT);
    return PONS_OK;
}

static pons_status check_texts(const verified *v, const pons_plugin *d, pons_error *err)
{
    const char *kind = plugin_kind_name((pons_kind)d->kind);

    if (d->kind != (uint32_t)v->file.kind)
        return refuse_field(v, err, "kind", kind, plugin_kind_name(v->file.kind));
    if (d->name == NULL || strcmp(d->name, v->file.name) != 0)
        return refuse_field(v, err, "name", d->name != NULL ? d->name : "", v->file.name);
    if (d->version == NULL || d->summary == NULL || d->licence == NULL)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': its descriptor lacks version, "
                         "summary or licence", v->file.path);
    return PONS_OK;
}

/* Devices and communicators have no section of an INI file whose keys could fill options. */
static pons_status check_option_use(const verified *v, const pons_plugin *d, pons_error *err)
{
    const pons_kind kind = (pons_kind)d->kind;
    pons_status (*check)(const void *config, pons_error *err);

    if (kind != PONS_KIND_DEVICE && kind != PONS_KIND_COMM)
        return PONS_OK;
    memcpy(&check, d->operations, sizeof check);
    if (d->options == NULL && check == NULL)
        return PONS_OK;
    return pons_fail(err, PONS_PLUGIN, "cannot load '%s': it has %s, expected none for the kind "
                     "'%s', whose options no section fills", v->file.path,
                     d->options != NULL ? "options" : "the operation 'check'",
                     plugin_kind_name(kind));
}

/* ---- library --------------------------------------------------------------------------------- */

static const pons_plugin *call_entry(void *handle, const verified *v, pons_error *err)
{
    const pons_plugin *(*entry)(void);
    void *symbol = dlsym(handle, "pons_plugin_entry");
    const pons_plugin *d;

    if (symbol == NULL) {
        pons_fail(err, PONS_PLUGIN, "cannot load '%s': it does not export 'pons_plugin_entry'",
                  v->file.path);
        return NULL;
    }
    memcpy(&entry, &symbol, sizeof entry);
    d = entry();
    if (d == NULL)
        pons_fail(err, PONS_PLUGIN, "cannot load '%s': 'pons_plugin_entry' returned nothing",
                  v->file.path);
    return d;
}

/*
 * Whether dlerror's text means a lack of memory or descriptors. A disk mounted 'noexec' causes some
 * of the same texts.
 */
static bool is_shortage(const char *path, const char *said)
{
    static const char *const phrases[] = { "failed to map segment", "cannot map zero-fill pages",
                                           "out of memory", "annot allocate memory",
                                           "cannot allocate", "Too many open files" };
    struct statvfs disk;

    if (statvfs(path, &disk) != 0 || (disk.f_flag & ST_NOEXEC) != 0)
        return false;
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (strstr(said, phrases[i]) != NULL)
            return true;
    return false;
}

static pons_status open_library(const char *path, void **handle, pons_error *err)
{
    const char *said;

    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle != NULL) {
        cxx_memory_watch();
        return PONS_OK;
    }
    said = dlerror();
    if (is_shortage(path, said))
        return pons_fail(err, PONS_DEVICE, "%scannot load '%s': %.1000s",
                         strstr(said, "open files") == NULL ? "out of memory: " : "", path, said);
    return pons_fail(err, PONS_PLUGIN, "cannot load '%s': %.1000s", path, said);
}

pons_status descriptor_load(const verified *v, void **handle, const pons_plugin **out,
                            pons_error *err)
{
    const pons_plugin *d;

    if (open_library(v->file.path, handle, err) != PONS_OK)
        return err->status;
    d = call_entry(*handle, v, err);
    if (d == NULL || check_sizes(v, d, err) != PONS_OK || check_texts(v, d, err) != PONS_OK
        || check_option_use(v, d, err) != PONS_OK
        || option_table_check(d->options, d->config_size, v->file.path, err) != PONS_OK)
        return err->status;
    *out = d;
    return PONS_OK;
}

/* ---- trial ----------------------------------------------------------------------------------- */

#define WORD(type, member) (1u << offsetof(type, member) / sizeof(void *))

/* Words of a kind's operations that are not function pointers, as a bit mask. */
static const unsigned not_functions[] = {
    [PONS_KIND_OPTIMIZER] = WORD(pons_optimizer_operations, slots),
    [PONS_KIND_OP] = WORD(pons_op_operations, input_count) | WORD(pons_op_operations, sliced)
                     | WORD(pons_op_operations, cuda),
    [PONS_KIND_TRANSFORM] = WORD(pons_transform_operations, geometric)
                            | WORD(pons_transform_operations, record_size)
                            | WORD(pons_transform_operations, pointwise)
                            | WORD(pons_transform_operations, number_count)
                            | WORD(pons_transform_operations, voxel_normals)
                            | WORD(pons_transform_operations, resamples)
                            | WORD(pons_transform_operations, crops),
    [PONS_KIND_SINK] = 0
};

/*
 * Check that each operation is the begin of a function in the unwind tables, if these list the
 * plugin's entry function; else that it is code.
 */
static pons_status check_operations(const verified *v, const pons_plugin *d, bool listed,
                                    pons_error *err)
{
    const void *word;

    if ((uintptr_t)d->operations % sizeof word != 0)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': its operations are not aligned (a "
                         "damaged file?)", v->file.path);
    for (unsigned i = 0; (i + 1) * sizeof word <= d->operations_size && i < 32; i++) {
        memcpy(&word, (const char *)d->operations + i * sizeof word, sizeof word);
        if (word == NULL || (not_functions[d->kind] >> i & 1) != 0)
            continue;
        if (function_at(word) < (listed ? FUNCTION_BEGINS : FUNCTION_UNLISTED)
            || function_at(word) == FUNCTION_WITHIN)
            return pons_fail(err, PONS_PLUGIN, "cannot load '%s': word %u of its operations does "
                             "not point to a function (a damaged file?)", v->file.path, i);
    }
    return PONS_OK;
}

static pons_status try_load(const void *context, subprocess_child *child, pons_error *err)
{
    const verified *v = context;
    const pons_plugin *d;
    void *handle;

    subprocess_stage(child, "its loading");
    if (descriptor_load(v, &handle, &d, err) == PONS_OK
        && check_operations(v, d, function_at(dlsym(handle, "pons_plugin_entry"))
                            == FUNCTION_BEGINS, err) == PONS_OK)
        dlclose(handle); /* destructors are part of the trial                                     */
    return err->status;
}

pons_status descriptor_try(const verified *v, pons_error *err)
{
    char who[4200];

    snprintf(who, sizeof who, "cannot load '%s'", v->file.path);
    return subprocess_run(try_load, v, &(subprocess_terms){ who, TRIAL_SECONDS, true, NULL }, err);
}
