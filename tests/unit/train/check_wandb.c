/*
 * check_wandb.c - the file of an offline run is divided as wandb's own client does it, and has each
 * step once, however often a run is resumed. tests/peers/wandb_runs.py has let the client write the
 * golden file; there 'wandb sync' also delivers a run of this sink.
 */
#include "base/file/file.h"
#include "sinks/wandb/run_record.h"
#include "sinks/wandb/transaction_log.h"
#include "support/run/run_pons.h"
#include "support/run/sink_plugin.h"
#include "support/suite.h"

#include <pons/sink.h>

#include <glob.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* The options of [log.wandb]. */
static struct { const char *project, *entity, *name; } settings = { "liver", "team", NULL };

/* ---- the format ------------------------------------------------------------------------------ */

/* The row of the same number, step and items. */
static void make_again(const message *row, message *again)
{
    message items = { 0 };
    message_view history;
    message_field number;
    int64_t step;
    char key[64], json[64];

    ck_assert(record_read_row(row, &step, &history));
    ck_assert(message_find((message_view){ row->data, row->data + row->size }, 1, &number));
    while (row_read_item(&history, key, sizeof key, json, sizeof json))
        items_put(&items, key, json);
    record_make_row(again, (int64_t)number.value, step, &items);
    message_free(&items);
}

START_TEST(records_are_those_of_wandbs_client)
{
    char *expected;
    size_t size;
    message written = { 0 }, record = { 0 }, again = { 0 };
    message_view history;
    int64_t step;
    int count = 0, rows = 0;
    pons_error err = PONS_ERROR_INIT;
    FILE *file = fopen(golden_path("sinks/run.wandb"), "r");

    ck_assert_int_eq(file_read(golden_path("sinks/run.wandb"), 1 << 17, &expected, &size, PONS_DATA,
                               &err), PONS_OK);
    ck_assert(transaction_log_open(file));
    transaction_log_begin(&written);
    for (; transaction_log_read(file, &record); count++) {
        transaction_log_append(&written, (int64_t)written.size, &record);
        if (!record_read_row(&record, &step, &history))
            continue;
        make_again(&record, &again);
        ck_assert_uint_eq(again.size, record.size);
        ck_assert_mem_eq(again.data, record.data, record.size);
        rows++;
    }
    ck_assert_int_eq(count, 14); /* the second has 33154 bytes, more than a block */
    ck_assert_int_eq(rows, 2);
    ck_assert_uint_eq(written.size, size);
    ck_assert_mem_eq(written.data, expected, size);
    fclose(file);
    free(expected);
    message_free(&written);
    message_free(&record);
    message_free(&again);
}
END_TEST

/* Append a record of 'size' bytes, which depend on it. */
static void append_sized(message *written, size_t size)
{
    message record = { 0 };

    for (size_t i = 0; i < size; i++)
        message_append(&record, &(char){ (char)(size * 31 + i) }, 1);
    transaction_log_append(written, (int64_t)written->size, &record);
    message_free(&record);
}

static void expect_sized(FILE *file, size_t size)
{
    message record = { 0 };

    ck_assert_msg(transaction_log_read(file, &record), "no record of %zu bytes", size);
    ck_assert_uint_eq(record.size, size);
    for (size_t i = 0; i < size; i++)
        ck_assert_int_eq((char)record.data[i], (char)(size * 31 + i));
    message_free(&record);
}

START_TEST(records_may_end_anywhere_in_a_block)
{
    enum { HEADER = 7, HEAD = 7, BLOCK = 32768 };

    make_root();
    for (size_t left = 0; left < 17; left++) { /* bytes of the block behind the first record */
        size_t sizes[] = { BLOCK - HEADER - HEAD - left, 9, 3 * BLOCK, 1 };
        message written = { 0 };
        transaction_log_begin(&written);
        for (int i = 0; i < 4; i++)
            append_sized(&written, sizes[i]);
        FILE *file = fopen(in_root("log"), "w+");
        ck_assert_uint_eq(fwrite(written.data, 1, written.size, file), written.size);
        ck_assert(transaction_log_open(file));
        for (int i = 0; i < 4; i++)
            expect_sized(file, sizes[i]);
        ck_assert(!transaction_log_read(file, &written));
        fclose(file);
        message_free(&written);
    }
    remove_root();
}
END_TEST

/* ---- runs ------------------------------------------------------------------------------------ */

static const pons_sink_operations *sink_operations;

