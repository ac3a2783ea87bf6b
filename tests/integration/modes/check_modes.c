/*
 * check_modes.c - the contract of the modes (R3) through the program. The same micro-batches on one
 * replica and divided among replicas of a process give the same weights and metrics.
 */
#include <config.h>

#include "support/run/run_modes.h"
#include "support/suite.h"

typedef struct split {
    const char *name, *devices, *accumulate;
} split;

static void train_split(const split *s, const char *deterministic)
{
    char name[64], devices[128], accumulate[64], exact[64];

    snprintf(name, sizeof name, "experiment.name=%s", s->name);
    snprintf(devices, sizeof devices, "distribute.devices=%s", s->devices);
    snprintf(accumulate, sizeof accumulate, "train.accumulate=%s", s->accumulate);
    snprintf(exact, sizeof exact, "experiment.deterministic=%s", deterministic);
    EXPECT(0, NULL, "train", "e.ini", "--set", name, "--set", devices, "--set", accumulate, "--set",
           exact);
}

START_TEST(four_micro_batches_give_the_same_bits_on_one_two_and_four_replicas)
{
    static const split splits[] = {
        { "one", "cpu", "4" }, { "two", "cpu:0,cpu:1", "2" }, { "four", "cpu:0,1,2,3", "1" },
        { "twice", "cpu:0,cpu:0", "2" }
    };

    make_experiment();
    for (int i = 0; i < 4; i++)
        train_split(&splits[i], "yes");
    for (int i = 1; i < 4; i++)
        same_run("one", splits[i].name);
    remove_root();
}
END_TEST

START_TEST(three_micro_batches_give_the_same_bits_on_one_and_three_replicas)
{
    static const split splits[] = { { "one", "cpu", "3" }, { "three", "cpu:0,1,2", "1" } };

    make_experiment();
    for (int i = 0; i < 2; i++)
        train_split(&splits[i], "yes");
    same_run("one", "three");
    remove_root();
}
END_TEST

START_TEST(another_number_of_micro_batches_is_noticed)
{
    static const split splits[] = { { "four", "cpu", "4" }, { "three", "cpu:0,1,2", "1" } };

    make_experiment();
    for (int i = 0; i < 2; i++)
        train_split(&splits[i], "yes");
    ck_assert(!same_file("four", "three", "model.safetensors"));
    remove_root();
}
END_TEST

START_TEST(a_run_continues_with_another_number_of_replicas)
{
    static const split one = { "one", "cpu", "4" };
    static const split second = { "moved", "cpu:0,1", "2" };

    make_experiment();
    train_split(&one, "yes");
    EXPECT(0, NULL, "train", "e.ini", "--set", "experiment.name=moved", "--set",
           "distribute.devices=cpu:0,1,2,3", "--set", "experiment.deterministic=yes", "--set",
           "train.steps=10");
    train_split(&second, "yes");
    same_run("one", "moved");
    remove_root();
}
END_TEST

START_TEST(invalid_device_lists_are_refused)
{
    make_experiment();
    EXPECT(3, "mode = single has one device, but devices = 'cpu:0,cpu:1' lists 2", "train", "e.ini",
           "--set", "distribute.mode=single", "--set", "distribute.devices=cpu:0,cpu:1");
    EXPECT(3, "there is no cpu:2 among 2 equal shares", "train", "e.ini", "--set",
           "distribute.devices=cpu:0,cpu:2");
    EXPECT(3, "devices of two kinds", "train", "e.ini", "--set", "distribute.devices=cpu:0,gpu:1");
    EXPECT(3, "no number follows a colon", "train", "e.ini", "--set", "distribute.devices=cpu:");
    EXPECT(3, "behind a colon comes a number from 0 to 65535, behind a comma the next one", "train",
           "e.ini", "--set", "distribute.devices=cpu:0-1");
    EXPECT(3, "an item is empty", "train", "e.ini", "--set", "distribute.devices=cpu:0,");
    EXPECT(3, "needs a power of two of micro-batches for each, found 3", "train", "e.ini", "--set",
           "distribute.devices=cpu:0,cpu:1", "--set", "train.accumulate=3", "--set",
           "experiment.deterministic=yes");
    EXPECT(3, "micro_batches 3 cannot be shared out among 2 replicas", "train", "e.ini", "--set",
           "distribute.devices=cpu:0,cpu:1", "--set", "train.micro_batches=3");
    EXPECT(3, "micro_batches 4 differs from accumulate 1 with 2 replicas\nhint: --set "
           "train.accumulate=2", "train", "e.ini", "--set", "distribute.devices=cpu:0,cpu:1",
           "--set", "train.micro_batches=4", "--set", "train.accumulate=1");
    remove_root();
}
END_TEST

