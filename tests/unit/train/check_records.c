/*
 * check_records.c - each step and validation of a checkpoint has exactly one record, however the
 * process ends. The sink 'alarm' sends the signals while a record is being written.
 */
#include <config.h>

#include "report/picture/png_write.h"
#include "sinks/tensorboard/event.h"
#include "sinks/wandb/run_record.h"
#include "sinks/wandb/transaction_log.h"
#include "support/process/process_state.h"
#include "support/run/run_pons.h"
#include "support/suite.h"

#include <glob.h>
#include <sys/stat.h>

static const char ini[] =
    "[experiment]\nname = run\n"
    "[data]\nsource = data\nvalidation = last:1\nloader_threads = 0\n"
    "[patch]\nextent = 8 8 8\n"
    "[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\nlr = 1e-2\n"
    "[train]\nsteps = 4\nvalidate_steps = 1\ncheckpoint_every = 0\nprecision = fp32\n"
    "[log]\nsinks = alarm csv tensorboard wandb\n";

static void make_experiment(void)
{
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "3", "--extent", "12,12,12");
    write_text("e.ini", ini);
    add_plugin("sink", "alarm");
    search_first(in_root("plugins"));
}

static int train_within(const char *alarm, const char *grace)
{
    int code;

    setenv("CHECK_ALARM", alarm, 1);
    code = PONS("train", "e.ini", "--set", grace);
    unsetenv("CHECK_ALARM");
    return code;
}

static int train_ini(const char *alarm)
{
    return train_within(alarm, "train.grace_s=10");
}

/* Count the lines of a file of the run that begin with 'start', for steps 1 to 'step'. */
static int count_lines(const char *file, const char *start, int step)
{
    char name[64], text[64];
    int count = 0;

    snprintf(name, sizeof name, "runs/run/%s", file);
    snprintf(text, sizeof text, start, step);
    for (char *at = strstr(root_text(name), text); at != NULL; at = strstr(at + 1, text))
        count++;
    return count;
}

