/*
 * check_tensorboard.c - event files equal those of TensorBoard's writer byte by byte, and a resumed
 * run's files hold each step once. tests/peers/events.py has written the golden file.
 */
#include "base/file/file.h"
#include "sinks/tensorboard/event.h"
#include "support/run/run_pons.h"
#include "support/run/sink_plugin.h"
#include "support/suite.h"

#include <pons/sink.h>

#include <dirent.h>

START_TEST(the_checksum_is_castagnolis_masked)
{
    uint32_t crc = 0xe3069283; /* of "123456789" */

    ck_assert_uint_eq(event_crc("123456789", 9), (crc >> 15 | crc << 17) + 0xa282ead8);
}
END_TEST

/* Write the three events of the golden file. */
static void write_events(FILE *file)
{
    message event = { 0 }, summary = { 0 };

    event_begin(&event, 1, 0);
    event_put_version(&event);
    ck_assert(event_write(file, &event));
    summary_put_scalar(&summary, "step/loss", 0.5f);
    summary_put_scalar(&summary, "step/lr", 0.25f);
    event_begin(&event, 2.5, 300);
    event_put_summary(&event, &summary);
    ck_assert(event_write(file, &event));
    event_begin(&event, 3.5, 301);
    event_put_start(&event);
    ck_assert(event_write(file, &event));
    message_free(&event);
    message_free(&summary);
}

START_TEST(records_are_those_of_tensorboards_writer)
{
    char *expected, *found;
    size_t expected_size, found_size;
    pons_error err = PONS_ERROR_INIT;

    make_root();
    FILE *file = fopen(in_root("events"), "w");
    write_events(file);
    fclose(file);
    ck_assert_int_eq(file_read(golden_path("sinks/tensorboard.events"), 4096, &expected,
                               &expected_size, PONS_DATA, &err), PONS_OK);
    ck_assert_int_eq(file_read(in_root("events"), 4096, &found, &found_size, PONS_DATA, &err),
                     PONS_OK);
    ck_assert_uint_eq(found_size, expected_size);
    ck_assert_mem_eq(found, expected, found_size);
    free(expected);
    free(found);
    remove_root();
}
END_TEST

/* ---- resumed runs ---------------------------------------------------------------------------- */

/* Write a record for each step, and a validation every second one. */
static void write_steps(pons_sink_kept keep, int first, int last)
{
    const pons_sink_operations *o = sink_plugin("tensorboard");
    pons_error err = PONS_ERROR_INIT;
    void *sink;

    ck_assert_msg(o->open(NULL, root, keep, &sink, &err) == PONS_OK, "%s", err.text);
    for (int step = first; step <= last; step++) {
        pons_metric m[] = { { "loss", 1.0 / step }, { "dice.a", 0.0 / 0.0 } };
        ck_assert_int_eq(o->write(sink, &(pons_record){ "step", step, 0, 2, m }, &err), PONS_OK);
        if (step % 2 == 0)
            ck_assert_int_eq(o->write(sink, &(pons_record){ "validation", step, 0, 1, m }, &err),
                             PONS_OK);
    }
    ck_assert_int_eq(o->flush(sink, &err), PONS_OK);
    o->close(sink);
}

static int is_event_file(const struct dirent *e)
{
    return strstr(e->d_name, ".tfevents.") != NULL;
}

/* "s1 s2 v2 | s3": steps and validations of the files, in the order in which they are read. */
static const char *events_of_root(void)
{
    static char text[512];
    struct dirent **entry;
    int count = scandir(root, &entry, is_event_file, alphasort);
    char tag[64];
    int64_t step;

    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        FILE *file = fopen(in_root(entry[i]->d_name), "r");
        if (i > 0)
            strcat(text, " |");
        while (event_read(file, &step, tag, sizeof tag))
            if (step > 0)
                sprintf(text + strlen(text), " %c%d", tag[0] != '\0' ? tag[0] : '+', (int)step);
        fclose(file);
        free(entry[i]);
    }
    free(entry);
    return text;
}