START_TEST(a_fixed_number_of_micro_batches_gives_the_same_run_on_other_devices)
{
    make_experiment();
    EXPECT(0, NULL, "train", "e.ini", "--set", "experiment.name=one", "--set",
           "train.micro_batches=4", "--set", "train.steps=20");
    EXPECT(0, NULL, "train", "e.ini", "--set", "experiment.name=two", "--set",
           "train.micro_batches=4", "--set", "distribute.devices=cpu:0,cpu:1");
    same_metric("one", "two", "loss", 1e-5);
    remove_root();
}
END_TEST

/*
 * Two replicas of a case each, with joined statistics and losses, are one replica with two cases in
 * a micro-batch. All numbers agree without dropout and augmentation, whose keys contain the number
 * of the micro-batch.
 */
START_TEST(replicas_with_joined_statistics_equal_one_with_a_larger_batch)
{
    static const char *const splits[][3] = {
        { "one", "cpu", "no" }, { "two", "cpu:0,cpu:1", "yes" }, { "apart", "cpu:0,cpu:1", "no" }
    };
    double one[64], apart[64];

    make_experiment();
    for (int i = 0; i < 3; i++) {
        char name[64], devices[64], batch[64], norms[64], loss[64];
        snprintf(name, sizeof name, "experiment.name=%s", splits[i][0]);
        snprintf(devices, sizeof devices, "distribute.devices=%s", splits[i][1]);
        snprintf(batch, sizeof batch, "train.batch=%d", i == 0 ? 2 : 1);
        snprintf(norms, sizeof norms, "distribute.sync_batchnorm=%s", splits[i][2]);
        snprintf(loss, sizeof loss, "loss.sync=%s", splits[i][2]);
        EXPECT(0, NULL, "train", "e.ini", "--set", name, "--set", devices, "--set", batch, "--set",
               norms, "--set", loss, "--set", "loss.batch=yes", "--set", "model.dropout=0",
               "--set", "augment.flip.probability=0", "--set",
               "augment.scale_intensity.probability=0", "--set",
               "augment.gaussian_noise.probability=0");
    }
    same_metric("one", "two", "loss", 1e-5);
    same_metric("one", "two", "grad_norm", 1e-3);
    ck_assert_int_eq(read_metrics("one", "loss", one, 64), 20);
    ck_assert_int_eq(read_metrics("apart", "loss", apart, 64), 20);
    ck_assert_double_gt(fabs(one[0] - apart[0]), 1e-4 * one[0]);
    remove_root();
}
END_TEST

START_TEST(the_size_of_buckets_changes_no_bit)
{
    static const char *const sizes[] = { "distribute.bucket=4KiB", "distribute.bucket=1",
                                         "distribute.bucket=1GiB" };
    static const char *const names[] = { "some", "most", "fewest" };

    make_experiment();
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "experiment.name=%s", names[i]);
        EXPECT(0, NULL, "train", "e.ini", "--set", name, "--set", sizes[i], "--set",
               "distribute.devices=cpu:0,cpu:1", "--set", "experiment.deterministic=yes");
    }
    same_run("some", "most");
    same_run("some", "fewest");
    EXPECT(3, "[distribute] bucket", "train", "e.ini", "--set", "distribute.bucket=0");
    remove_root();
}
END_TEST

