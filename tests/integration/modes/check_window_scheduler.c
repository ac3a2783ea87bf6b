/*
 * check_window_scheduler.c - predictions and scores are the same bytes on one device, on several
 * and in several processes, of one case and of many; what a damaged case among them does.
 */
#include <config.h>

#include "support/pause.h"
#include "support/process/free_port.h"
#include "support/run/run_pons.h"
#include "support/suite.h"


static const char ini[] =
    "[experiment]\nname = run\n"
    "[data]\nsource = phantom\nvalidation = last:4\n"
    "[preprocess]\nsteps = normalize crop_foreground\n"
    "[patch]\nextent = 16 16 16\n"
    "[model]\nplugin = unet\nchannels = 4 8 16\nstrides = 2 2\nnum_res_units = 2\nnorm = batch\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\nlr = 1e-2\n"
    "[train]\nsteps = 6\nprecision = fp32\n"
    "[window]\noverlap = 0.5\nbatch = 3\n"
    "[distribute]\nthreads = 1\n";

static const char *const lists[] = { "cpu", "cpu:0,cpu:1", "cpu:0,1,2", "cpu:0,cpu:0" };

/* Two runs of a few steps, because any weights suffice. */
static void make_runs(void)
{
    write_text("e.ini", ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "phantom", "--cases", "5", "--extent", "37,24,41",
           "--classes", "3");
    EXPECT(0, NULL, "train", "e.ini", "-q");
    EXPECT(0, NULL, "train", "e.ini", "-q", "--set", "experiment.name=other", "--set",
           "experiment.seed=1", "--set", "window.batch=2");
}

/* Predict into folder N with each list of devices. Every file equals that of the first list. */
static void same_files(const char *run, const char *image, const char *const *set)
{
    for (int n = 0; n < 4; n++) {
        const char *word[32] = { "predict", run, image, "--logits", "--probabilities" };
        char devices[64], out[16], other[16];
        int count = 5;

        snprintf(devices, sizeof devices, "distribute.devices=%s", lists[n]);
        snprintf(out, sizeof out, "out%d", n);
        word[count++] = "-o";
        word[count++] = out;
        word[count++] = "--set";
        word[count++] = devices;
        for (int i = 0; set[i] != NULL; i++) {
            word[count++] = "--set";
            word[count++] = set[i];
        }
        shell("mkdir %s", out);
        int code = process_finish(process_start(word));
        ck_assert_msg(code == 0, "%s: %d: %s", lists[n], code, root_text("said"));
        snprintf(other, sizeof other, "said%d", n);
        shell("sed 's/out[0-9]/OUT/' said > %s && test -s %s && cmp said0 %s", other, other, other);
        shell("diff -r out0 %s && test -n \"$(ls %s)\"", out, out);
    }
    shell("rm -r out[0-3]");
}

#define SAME_FILES(RUN, IMAGE, ...)                                                               \
    same_files(RUN, IMAGE, (const char *const[]){ __VA_ARGS__ __VA_OPT__(,) NULL })

START_TEST(windows_of_one_case_give_the_same_bytes_on_several_devices)
{
    make_runs();
    SAME_FILES("runs/run", "phantom/imagesTr/phantom_000.nii.gz");
    SAME_FILES("runs/run", "phantom/imagesTr/phantom_000.nii.gz", "window.mode=gaussian",
               "window.mirror=0 1 2", "window.padding_mode=reflect");
    SAME_FILES("runs/run", "phantom/imagesTr/phantom_000.nii.gz", "train.precision=bf16");
    /* Each window adds one plane: blending always waits for planes to be consumed. */
    SAME_FILES("runs/run", "phantom/imagesTr/phantom_000.nii.gz", "window.extent=4 24 40",
               "window.overlap=0.75", "window.batch=5");
}
END_TEST

START_TEST(several_cases_give_the_same_bytes_and_lines_on_several_devices)
{
    make_runs();
    SAME_FILES("runs/run", "phantom/imagesTr");
    SAME_FILES("runs/run", "phantom/imagesTr", "window.batch=64", "window.overlap=0");
    SAME_FILES("runs/run,runs/other", "phantom/imagesTr", "window.mirror=1");
}
END_TEST