static void *open_sink(int64_t step, int64_t validation)
{
    pons_error err = PONS_ERROR_INIT;
    void *sink;

    ck_assert_msg(sink_operations->open(&settings, root, (pons_sink_kept){ step, validation },
                                        &sink, &err) == PONS_OK, "%s", err.text);
    return sink;
}

static void write_one(void *sink, const char *kind, int step)
{
    pons_metric m[] = { { "loss", 1.0 / step }, { "dice.a", 0.0 / 0.0 } };
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(sink_operations->write(sink, &(pons_record){ kind, step, 0, 2, m }, &err),
                     PONS_OK);
}

/* Write a record for each step, and a validation every second one. */
static void write_steps(void *sink, int first, int last)
{
    for (int step = first; step <= last; step++) {
        write_one(sink, "step", step);
        if (step % 2 == 0)
            write_one(sink, "validation", step);
    }
}

static void flush(void *sink)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(sink_operations->flush(sink, &err), PONS_OK);
}

static void end(void *sink, pons_status status)
{
    char text[256];

    sink_operations->end(sink, status);
    ck_assert(!sink_operations->warning(sink, text, sizeof text));
    sink_operations->close(sink);
}

static void run_steps(int64_t kept, int first, int last)
{
    void *sink = open_sink(kept, kept);

    write_steps(sink, first, last);
    end(sink, PONS_OK);
}

/* The only file of this name in the folder of the run. */
static const char *found_path(const char *name)
{
    static char path[512];
    char pattern[256];
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/wandb/offline-run-*/%s", root, name);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 1);
    snprintf(path, sizeof path, "%s", found.gl_pathv[0]);
    globfree(&found);
    return path;
}

/* A row as " STEP", its kinds of numbers, and "!" for a key that comes twice. */
static void tell_row(int64_t step, message_view history, char *text)
{
    char key[64], json[64], seen[512] = "", mark[80];

    text += sprintf(text, " %d", (int)step);
    while (row_read_item(&history, key, sizeof key, json, sizeof json)) {
        snprintf(mark, sizeof mark, "[%s]", key);
        text += sprintf(text, "%s%s", strstr(seen, mark) != NULL ? "!" : "",
                        strcmp(key, "step/loss") == 0         ? "s"
                        : strcmp(key, "validation/loss") == 0 ? "v"
                                                              : "");
        strcat(seen, mark);
    }
}

/* "run 1s 2sv = exit0": the records of the file in their order; "=" is a summary. */
static const char *told_file(const char *path)
{
    static const struct { int field; const char *name; } known[] = {
        { 17, "run" }, { 5, " set" }, { 3, " =" }
    };
    static char text[1 << 13];
    FILE *file = fopen(path, "r");
    message record = { 0 };
    message_field f, code;
    message_view history;
    int64_t step;

    text[0] = '\0';
    ck_assert(transaction_log_open(file));
    while (transaction_log_read(file, &record)) {
        message_view v = { record.data, record.data + record.size };
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            strcat(text, message_find(v, known[i].field, &f) ? known[i].name : "");
        if (message_find(v, 18, &f) && message_find(f.bytes, 1, &code))
            sprintf(text + strlen(text), " exit%d", (int)code.value);
        if (record_read_row(&record, &step, &history))
            tell_row(step, history, text + strlen(text));
    }
    ck_assert_msg(fgetc(file) == EOF, "there are bytes behind '%s'", text);
    fclose(file);
    message_free(&record);
    return text;
}

static const char *told(void)
{
    return told_file(found_path("run-*.wandb"));
}

START_TEST(a_resumed_run_has_each_step_once)
{
    char first[512];

    make_root();
    run_steps(-1, 1, 4);
    ck_assert_str_eq(told(), "run 1s = 2sv 3s 4sv = exit0");
    strcpy(first, found_path("run-*.wandb"));
    run_steps(3, 4, 5);
    ck_assert_str_eq(told(), "run 1s = 2sv set 3s 4sv = 5s = exit0");
    run_steps(5, 6, 6);
    ck_assert_str_eq(told(), "run 1s = 2sv set 3s 4sv set 5s 6sv = exit0");
    ck_assert_str_eq(found_path("run-*.wandb"), first);
    run_steps(-1, 1, 1); /* a run that begins again */
    ck_assert_str_eq(told(), "run 1s = exit0");
    ck_assert_str_eq(found_path("run-*.wandb"), first);
    remove_root();
}
END_TEST