/* The factor is M = 4 or its root, whether the micro-batches run in parallel or in sequence. */
START_TEST(the_learning_rate_scales_with_the_micro_batches_of_a_step)
{
    static const struct { const char *scaling, *devices; double rate; } cases[] = {
        { "none", "cpu", 1e-2 }, { "linear", "cpu", 4e-2 }, { "sqrt", "cpu", 2e-2 },
        { "linear", "cpu:0,cpu:1", 4e-2 }, { "sqrt", "cpu:0,cpu:1", 2e-2 }
    };

    make_experiment();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[64], named[96], scaling[64], devices[64];
        double rate[8];
        snprintf(name, sizeof name, "run%zu", i);
        snprintf(scaling, sizeof scaling, "distribute.lr_scaling=%s", cases[i].scaling);
        snprintf(devices, sizeof devices, "distribute.devices=%s", cases[i].devices);
        snprintf(named, sizeof named, "experiment.name=%s", name);
        EXPECT(0, NULL, "train", "e.ini", "--set", named, "--set", scaling, "--set", devices,
               "--set", "train.micro_batches=4", "--set", "train.steps=1", "--set",
               "train.validate_steps=0", "--set", "train.validate_every=0");
        ck_assert_int_eq(read_metrics(name, "lr", rate, 8), 1);
        ck_assert_double_eq_tol(rate[0], cases[i].rate, 1e-12);
    }
    remove_root();
}
END_TEST

START_TEST(joining_without_effect_is_reported)
{
    make_experiment();
    EXPECT(0, "sync_batchnorm = yes changes nothing: the network has no batch norm", "train",
           "e.ini", "--set", "model.norm=instance", "--set", "distribute.sync_batchnorm=yes",
           "--set", "distribute.devices=cpu:0,cpu:1", "--set", "train.steps=1");
    EXPECT(0, "sync = yes changes nothing: the loss is a mean over cases", "train", "e.ini",
           "--set", "experiment.name=second", "--set", "loss.sync=yes", "--set",
           "distribute.devices=cpu:0,cpu:1", "--set", "train.steps=1");
    remove_root();
}
END_TEST

START_TEST(joining_needs_one_micro_batch_for_each_replica)
{
    static const char *const keys[] = { "distribute.sync_batchnorm=yes", "loss.sync=yes" };

    make_experiment();
    for (int i = 0; i < 2; i++) {
        EXPECT(3, "= yes joins the micro-batches that run at the same time, but each replica "
               "runs 2", "train", "e.ini", "--set", keys[i], "--set", "train.accumulate=2");
        EXPECT(3, "runs 3 of a step one after another", "train", "e.ini", "--set", keys[i], "--set",
               "train.micro_batches=6", "--set", "distribute.devices=cpu:0,cpu:1");
    }
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("modes");

    tcase_add_test(c, four_micro_batches_give_the_same_bits_on_one_two_and_four_replicas);
    tcase_add_test(c, three_micro_batches_give_the_same_bits_on_one_and_three_replicas);
    tcase_add_test(c, another_number_of_micro_batches_is_noticed);
    tcase_add_test(c, a_run_continues_with_another_number_of_replicas);
    tcase_add_test(c, invalid_device_lists_are_refused);
    tcase_add_test(c, a_fixed_number_of_micro_batches_gives_the_same_run_on_other_devices);
    tcase_add_test(c, replicas_with_joined_statistics_equal_one_with_a_larger_batch);
    tcase_add_test(c, the_size_of_buckets_changes_no_bit);
    tcase_add_test(c, the_learning_rate_scales_with_the_micro_batches_of_a_step);
    tcase_add_test(c, joining_without_effect_is_reported);
    tcase_add_test(c, joining_needs_one_micro_batch_for_each_replica);
    return suite_run();
}
