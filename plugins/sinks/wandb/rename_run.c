/*
 * rename_run.c - copy a file with another record of its run.
 */
#include "sinks/wandb/rename_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sinks/wandb/transaction_log.h"

static bool has_other_names(FILE *file, const run_facts *run)
{
    message record = { 0 };
    bool other = false;

    if (transaction_log_open(file))
        while (!other && transaction_log_read(file, &record) && !record_is_run(&record, run))
            other = record_is_run(&record, NULL);
    message_free(&record);
    return other;
}

/* Copy all records. The result is an errno; 0: the copy is whole. */
static int copy_records(FILE *from, FILE *to, const run_facts *run)
{
    message out = { 0 }, record = { 0 };
    int failure = transaction_log_open(from) ? 0 : EIO;
    int64_t at = 0;

    transaction_log_begin(&out);
    while (failure == 0 && transaction_log_read(from, &record)) {
        if (record_is_run(&record, NULL))
            record_rename_run(&record, run);
        transaction_log_append(&out, at + (int64_t)out.size, &record);
        if (out.failed || fwrite(out.data, 1, out.size, to) != out.size)
            failure = out.failed ? ENOMEM : errno;
        at += (int64_t)out.size;
        out.size = 0;
    }
    if (failure == 0 && (record.failed || ferror(from))) /* the file goes on */
        failure = record.failed ? ENOMEM : EIO;
    message_free(&out);
    message_free(&record);
    if (failure == 0 && (fflush(to) != 0 || fsync(fileno(to)) != 0))
        failure = errno;
    return failure;
}

static pons_status replace_file(FILE *from, const char *path, const run_facts *run, pons_error *err)
{
    char *part = NULL;
    FILE *to = NULL;

    if (asprintf(&part, "%s.part", path) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for wandb");
    if (pons_sink_file(part, "w", &to, err) == PONS_OK) {
        int failure = copy_records(from, to, run);

        if (fclose(to) != 0 && failure == 0)
            failure = errno;
        if (failure == 0 && rename(part, path) != 0)
            failure = errno;
        if (failure != 0) {
            pons_fail(err, PONS_FAILURE, "cannot write '%s': %s", path, strerror(failure));
            unlink(part);
        }
    }
    free(part);
    return err->status;
}

pons_status rename_run(const char *path, const run_facts *run, pons_error *err)
{
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return PONS_OK;
    if (has_other_names(file, run))
        replace_file(file, path, run, err);
    fclose(file);
    return err->status;
}