START_TEST(a_validation_that_is_due_joins_its_step)
{
    make_root();
    run_steps(-1, 1, 2);
    void *sink = open_sink(2, 1);
    write_one(sink, "validation", 2);
    ck_assert_str_eq(told(), "run 1s set 2sv =");
    write_steps(sink, 3, 3);
    end(sink, PONS_INTERRUPTED);
    ck_assert_str_eq(told(), "run 1s set 2sv = 3s = exit255");
    remove_root();
}
END_TEST

START_TEST(a_flush_writes_the_open_row)
{
    make_root();
    void *sink = open_sink(-1, -1);
    write_steps(sink, 1, 2);
    write_one(sink, "step", 3);
    flush(sink);
    ck_assert_str_eq(told(), "run 1s = 2sv 3s =");
    write_one(sink, "validation", 3); /* the row is written again */
    ck_assert_str_eq(told(), "run 1s = 2sv 3sv =");
    write_one(sink, "step", 4);
    flush(sink);
    flush(sink);
    ck_assert_str_eq(told(), "run 1s = 2sv 3sv = 4s =");
    end(sink, PONS_FAILURE);
    ck_assert_str_eq(told(), "run 1s = 2sv 3sv = 4s = exit1");
    remove_root();
}
END_TEST

START_TEST(what_a_killed_run_wrote_ends_with_a_whole_record)
{
    make_root();
    void *sink = open_sink(-1, -1);
    write_steps(sink, 1, 200);
    flush(sink);
    for (int step = 201; step <= 400; step++) {
        write_one(sink, "step", step);
        ck_assert_ptr_nonnull(told());
    }
    sink_operations->close(sink); /* as if killed: there is no end */
    ck_assert_ptr_nonnull(strstr(told(), " 200sv ="));
    remove_root();
}
END_TEST

START_TEST(a_file_that_was_cut_short_is_continued_from_its_last_whole_row)
{
    char path[512];

    make_root();
    run_steps(-1, 1, 3);
    strcpy(path, found_path("run-*.wandb"));
    for (int64_t size = 1; size < 60; size += 7) { /* into the exit record, the summary, row 3 */
        pons_error err = PONS_ERROR_INIT;
        char *data;
        size_t whole;
        ck_assert_int_eq(file_read(path, 1 << 20, &data, &whole, PONS_DATA, &err), PONS_OK);
        free(data);
        ck_assert_int_eq(truncate(path, (off_t)whole - size), 0);
        run_steps(2, 3, 3);
        ck_assert_str_eq(told(), "run 1s set 2sv 3s = exit0");
    }
    ck_assert_int_eq(truncate(path, 0), 0);
    run_steps(2, 3, 3);
    ck_assert_str_eq(told(), "run 3s = exit0");
    remove_root();
}
END_TEST

/* ---- the folder ------------------------------------------------------------------------------ */

static bool holds(const char *path, const char *text, size_t length)
{
    pons_error err = PONS_ERROR_INIT;
    char *data;
    size_t size;
    bool found;

    ck_assert_int_eq(file_read(path, 1 << 20, &data, &size, PONS_DATA, &err), PONS_OK);
    found = memmem(data, size, text, length) != NULL;
    free(data);
    return found;
}

static void expect_held(const char *path, const char *text)
{
    ck_assert_msg(holds(path, text, strlen(text)), "no '%s'", text);
}

START_TEST(the_run_has_its_settings_and_the_identity_of_its_folder)
{
    char path[512];

    make_root();
    write_text("resolved.ini", "[model]\nplugin = unet ; default\nact = \n"
                               "[optimizer]\nlr = 1e-2 ; a.ini:3\nnesterov = no\n"
                               "[data]\nsource = /a \"b\"\\c\n");
    run_steps(-1, 1, 1);
    strcpy(path, found_path("run-*.wandb"));
    expect_held(path, "\x1a\x05liver"); /* field 3 of 5 bytes: the project */
    expect_held(path, "\x12\x04team"); /* field 2: the entity */
    expect_held(path, strrchr(root, '/') + 1); /* the name */
    expect_held(path, "\x0a\x0cmodel.plugin\x82\x01\x06\"unet\"");
    expect_held(path, "\x0a\x0coptimizer.lr\x82\x01\x04" "1e-2");
    expect_held(path, "\x0a\x12optimizer.nesterov\x82\x01\x05" "false");
    expect_held(path, "\"/a \\\"b\\\"\\\\c\"");
    ck_assert(!holds(path, "model.act", strlen("model.act")));
    ck_assert(!holds(path, "dice.a", strlen("dice.a"))); /* it has no number */
    char *name = strrchr(path, '/'), *folder = path;
    *name++ = '\0';
    folder = strrchr(path, '/') + 1;
    ck_assert_msg(strlen(folder) == strlen("offline-run-20260102_030405-abcdefgh"), "%s", folder);
    ck_assert_mem_eq(name + strlen("run-"), folder + strlen(folder) - 8, 8);
    ck_assert_str_eq(name + strlen("run-") + 8, ".wandb");
    expect_held(found_path("files/wandb-metadata.json"), "\"program\": \"pons\"");
    remove_root();
}
END_TEST