START_TEST(scores_of_a_run_are_the_same_bytes_on_several_devices)
{
    make_runs();
    for (int n = 0; n < 4; n++) {
        char devices[64], name[16];
        snprintf(devices, sizeof devices, "distribute.devices=%s", lists[n]);
        EXPECT(0, NULL, "evaluate", "--run", "runs/run", "--json", "--set", devices);
        snprintf(name, sizeof name, "json%d", n);
        shell("mv out %s && cmp json0 %s", name, name);
    }
    ck_assert_ptr_nonnull(strstr(root_text("json3"), "phantom_004"));
}
END_TEST

/* The other cases are written. The damaged one is named, with one network or several. */
START_TEST(a_damaged_case_does_not_prevent_the_others)
{
    static const char *const runs[] = { "runs/run", "runs/run,runs/other" };

    make_runs();
    shell("truncate -s 9000 phantom/imagesTr/phantom_002.nii.gz");
    for (int n = 0; n < 8; n++) {
        char devices[64];
        snprintf(devices, sizeof devices, "distribute.devices=%s", lists[n % 4]);
        EXPECT(4, "1 of 5 cases could not be predicted, the first is 'phantom_002'", "predict",
               runs[n / 4], "phantom/imagesTr", "-o", "some", "--set", devices);
        ck_assert_ptr_nonnull(strstr(root_text("said"), "imagesTr/phantom_002.nii.gz'"));
        shell("test \"$(echo some/*_00[0-9].nii.gz)\" = \"$(echo some/*_00[0134].nii.gz)\"");
        shell("test $(ls some | wc -l) = 4 && rm -r some");
        EXPECT(4, "imagesTr/phantom_002.nii.gz'", "evaluate", "--run", "runs/run", "--json",
               "--set", devices);
        ck_assert_str_eq(root_text("out"), "");
    }
    EXPECT(4, "imagesTr/phantom_002.nii.gz'", "predict", "runs/run",
           "phantom/imagesTr/phantom_002.nii.gz", "-o", "one.nii.gz");
    ck_assert_int_ne(access(in_root("one.nii.gz"), F_OK), 0);
}
END_TEST

/* The path of the second result is a folder. */
START_TEST(an_unwritable_result_ends_a_prediction_on_any_devices)
{
    make_runs();
    shell("mkdir -p full/phantom_001.nii.gz");
    for (int n = 0; n < 4; n++) {
        char devices[64];
        snprintf(devices, sizeof devices, "distribute.devices=%s", lists[n]);
        EXPECT(1, "phantom_001.nii.gz'", "predict", "runs/run", "phantom/imagesTr", "-o", "full",
               "--set", devices);
        shell("test -f full/phantom_000.nii.gz && test ! -e full/phantom_002.nii.gz");
    }
}
END_TEST

/* Each network has another list of devices in its file. */
START_TEST(an_ensemble_uses_the_devices_of_its_first_network)
{
    make_runs();
    EXPECT(0, NULL, "train", "e.ini", "-q", "--set", "experiment.name=two", "--set",
           "distribute.devices=cpu:0,cpu:1");
    EXPECT(0, NULL, "predict", "runs/run,runs/two", "phantom/imagesTr", "-o", "a");
    EXPECT(0, NULL, "predict", "runs/two,runs/run", "phantom/imagesTr", "-o", "b");
    shell("test $(ls a | wc -l) = 5 && test $(ls b | wc -l) = 5");
    EXPECT(3, "there is no cpu:2 among 2", "predict", "runs/run", "phantom/imagesTr", "-o", "c",
           "--set", "distribute.devices=cpu:0,cpu:2");
}
END_TEST

/* ---- processes ------------------------------------------------------------------------------- */

/*
 * Run pons WORDS on 'count' ranks, which must all exit with 'code'. The output of a rank is in
 * out.RANK and said.RANK.
 */