/* Count the events of TensorBoard for a kind of record and a step, in all files of the run. */
static int count_events(const char *kind, int step)
{
    glob_t found;
    message event = { 0 };
    event_facts f;
    int count = 0;

    ck_assert_int_eq(glob(in_root("runs/run/events.out.tfevents.*"), 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        while (event_read(file, &event, &f))
            count += f.step == step && strncmp(f.tag, kind, strlen(kind)) == 0;
        fclose(file);
    }
    message_free(&event);
    globfree(&found);
    return count;
}

/* Count the numbers 'key' of a step in the rows of Weights & Biases. */
static int count_items(const char *key, int step)
{
    glob_t found;
    message record = { 0 };
    message_view history;
    int64_t at;
    char name[64], json[32];
    int count = 0;

    ck_assert_int_eq(glob(in_root("runs/run/wandb/*/*.wandb"), 0, NULL, &found), 0);
    ck_assert_int_eq(found.gl_pathc, 1);
    FILE *file = fopen(found.gl_pathv[0], "r");
    ck_assert(transaction_log_open(file));
    while (transaction_log_read(file, &record))
        if (record_read_row(&record, &at, &history) && at == step)
            while (row_read_item(&history, name, sizeof name, json, sizeof json))
                count += strcmp(name, key) == 0;
    fclose(file);
    message_free(&record);
    globfree(&found);
    return count;
}

static void expect_one_of_each(int last)
{
    for (int step = 1; step <= last; step++) {
        ck_assert_int_eq(count_lines("metrics.jsonl", "\"step\",\"step\":%d,", step), 1);
        ck_assert_int_eq(count_lines("metrics.jsonl", "\"validation\",\"step\":%d,", step), 1);
        ck_assert_int_eq(count_lines("metrics.csv", "step,%d,", step), 6);
        ck_assert_int_eq(count_lines("metrics.csv", "validation,%d,", step), 7);
        ck_assert_int_eq(count_events("step/", step), 1);
        ck_assert_int_eq(count_events("validation/", step), 1);
        ck_assert_int_le(count_events("case/", step), 1); /* a killed process draws no more */
        ck_assert_int_eq(count_items("_step", step), 1);
        ck_assert_int_eq(count_items("step/loss", step), 1);
        ck_assert_int_eq(count_items("validation/cases", step), 1);
    }
    ck_assert_int_eq(count_events("case/", last), png_available());
}

START_TEST(grace_that_ends_while_a_step_is_recorded_saves_its_record)
{
    make_experiment();
    ck_assert_int_eq(train_within("step 2 linger", "train.grace_s=0"), 75);
    ck_assert_msg(strcmp(root_text("runs/run/checkpoints/last"), "step-00000002\n") == 0, "%s",
                  root_text("said"));
    ck_assert_int_eq(count_lines("metrics.csv", "step,%d,", 2), 6);
    ck_assert_int_eq(train_ini("none"), 0);
    expect_one_of_each(4);
}
END_TEST

START_TEST(grace_that_ends_while_a_validation_is_recorded_saves_its_record)
{
    make_experiment();
    ck_assert_int_eq(train_within("validation 2 linger", "train.grace_s=0"), 75);
    ck_assert_int_eq(count_lines("metrics.csv", "validation,%d,", 2), 7);
    ck_assert_int_eq(train_ini("none"), 0);
    expect_one_of_each(4);
}
END_TEST

START_TEST(a_deferred_validation_that_was_killed_is_recorded_once)
{
    make_experiment();
    ck_assert_int_eq(train_ini("step 2 stop"), 75); /* the validation of step 2 is still due */
    ck_assert_int_eq(count_lines("metrics.jsonl", "\"validation\",\"step\":%d,", 2), 0);
    ck_assert_int_eq(train_ini("validation 2 kill"), 1000 + SIGKILL);
    ck_assert_int_eq(count_lines("metrics.jsonl", "\"validation\",\"step\":%d,", 2), 1);
    ck_assert_int_eq(train_ini("none"), 0);
    expect_one_of_each(4);
}
END_TEST

START_TEST(records_after_the_checkpoint_are_cut)
{
    make_experiment();
    ck_assert_int_eq(train_ini("step 1 stop"), 75);
    ck_assert_int_eq(train_ini("step 3 kill"), 1000 + SIGKILL);
    ck_assert_int_eq(count_lines("metrics.jsonl", "\"step\",\"step\":%d,", 3), 1);
    ck_assert_int_eq(train_ini("none"), 0);
    expect_one_of_each(4);
}
END_TEST

/* ---- an interrupted run and its continuation give the files of an uninterrupted run ---------- */

/* The only training case makes each step an epoch, with a validation and a checkpoint. */
static const char *rate = "optimizer.lr=0.01";
#define EACH_STEP "--set", "data.source=two", "--set", "train.checkpoint_every=1", "--set", \
                  "train.keep=9", "--set", rate

static void make_uninterrupted(const char *set)
{
    make_experiment();
    EXPECT(0, NULL, "data", "phantom", "-o", "two", "--cases", "2", "--extent", "12,12,12");
    EXPECT(0, NULL, "train", "e.ini", EACH_STEP, "--set", set);
    ck_assert_int_eq(rename(in_root("runs/run"), in_root("runs/whole")), 0);
}

static int train_ini_by_step(const char *alarm, const char *set)
{
    int code;

    setenv("CHECK_ALARM", alarm, 1);
    code = PONS("train", "e.ini", EACH_STEP, "--set", set);
    unsetenv("CHECK_ALARM");
    return code;
}

/*
 * Checkpoints, marks and all values but times and memory equal those of runs/whole. The hash of
 * resolved.ini differs, because its comments name the checkpoint as the origin of values. Each run
 * has its own identity, which is the same in all its checkpoints.
 */
static void expect_whole(const char *what, int step)
{
    char command[1024];

    snprintf(command, sizeof command,
             "set -e; cd %s/runs; sed -i '/resolved.ini/d; /^},.sha256/d' "
             "whole/checkpoints/*/manifest.json run/checkpoints/*/manifest.json; "
             "for r in whole run; do "
             "test $(grep -h '^\"run\":' $r/checkpoints/*/manifest.json | sort -u | wc -l) = 1; "
             "sed -i 's/^\"run\":\"[0-9a-f]\\{32\\}\",$/\"run\":\"\",/' "
             "$r/checkpoints/*/manifest.json; done; "
             "diff -r whole/checkpoints run/checkpoints; "
             "for r in whole run; do sed 's/\"\\(data_\\)*seconds\":[^,}]*//g; "
             "s/\"memory\":[^,}]*//' $r/metrics.jsonl >$r.json; "
             "grep -v 'seconds\\|memory' $r/metrics.csv >$r.csv; done; "
             "diff whole.json run.json; diff whole.csv run.csv; rm -r run", root);
    ck_assert_msg(system(command) == 0, "%s %d: see the differences above", what, step);
}

START_TEST(a_validation_deferred_by_a_signal_is_caught_up)
{
    static const char set[] = "train.steps=4";
    char alarm[32];

    make_uninterrupted(set);
    for (int step = 1; step <= 4; step++) {
        snprintf(alarm, sizeof alarm, "step %d stop", step);
        ck_assert_int_eq(train_ini_by_step(alarm, set), 75);
        ck_assert_int_eq(count_lines("metrics.jsonl", "\"validation\",\"step\":%d,", step), 0);
        ck_assert_int_eq(train_ini_by_step("none", set), 0);
        expect_whole("signal in step", step);
    }
}
END_TEST

START_TEST(a_killed_validation_is_caught_up)
{
    static const char set[] = "train.steps=4";
    char alarm[32];

    make_uninterrupted(set);
    for (int step = 1; step <= 4; step++) {
        snprintf(alarm, sizeof alarm, "step %d stop", step);
        ck_assert_int_eq(train_ini_by_step(alarm, set), 75);
        snprintf(alarm, sizeof alarm, "validation %d kill", step);
        ck_assert_int_eq(train_ini_by_step(alarm, set), 1000 + SIGKILL);
        ck_assert_int_eq(train_ini_by_step("none", set), 0);
        expect_whole("killed in validation", step);
    }
}
END_TEST

/*
 * A process that is killed between the rename of a checkpoint and its marks leaves the marks of
 * the checkpoint before. The rate of 0.01 makes each of the first steps the best so far.
 */
START_TEST(an_unmarked_checkpoint_is_marked_at_the_next_start)
{
    static const char set[] = "train.steps=3", *const marks[] = { "last", "best" };
    char alarm[32], name[64], line[32];

    make_uninterrupted(set);
    for (int step = 1; step <= 3; step++) {
        snprintf(alarm, sizeof alarm, "step %d marked", step + 1);
        ck_assert_int_eq(train_ini_by_step(alarm, set), step < 3 ? 1000 + SIGKILL : 0);
        for (int mark = 0; mark < 2; mark++) {
            snprintf(name, sizeof name, "runs/run/checkpoints/%s", marks[mark]);
            snprintf(line, sizeof line, "step-%08d\n", step);
            ck_assert_str_eq(root_text(name), line);
            snprintf(line, sizeof line, "step-%08d\n", step - 1);
            if (step > 1)
                write_text(name, line);
            else
                ck_assert_int_eq(unlink(in_root(name)), 0);
        }
        ck_assert_int_eq(train_ini_by_step("none", set), 0);
        expect_whole("not marked after step", step);
    }
}
END_TEST

/* The rate is too small to change a voxel, so that the second validation exhausts the patience. */
START_TEST(a_deferred_validation_can_exhaust_the_patience)
{
    static const char set[] = "train.early_stop=1";

    rate = "optimizer.lr=1e-12";
    make_uninterrupted(set);
    ck_assert_int_eq(train_ini_by_step("step 2 stop", set), 75);
    ck_assert_int_eq(train_ini_by_step("none", set), 0);
    ck_assert_ptr_nonnull(strstr(root_text("said"), "training ends early"));
    ck_assert_int_eq(train_ini_by_step("none", set), 0);
    ck_assert_ptr_nonnull(strstr(root_text("said"), "is finished"));
    expect_whole("signal in step", 2);
}
END_TEST

/* The last line is one of the three answers to a signal, and is whole. */
static void expect_an_answer(void)
{
    static const char *const answers[] = {
        "interrupted before the first step; the same command begins anew",
        "interrupted after step %d of %d, which is saved; the same command goes on",
        "interrupted; step %d was given up, step %d is saved",
    };
    char *said = root_text("said"), *end = strrchr(said, '\n');
    int first, second;

    ck_assert_msg(end != NULL && end[1] == '\0', "said '%s'", said);
    *end = '\0';
    const char *start = strrchr(said, '\n'), *line = start != NULL ? start + 1 : said;
    if (strcmp(line, answers[0]) == 0)
        return;
    for (int i = 1; i < 3; i++) {
        char again[160];
        if (sscanf(line, answers[i], &first, &second) != 2)
            continue;
        snprintf(again, sizeof again, answers[i], first, second);
        ck_assert_str_eq(line, again);
        ck_assert_int_eq(second, i == 1 ? 100000 : first - 1);
        return;
    }
    ck_abort_msg("said '%s'", said);
}

/*
 * Interrupt the run after 'wait' microseconds; 0: as soon as it handles signals. True: it ended
 * before a step.
 */
static bool answer_before_the_first_step(useconds_t wait)
{
    pid_t child = START("train", "e.ini", "--set", "train.steps=100000");

    if (wait > 0)
        usleep(wait);
    else
        while (!process_is_gone(child) && !process_has_signal(child, "SigBlk", SIGTERM))
            continue;
    kill(child, SIGTERM);
    int code = process_finish(child);
    if (code == 1000 + SIGTERM)
        return false; /* the run had not begun */
    ck_assert_int_eq(code, 75);
    expect_an_answer();
    shell("! find runs -name '*.part*' 2>/dev/null | grep .");
    return strstr(root_text("said"), "before the first step") != NULL;
}

/*
 * A signal at any moment gives one line and no partial file. The signal is SIGTERM, because the
 * shell script that starts the built program ignores SIGINT.
 */
START_TEST(an_early_signal_gives_one_line_and_no_partial_file)
{
    int early = 0;

    make_experiment();
    for (useconds_t wait = 10000; wait < 100000; wait += 5000)
        early += answer_before_the_first_step(wait);
    for (int i = 0; i < 20 && early == 0; i++)
        early += answer_before_the_first_step(0);
    ck_assert_int_gt(early, 0);
}
END_TEST

START_TEST(the_best_checkpoint_is_chosen_by_a_recorded_metric)
{
    make_experiment();
    EXPECT(3, "[train] best is 'hd9.mean', expected a metric, a point, and 'mean' or a class",
           "train", "e.ini", "--set", "train.best=hd9.mean");
    EXPECT(3, "[train] best is 'dice.nobody': there is no class 'nobody', expected dice.mean or "
           "dice of a class", "train", "e.ini", "--set", "train.best=dice.nobody");
    EXPECT(3, "[train] best is 'dice.': there is no class ''", "train", "e.ini", "--set",
           "train.best=dice.");
    EXPECT(0, NULL, "train", "e.ini", "--set", "train.best=iou.brain");
}
END_TEST

/* Give the number of times that a text was said. */
static int count_said(const char *text)
{
    int count = 0;

    for (char *at = strstr(root_text("said"), text); at != NULL; at = strstr(at + 1, text))
        count++;
    return count;
}

START_TEST(a_sink_that_refuses_pictures_or_the_network_is_one_warning_each)
{
    make_experiment();
    add_plugin("sink", "sink_refuses");
    EXPECT(0, "warning: sink 'sink_refuses': no network of ", "train", "e.ini", "--set",
           "log.sinks=sink_refuses", "--set", "log.report=no");
    ck_assert_int_eq(count_said("sink 'sink_refuses': no picture of phantom_002; it gets no more "
                                "pictures of this run"), png_available());
    ck_assert_int_eq(count_said("sink 'sink_refuses'"), 1 + png_available());
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("records");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, grace_that_ends_while_a_step_is_recorded_saves_its_record);
    tcase_add_test(c, grace_that_ends_while_a_validation_is_recorded_saves_its_record);
    tcase_add_test(c, a_deferred_validation_that_was_killed_is_recorded_once);
    tcase_add_test(c, records_after_the_checkpoint_are_cut);
    tcase_add_test(c, a_validation_deferred_by_a_signal_is_caught_up);
    tcase_add_test(c, a_killed_validation_is_caught_up);
    tcase_add_test(c, an_unmarked_checkpoint_is_marked_at_the_next_start);
    tcase_add_test(c, a_deferred_validation_can_exhaust_the_patience);
    tcase_add_test(c, the_best_checkpoint_is_chosen_by_a_recorded_metric);
    tcase_add_test(c, a_sink_that_refuses_pictures_or_the_network_is_one_warning_each);
    tcase_add_test(c, an_early_signal_gives_one_line_and_no_partial_file);
    return suite_run();
}