START_TEST(text_that_is_not_utf8_is_not_written)
{
    pons_error err = PONS_ERROR_INIT;
    const char *project = settings.project;
    char path[512], long_name[512];
    pons_metric m[] = { { "dice.\xe9t\xe9", 0.5 }, { long_name, 0.5 }, { "dice.b", 0.25 } };

    make_root();
    memset(long_name, 'x', sizeof long_name);
    memcpy(long_name + 255 - strlen("step/") - 1, "\xc3\xa9", 3); /* the key ends within it */
    void *sink = open_sink(-1, -1);
    ck_assert_int_eq(sink_operations->write(sink, &(pons_record){ "step", 1, 0, 3, m }, &err),
                     PONS_OK);
    end(sink, PONS_OK);
    strcpy(path, found_path("run-*.wandb"));
    expect_held(path, "step/dice.b");
    ck_assert(!holds(path, "\xe9t\xe9", 3) && !holds(path, "xxxx", 4));
    settings.project = "\xe9t\xe9";
    ck_assert_int_ne(sink_operations->check(&settings, &err), PONS_OK);
    ck_assert_ptr_nonnull(strstr(err.text, "expected UTF-8"));
    settings.project = project;
    remove_root();
}
END_TEST

START_TEST(a_resumed_run_takes_another_name)
{
    static const char names[] = "\x12\x00\x1a\x06spleenB\x05" "again";
    char path[512];

    make_root();
    run_steps(-1, 1, 2);
    strcpy(path, found_path("run-*.wandb"));
    settings.project = "spleen";
    settings.entity = NULL;
    settings.name = "again";
    run_steps(2, 3, 3);
    ck_assert_str_eq(found_path("*.wandb*"), path); /* there is no other file */
    ck_assert_str_eq(told(), "run 1s set 2sv 3s = exit0");
    ck_assert(holds(path, names, sizeof names - 1));
    remove_root();
}
END_TEST

START_TEST(a_delivered_run_that_goes_on_is_delivered_again)
{
    char path[512];

    make_root();
    run_steps(-1, 1, 2);
    snprintf(path, sizeof path, "%s.synced", found_path("run-*.wandb"));
    fclose(fopen(path, "w"));
    run_steps(2, 3, 3);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_str_eq(told(), "run 1s set 2sv 3s = exit0");
    remove_root();
}
END_TEST

START_TEST(a_run_that_was_delivered_while_it_trained_is_delivered_again)
{
    char path[512];

    make_root();
    void *sink = open_sink(-1, -1);
    write_steps(sink, 1, 2);
    flush(sink);
    snprintf(path, sizeof path, "%s.synced", found_path("run-*.wandb"));
    fclose(fopen(path, "w"));
    write_steps(sink, 3, 3);
    ck_assert_int_eq(access(path, F_OK), 0);
    end(sink, PONS_OK);
    ck_assert_int_ne(access(path, F_OK), 0);
    remove_root();
}
END_TEST

START_TEST(runs_of_others_stay)
{
    static const char foreign[] = "wandb/offline-run-20990101_000000-abcd1234/run-abcd1234.wandb";
    pons_error err = PONS_ERROR_INIT;
    char *data;
    size_t size;

    make_root();
    ck_assert_int_eq(mkdir(in_root("wandb"), 0777), 0);
    ck_assert_int_eq(mkdir(in_root("wandb/offline-run-20990101_000000-abcd1234"), 0777), 0);
    ck_assert_int_eq(file_read(golden_path("sinks/run.wandb"), 1 << 17, &data, &size, PONS_DATA,
                               &err), PONS_OK);
    FILE *file = fopen(in_root(foreign), "w");
    fwrite(data, 1, size, file);
    fclose(file);
    run_steps(-1, 1, 1);
    run_steps(-1, 1, 1);
    file = fopen(in_root(foreign), "r");
    for (size_t i = 0; i < size; i++)
        ck_assert_int_eq(fgetc(file), (unsigned char)data[i]);
    ck_assert_int_eq(fgetc(file), EOF);
    fclose(file);
    free(data);
    unlink(in_root(foreign));
    ck_assert_str_eq(told(), "run 1s = exit0");
    remove_root();
}
END_TEST