static void run_on_ranks(int count, int code, const char *words)
{
    shell("rm -f out.* said.*; export WORLD_SIZE=%d LOCAL_WORLD_SIZE=%d MASTER_ADDR=127.0.0.1 "
          "MASTER_PORT=%d; for r in $(seq 0 %d); do (RANK=$r LOCAL_RANK=$r timeout %g %s %s "
          ">out.$r 2>said.$r; echo $? >code.$r) & done; wait", count, count, free_port(), count - 1,
          deadline_scaled(120), pons_program(), words);
    for (int r = 0; r < count; r++)
        shell("cat said.%d; test $(cat code.%d) = %d", r, r, code);
}

START_TEST(several_processes_write_the_bytes_of_one)
{
    static const char *const images[] = { "phantom/imagesTr -o", /* more cases than processes */
                                          "phantom/imagesTr/phantom_003.nii.gz -o" };
    static const char *const runs[] = { "runs/run", "runs/run,runs/other" };

    make_runs();
    for (int n = 0; n < 4; n++) {
        char words[256];
        snprintf(words, sizeof words, "predict %s %s one/ --logits --set 'window.mirror=0 2'",
                 runs[n % 2], images[n / 2]);
        shell("mkdir one && %s %s 2>said", pons_program(), words);
        for (int count = 2; count < 4; count++) {
            snprintf(words, sizeof words, "predict %s %s many/ --logits --set 'window.mirror=0 2'",
                     runs[n % 2], images[n / 2]);
            shell("mkdir many");
            run_on_ranks(count, 0, words);
            shell("diff -r one many && grep -e '->' said.0 | sed s/many/one/ | cmp - said");
            shell("test ! -s said.1 && rm -r many");
        }
        shell("rm -r one");
    }
}
END_TEST

START_TEST(several_processes_have_the_scores_of_one)
{
    make_runs();
    EXPECT(0, NULL, "evaluate", "--run", "runs/run", "--json");
    for (int count = 2; count < 6; count += 3) {
        run_on_ranks(count, 0, "evaluate --run runs/run --json");
        shell("cmp out out.0 && test ! -s out.1");
    }
}
END_TEST

START_TEST(several_processes_agree_on_damaged_cases)
{
    make_runs();
    shell("truncate -s 9000 phantom/imagesTr/phantom_002.nii.gz");
    run_on_ranks(2, 4, "predict runs/run phantom/imagesTr -o some");
    shell("grep '1 of 5 cases could not be predicted, the first is .phantom_002' said.0 said.1");
    shell("test \"$(echo some/*_00[0-9].nii.gz)\" = \"$(echo some/*_00[0134].nii.gz)\"");
    run_on_ranks(2, 4, "predict runs/run phantom/imagesTr/phantom_002.nii.gz -o one.nii.gz");
    run_on_ranks(3, 4, "evaluate --run runs/run --json");
    shell("grep imagesTr/phantom_002.nii.gz said.0 && test ! -s out.0");
    shell("mkdir -p full/phantom_001.nii.gz");
    run_on_ranks(2, 1, "predict runs/run phantom/imagesTr -o full");
    shell("grep \"'full/phantom_001.nii.gz'\" said.0 && grep \"'full/phantom_001.nii.gz'\" said.1");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("spread");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, windows_of_one_case_give_the_same_bytes_on_several_devices);
    tcase_add_test(c, several_cases_give_the_same_bytes_and_lines_on_several_devices);
    tcase_add_test(c, scores_of_a_run_are_the_same_bytes_on_several_devices);
    tcase_add_test(c, a_damaged_case_does_not_prevent_the_others);
    tcase_add_test(c, an_unwritable_result_ends_a_prediction_on_any_devices);
    tcase_add_test(c, an_ensemble_uses_the_devices_of_its_first_network);
    tcase_add_test(c, several_processes_write_the_bytes_of_one);
    tcase_add_test(c, several_processes_have_the_scores_of_one);
    tcase_add_test(c, several_processes_agree_on_damaged_cases);
    return suite_run();
}