START_TEST(a_resumed_run_has_each_step_once)
{
    make_root();
    write_steps((pons_sink_kept){ -1, -1 }, 1, 4);
    ck_assert_str_eq(events_of_root(), " s1 s2 v2 s3 s4 v4");
    write_steps((pons_sink_kept){ 3, 2 }, 4, 4); /* a start event, '+', forgets step 4 */
    ck_assert_str_eq(events_of_root(), " s1 s2 v2 s3 | +4 s4 v4");
    write_steps((pons_sink_kept){ 2, 2 }, 3, 3); /* nothing of the second file is kept */
    ck_assert_str_eq(events_of_root(), " s1 s2 v2 | +3 s3");
    write_steps((pons_sink_kept){ -1, -1 }, 1, 1); /* a new run in the folder */
    ck_assert_str_eq(events_of_root(), " s1");
    remove_root();
}
END_TEST

/* Whether a file of the root has a text. */
static bool has_text(const char *name, const char *text)
{
    pons_error err = PONS_ERROR_INIT;
    char *data;
    size_t size;
    bool found;

    ck_assert_int_eq(file_read(in_root(name), 1 << 16, &data, &size, PONS_DATA, &err), PONS_OK);
    found = memmem(data, size, text, strlen(text)) != NULL;
    free(data);
    return found;
}

START_TEST(text_that_is_not_utf8_is_not_written)
{
    const pons_sink_operations *o = sink_plugin("tensorboard");
    pons_error err = PONS_ERROR_INIT;
    pons_metric m[] = { { "dice.\xe9t\xe9", 0.5 }, { "dice.b", 0.25 } };
    struct dirent **entry;
    void *sink;

    make_root();
    write_text("resolved.ini", "[experiment]\nname = \xe9t\xe9\noutput = there\n"
               "[augment.\xe9t\xe9]\nsteps = flip\n");
    ck_assert_int_eq(o->open(NULL, root, (pons_sink_kept){ -1, -1 }, &sink, &err), PONS_OK);
    ck_assert_int_eq(o->write(sink, &(pons_record){ "step", 1, 0, 2, m }, &err), PONS_OK);
    o->close(sink);
    ck_assert_int_eq(scandir(root, &entry, is_event_file, alphasort), 1);
    ck_assert(has_text(entry[0]->d_name, "step/dice.b"));
    ck_assert(has_text(entry[0]->d_name, "experiment.output"));
    ck_assert(!has_text(entry[0]->d_name, "\xe9t\xe9"));
    ck_assert(!has_text(entry[0]->d_name, "experiment.name"));
    free(entry[0]);
    free(entry);
    remove_root();
}
END_TEST

START_TEST(files_of_others_stay)
{
    make_root();
    write_text("events.out.tfevents.1700000000.host.1.0", "of another program");
    write_steps((pons_sink_kept){ -1, -1 }, 1, 1);
    ck_assert_str_eq(root_text("events.out.tfevents.1700000000.host.1.0"), "of another program");
    remove_root();
}
END_TEST

START_TEST(a_damaged_record_ends_what_is_read)
{
    char tag[64];
    int64_t step;

    make_root();
    FILE *file = fopen(in_root("events"), "w+");
    write_events(file);
    fseek(file, -5, SEEK_END);
    fputc('x', file);
    rewind(file);
    ck_assert(event_read(file, &step, tag, sizeof tag));
    ck_assert(event_read(file, &step, tag, sizeof tag));
    ck_assert_int_eq(step, 300);
    ck_assert_str_eq(tag, "step/loss");
    ck_assert(!event_read(file, &step, tag, sizeof tag));
    fclose(file);
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("tensorboard");

    tcase_add_test(c, the_checksum_is_castagnolis_masked);
    tcase_add_test(c, records_are_those_of_tensorboards_writer);
    tcase_add_test(c, a_resumed_run_has_each_step_once);
    tcase_add_test(c, text_that_is_not_utf8_is_not_written);
    tcase_add_test(c, files_of_others_stay);
    tcase_add_test(c, a_damaged_record_ends_what_is_read);
    return suite_run();
}
