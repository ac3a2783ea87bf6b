/*
 * check_memory_limit.c - a network beyond the machine's memory is refused before its first step;
 * otherwise the system would kill the process in the middle of the step.
 */
#include <config.h>

#include "base/system/memory_limit.h"

#include "support/suite.h"

#include "support/run/run_pons.h"

#include <sys/sysinfo.h>

static const char ini[] =
    "[experiment]\nname = large\n"
    "[data]\nsource = phantom\nvalidation = none\n"
    "[patch]\nextent = 128 128 128\n"
    "[model]\nplugin = unet\nchannels = 8 16\nstrides = 2\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = sgd\nlr = 1e-3\n"
    "[train]\nsteps = 1\nprecision = fp32\n";

static char batch[64];

/* The logits of a patch alone take twice the memory of the machine. */
static void setup(void)
{
    double patch = 128.0 * 128 * 128 * 2 * 4;

    make_root();
    write_text("large.ini", ini);
    snprintf(batch, sizeof batch, "train.batch=%.0f", 2 * memory_limit_bytes() / patch + 1);
    EXPECT(0, NULL, "data", "phantom", "-o", "phantom", "--cases", "1", "--extent", "16");
}

START_TEST(the_memory_limit_is_at_most_memory_and_swap)
{
    struct sysinfo facts;

    ck_assert_int_eq(sysinfo(&facts), 0);
    ck_assert_double_gt(memory_limit_bytes(), 1e6);
    ck_assert_double_le(memory_limit_bytes(), ((double)facts.totalram + (double)facts.totalswap)
                                           * facts.mem_unit);
}
END_TEST

START_TEST(training_beyond_the_memory_is_refused_before_it_begins)
{
    EXPECT(5, "out of memory", "train", "large.ini", "--set", batch);
    ck_assert_msg(strstr(root_text("said"), "hint: ") != NULL, "%s", root_text("said"));
    ck_assert_int_ne(access(in_root("runs/large/metrics.jsonl"), F_OK), 0);
    EXPECT(0, NULL, "train", "large.ini", "--set", "patch.extent=16"); /* the control */
}
END_TEST

START_TEST(predicting_beyond_the_memory_is_refused)
{
    char windows[64];

    snprintf(windows, sizeof windows, "window.batch=%s", strchr(batch, '=') + 1);
    EXPECT(5, "out of memory", "predict", "runs/large", "phantom/imagesTr/phantom_000.nii.gz", "-o",
           "out.nii.gz", "--set", windows, "--set", "window.extent=128");
    ck_assert_int_ne(access(in_root("out.nii.gz"), F_OK), 0);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("room");

    tcase_add_unchecked_fixture(c, setup, remove_root);
    tcase_add_test(c, the_memory_limit_is_at_most_memory_and_swap);
    tcase_add_test(c, training_beyond_the_memory_is_refused_before_it_begins);
    tcase_add_test(c, predicting_beyond_the_memory_is_refused);
    return suite_run();
}