START_TEST(a_run_without_a_record_leaves_no_folder)
{
    make_root();
    end(open_sink(-1, -1), PONS_FAILURE);
    ck_assert_int_ne(access(in_root("wandb"), F_OK), 0);
    remove_root();
}
END_TEST

START_TEST(a_link_in_place_of_the_folder_is_refused)
{
    pons_error err = PONS_ERROR_INIT;
    void *sink;

    make_root();
    ck_assert_int_eq(symlink("/tmp", in_root("wandb")), 0);
    ck_assert_int_eq(sink_operations->open(&settings, root, (pons_sink_kept){ -1, -1 }, &sink,
                                           &err), PONS_FAILURE);
    ck_assert_ptr_nonnull(strstr(err.text, "cannot make the folder '"));
    remove_root();
}
END_TEST

START_TEST(a_disk_without_space_costs_one_warning)
{
    char text[512];

    make_root();
    void *sink = open_sink(-1, -1);
    write_steps(sink, 1, 2);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 200, RLIM_INFINITY }), 0);
    flush(sink);
    ck_assert(sink_operations->warning(sink, text, sizeof text));
    ck_assert_msg(strstr(text, "File too large; it gets no more numbers of this run") != NULL,
                  "%s", text);
    write_steps(sink, 3, 50);
    flush(sink);
    sink_operations->end(sink, PONS_OK);
    ck_assert(!sink_operations->warning(sink, text, sizeof text));
    sink_operations->close(sink);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }), 0);
    remove_root();
}
END_TEST

/* Put /dev/null, which cannot be synchronized, in the place of an open file. */
static void replace_open_file(const char *path)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct stat wanted, found;

    ck_assert_int_eq(stat(path, &wanted), 0);
    for (int fd = 3; fd < 256; fd++)
        if (fstat(fd, &found) == 0 && found.st_ino == wanted.st_ino
            && found.st_dev == wanted.st_dev)
            ck_assert_int_eq(dup2(null, fd), fd);
    close(null);
}

START_TEST(a_file_that_cannot_be_synchronized_costs_one_warning)
{
    char text[512];

    make_root();
    void *sink = open_sink(-1, -1);
    write_steps(sink, 1, 2);
    flush(sink);
    ck_assert(!sink_operations->warning(sink, text, sizeof text));
    replace_open_file(found_path("run-*.wandb"));
    flush(sink);
    ck_assert(sink_operations->warning(sink, text, sizeof text));
    ck_assert_msg(strstr(text, "Invalid argument") != NULL, "%s", text);
    flush(sink);
    ck_assert(!sink_operations->warning(sink, text, sizeof text));
    sink_operations->close(sink);
    remove_root();
}
END_TEST

int main(void)
{
    sink_operations = sink_plugin("wandb");
    TCase *c = suite_new("wandb");
    tcase_add_test(c, records_are_those_of_wandbs_client);
    tcase_add_test(c, records_may_end_anywhere_in_a_block);
    tcase_add_test(c, a_resumed_run_has_each_step_once);
    tcase_add_test(c, a_validation_that_is_due_joins_its_step);
    tcase_add_test(c, a_flush_writes_the_open_row);
    tcase_add_test(c, what_a_killed_run_wrote_ends_with_a_whole_record);
    tcase_add_test(c, a_file_that_was_cut_short_is_continued_from_its_last_whole_row);
    tcase_add_test(c, the_run_has_its_settings_and_the_identity_of_its_folder);
    tcase_add_test(c, text_that_is_not_utf8_is_not_written);
    tcase_add_test(c, a_resumed_run_takes_another_name);
    tcase_add_test(c, a_delivered_run_that_goes_on_is_delivered_again);
    tcase_add_test(c, a_run_that_was_delivered_while_it_trained_is_delivered_again);
    tcase_add_test(c, runs_of_others_stay);
    tcase_add_test(c, a_run_without_a_record_leaves_no_folder);
    tcase_add_test(c, a_link_in_place_of_the_folder_is_refused);
    tcase_add_test(c, a_disk_without_space_costs_one_warning);
    tcase_add_test(c, a_file_that_cannot_be_synchronized_costs_one_warning);
    return suite_run();
}
