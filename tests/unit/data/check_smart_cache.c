/*
 * check_smart_cache.c - the cases of a smart cache epoch by epoch: their sequence, their bits for
 * any number of threads and processes, what is held, and files that are gone when they are wanted.
 */
#include "data/loader/loader.h"
#include "support/dataset_maker.h"
#include "support/process/gathering.h"
#include "support/suite.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum { CASES = 9, SIDE = 44, EPOCHS = 12, PROCESSES_MAX = 3 };

/* ---- cases ----------------------------------------------------------------------------------- */

static int written; /* number of the case that is written */

/* All voxels differ, so that a case is stored as floats. */
static double image_value(int64_t i, int64_t j, int64_t k)
{
    return (double)((i * SIDE + j) * SIDE + k) * 1.001 + written * 1000;
}

static double label_value(int64_t i, int64_t j, int64_t k)
{
    return i > 4 && j < 7 && k > 2;
}

static void write_cases(void)
{
    pons_error err = PONS_ERROR_INIT;
    char name[64];

    make_root();
    ck_assert_int_eq(folder_make(maker_path("d"), &err), PONS_OK);
    for (written = 0; written < CASES; written++) {
        snprintf(name, sizeof name, "d/case%d_image.nii", written);
        maker_volume(name, SIDE, SIDE, SIDE, image_value, 0, 16);
        snprintf(name, sizeof name, "d/case%d_label.nii", written);
        maker_volume(name, SIDE, SIDE, SIDE, label_value, 0, 2);
    }
}

static void rename_case(int number, const char *from, const char *to)
{
    ck_assert_int_eq(rename(maker_path("d/case%d_%s.nii", number, from),
                            maker_path("d/case%d_%s.nii", number, to)), 0);
}

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct plan {
    case_window window;
    int threads, processes, first_epoch;
    int64_t limit;
    cache_mode mode;
    bool nodes;                /* each process is a machine, which has the cases of its lane      */
} plan;

typedef struct bench {
    dataset *data;
    cache *held;
    loader *loader;
} bench;

/* The case and the bits of each micro-batch. */
typedef struct sequence {
    int count;
    char id[EPOCHS * CASES];
    uint64_t hash[EPOCHS * CASES];
    int64_t most;              /* largest size of the cache                                       */
} sequence;

static plan plan_of(int total, double share, double replace)
{
    return (plan){ .window = case_window_part(total, share, replace, 1), .threads = 1,
                   .processes = 1, .mode = CACHE_SMART };
}

static dataset *open_dataset(void)
{
    static const char *const labels[] = { "background:0", "organ:1" };
    const char *image[] = { maker_path("d/*_image.nii") };
    dataset_settings s = { .image = { 1, image }, .label = maker_path("d/*_label.nii"),
                           .labels = { 2, labels }, .validation = "none" };

    return maker_open(&s);
}

static void bench_open(bench *b, const plan *p, int self, const cache_peers *peers)
{
    cache_settings c = { .mode = p->mode, .threads = 2, .limit = p->limit, .window = p->window,
                         .epoch = p->first_epoch, .peers = peers, .lane = p->nodes ? self : 0,
                         .lane_count = p->nodes ? 1 : p->processes };
    loader_settings l = { .seed = 7, .extent = { 8, 8, 8 }, .per_case = 2, .batch = 1,
                          .micro_batches = p->processes, .first = self,
                          .count = peers != NULL ? 1 : p->processes,
                          .window = p->window, .threads = p->threads,
                          .step = (int64_t)p->first_epoch * p->window.count / p->processes };
    pons_error err = PONS_ERROR_INIT;

    *b = (bench){ .data = open_dataset() };
    ck_assert_msg(cache_open(b->data, NULL, p->window.total, b->data->training, &c, NULL, &b->held,
                             &err) == PONS_OK, "%s", err.text);
    ck_assert_msg(loader_open(b->held, p->window.total, b->data->training, NULL, &l, &b->loader,
                              &err) == PONS_OK, "%s", err.text);
}

static void bench_close(bench *b)
{
    loader_close(b->loader);
    cache_close(b->held);
    dataset_close(b->data);
}

static uint64_t hash_of(const loader_batch *b)
{
    uint64_t hash = (uint64_t)b->step;

    for (int n = 0; n < b->part_count; n++)
        for (size_t i = 0; i < b->part[n].size; i++)
            hash = (hash ^ ((const unsigned char *)b->part[n].data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static pons_status take_batch(bench *b, sequence *out, pons_error *err)
{
    const loader_batch *batch;
    int64_t size;

    if (loader_next(b->loader, &batch, err) != PONS_OK)
        return err->status;
    out->id[out->count] = batch->case_id[0][4];
    out->hash[out->count++] = hash_of(batch);
    size = cache_size(b->held);
    out->most = size > out->most ? size : out->most;
    return PONS_OK;
}

/* The first epochs of a single process. */
static sequence run_alone(const plan *p, int epochs)
{
    pons_error err = PONS_ERROR_INIT;
    sequence s = { 0 };
    bench b;

    bench_open(&b, p, 0, NULL);
    for (int i = 0; i < epochs * p->window.count; i++)
        ck_assert_msg(take_batch(&b, &s, &err) == PONS_OK, "%s", err.text);
    bench_close(&b);
    return s;
}

static void assert_same(const sequence *a, const sequence *b)
{
    ck_assert_int_eq(a->count, b->count);
    ck_assert_mem_eq(a->id, b->id, (size_t)a->count);
    ck_assert_mem_eq(a->hash, b->hash, (size_t)a->count * sizeof *a->hash);
}

/* Bytes of a case: floats, and a byte for the label. */
static int64_t case_bytes(void)
{
    plan p = plan_of(CASES, 1, 0);
    bench b;
    int64_t size;

    bench_open(&b, &p, 0, NULL);
    size = cache_size(b.held) / CASES;
    bench_close(&b);
    ck_assert_int_ge(size, 5 * SIDE * SIDE * SIDE);
    return size;
}

/* ---- sequence -------------------------------------------------------------------------------- */

static void assert_epochs(const plan *p, const sequence *s)
{
    for (int e = 0; e * p->window.count < s->count; e++) {
        char expected[CASES + 1] = "", found[CASES + 1] = "";

        for (int i = 0; i < p->window.count; i++) {
            int place = case_window_place(&p->window, case_window_first(&p->window, e) + i);
            expected[place] = '1';
            found[s->id[e * p->window.count + i] - '0'] = '1';
        }
        ck_assert_msg(memcmp(expected, found, CASES) == 0, "epoch %d", e);
    }
}

START_TEST(an_epoch_runs_over_the_cases_of_its_window)
{
    static const struct { int total; double share, replace; } windows[] = {
        { 5, 0.8, 0.25 }, { 9, 4.0 / 9, 0.25 }, { 9, 3.0 / 9, 1 }, { 9, 5.0 / 9, 0.5 },
        { 9, 1.0 / 9, 1 }, { 9, 1, 0.5 }
    };
    plan p = plan_of(windows[_i].total, windows[_i].share, windows[_i].replace);
    sequence s = run_alone(&p, 8);

    assert_epochs(&p, &s);
}
END_TEST

/* A limit that no case fits leaves all to be read each time. */
START_TEST(no_thread_and_no_limit_changes_a_bit)
{
    static const plan others[] = {
        { .threads = 0 }, { .threads = 3 }, { .threads = 2, .limit = 1 },
        { .threads = 1, .limit = 3 * 5 * SIDE * SIDE * SIDE + 100000 }, { .mode = CACHE_NONE }
    };
    plan p = plan_of(CASES, 4.0 / 9, 0.5), q = others[_i];
    sequence a = run_alone(&p, EPOCHS), b;

    q.window = p.window;
    q.processes = 1;
    q.mode = q.mode == CACHE_NONE && _i < 4 ? CACHE_SMART : q.mode;
    b = run_alone(&q, EPOCHS);
    assert_same(&a, &b);
    ck_assert(q.limit == 0 || b.most <= q.limit);
}
END_TEST

START_TEST(a_run_goes_on_with_the_same_cases)
{
    plan p = plan_of(CASES, 4.0 / 9, 0.5), later = p;
    sequence all = run_alone(&p, EPOCHS), rest;
    int skipped = 5 * p.window.count;

    later.first_epoch = 5;
    rest = run_alone(&later, EPOCHS - 5);
    ck_assert_mem_eq(rest.id, all.id + skipped, (size_t)rest.count);
    ck_assert_mem_eq(rest.hash, all.hash + skipped, (size_t)rest.count * sizeof *rest.hash);
}
END_TEST

/* ---- what is held ---------------------------------------------------------------------------- */

static void wait_for_size(const cache *c, int64_t size)
{
    const struct timespec pause = { .tv_nsec = 1000000 };

    for (int i = 0; i < 60000 && cache_size(c) != size; i++)
        nanosleep(&pause, NULL);
    ck_assert_int_eq(cache_size(c), size);
}

START_TEST(memory_is_that_of_the_window_and_its_replacements)
{
    plan p = plan_of(CASES, 4.0 / 9, 0.5);
    int64_t one = case_bytes();
    sequence s = run_alone(&p, EPOCHS);

    ck_assert_int_le(s.most, one * (p.window.count + p.window.replaced));
    ck_assert_int_ge(s.most, one * p.window.count);
}
END_TEST

/* The next epoch's cases are held before it begins, so their files may be gone. */
START_TEST(replacements_are_ready_before_their_epoch)
{
    plan p = plan_of(CASES, 4.0 / 9, 0.5); /* 0 1 2 3, then 2 3 4 5, then 4 5 6 7 */
    int64_t one = case_bytes();
    pons_error err = PONS_ERROR_INIT;
    sequence s = { 0 };
    bench b;

    bench_open(&b, &p, 0, NULL);
    wait_for_size(b.held, 6 * one);
    for (int n = 0; n < 6; n++)
        rename_case(n, "image", "gone");
    for (int i = 0; i < 2 * p.window.count; i++)
        ck_assert_msg(take_batch(&b, &s, &err) == PONS_OK, "%s", err.text);
    bench_close(&b);
    for (int n = 0; n < 6; n++)
        rename_case(n, "gone", "image");
    assert_epochs(&p, &s);
}
END_TEST

/* The step that needs the case fails, at the same place for any number of threads. */
START_TEST(a_case_damaged_meanwhile_ends_its_first_step)
{
    plan p = plan_of(CASES, 4.0 / 9, 0.5);
    sequence whole = run_alone(&p, 3), s = { 0 };
    pons_error err = PONS_ERROR_INIT;
    bench b;
    int wanted = 0;

    while (whole.id[wanted] != '7')
        wanted++;
    p.threads = _i;
    bench_open(&b, &p, 0, NULL);
    maker_text("d/case7_image.nii", "no volume");
    while (take_batch(&b, &s, &err) == PONS_OK)
        ck_assert_int_lt(s.count, whole.count);
    bench_close(&b);
    ck_assert_int_eq(s.count, wanted);
    ck_assert_int_eq(err.status, PONS_DATA);
    ck_assert_msg(strstr(err.text, "case7") != NULL, "%s", err.text);
    ck_assert_ptr_null(strchr(err.text, '\n'));
}
END_TEST

/* ---- processes ------------------------------------------------------------------------------- */

typedef struct shared {
    gathering meeting;
    sequence seen[PROCESSES_MAX];
    pons_error err[PROCESSES_MAX];
    int64_t blocks;            /* of the memory files of all processes after the last step        */
} shared;

static shared *all;

/* Bytes of the memory files that this process has open: those of all processes. */
static int64_t memory_files(void)
{
    int64_t bytes = 0;

    for (int fd = 0; fd < 256; fd++) {
        char path[64], target[64] = "";
        struct stat s;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof target - 1) > 0
            && strncmp(target, "/memfd:pons cache", 17) == 0 && fstat(fd, &s) == 0)
            bytes += 512 * (int64_t)s.st_blocks;
    }
    return bytes;
}

/* Steps are taken together, as gradients are summed after each. */
static void run_process(const plan *p, int self, int steps, int damaged_at)
{
    gathering_member me = { &all->meeting, self };
    cache_peers peers = { self, p->processes, gathering_all_gather, NULL, &me };
    bool failed = false;
    bench b;

    bench_open(&b, p, self, &peers);
    for (int i = 0; i < steps; i++) {
        if (i == damaged_at && self == 0)
            maker_text("d/case7_image.nii", "no volume");
        gathering_wait(&all->meeting);
        failed = failed || take_batch(&b, &all->seen[self], &all->err[self]) != PONS_OK;
        gathering_wait(&all->meeting);
    }
    for (int i = 0; i < 60; i++) { /* others free what this process has passed */
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
        if (self == 0)
            all->blocks = memory_files();
    }
    gathering_wait(&all->meeting);
    bench_close(&b);
}

static void run_together(const plan *p, int steps, int damaged_at)
{
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(all != MAP_FAILED);
    gathering_init(&all->meeting, p->processes);
    for (int n = 0; n < p->processes; n++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            run_process(p, n, steps, damaged_at);
            _exit(0);
        }
    }
    for (int n = 0; n < p->processes; n++) {
        int status;
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
}

/* Micro-batch m of each step is that of process m. */
START_TEST(processes_read_the_cases_of_a_single_one)
{
    static const struct { double share, replace; } windows[] = {
        { 4.0 / 9, 0.5 }, { 3.0 / 9, 1 }, { 6.0 / 9, 0.3 }, { 2.0 / 9, 1 }
    };
    plan p = plan_of(CASES, windows[_i / 2].share, windows[_i / 2].replace), one = p;
    int steps;
    sequence alone;

    p.processes = 2 + _i % 2;
    steps = EPOCHS * p.window.count / p.processes;
    alone = run_alone(&one, EPOCHS);
    run_together(&p, steps, -1);
    for (int r = 0; r < p.processes; r++) {
        ck_assert_msg(all->err[r].status == PONS_OK, "%s", all->err[r].text);
        ck_assert_int_eq(all->seen[r].count, steps);
        for (int i = 0; i < steps; i++)
            ck_assert_int_eq(all->seen[r].id[i], alone.id[i * p.processes + r]);
    }
    munmap(all, sizeof *all);
}
END_TEST

/*
 * A single process that computes all micro-batches reads the same cases in all lanes.
 * A process that is a machine holds its lane alone.
 */
START_TEST(lanes_are_read_by_their_process)
{
    static const int totals[] = { 9, 8, 7, 6 };
    plan p = { .window = case_window_part(totals[_i / 2], 0.5, 0.4, 2), .threads = 1,
               .processes = 2, .mode = CACHE_SMART, .nodes = _i % 2 };
    int64_t one = case_bytes();
    sequence alone;
    plan single = p;

    single.nodes = false;
    alone = run_alone(&single, EPOCHS);
    run_together(&p, EPOCHS * p.window.count / 2, -1);
    for (int r = 0; r < p.processes; r++) {
        const sequence *s = &all->seen[r];

        ck_assert_msg(all->err[r].status == PONS_OK, "%s", all->err[r].text);
        for (int i = 0; i < s->count; i++) {
            ck_assert_int_eq(s->id[i], alone.id[2 * i + r]);
            ck_assert_uint_eq(s->hash[i], alone.hash[2 * i + r]);
        }
        ck_assert(!p.nodes || s->most <= one * (p.window.count + p.window.replaced + 1) / 2);
    }
    munmap(all, sizeof *all);
}
END_TEST

START_TEST(processes_hold_one_copy_of_the_window)
{
    plan p = plan_of(CASES, 4.0 / 9, 0.5);
    int64_t one = case_bytes(), boards = PROCESSES_MAX * 65536;

    p.processes = PROCESSES_MAX;
    run_together(&p, EPOCHS * p.window.count / p.processes, -1);
    ck_assert_int_ge(all->blocks, one * p.window.count);
    ck_assert_int_le(all->blocks,
                     (one + 8192) * (p.window.count + p.window.replaced) + boards);
    munmap(all, sizeof *all);
}
END_TEST

START_TEST(a_damaged_case_fails_in_the_process_that_wants_it)
{
    plan p = plan_of(CASES, 4.0 / 9, 0.5);
    int failures = 0;

    p.processes = 2;
    run_together(&p, 3 * p.window.count / p.processes, 0);
    for (int r = 0; r < p.processes; r++) {
        failures += all->err[r].status == PONS_DATA;
        ck_assert(all->err[r].status == PONS_OK || strstr(all->err[r].text, "case7") != NULL);
    }
    ck_assert_int_eq(failures, 1);
    munmap(all, sizeof *all);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("smart_cache");

    tcase_add_checked_fixture(c, write_cases, NULL);
    tcase_add_loop_test(c, an_epoch_runs_over_the_cases_of_its_window, 0, 6);
    tcase_add_loop_test(c, no_thread_and_no_limit_changes_a_bit, 0, 5);
    tcase_add_test(c, a_run_goes_on_with_the_same_cases);
    tcase_add_test(c, memory_is_that_of_the_window_and_its_replacements);
    tcase_add_test(c, replacements_are_ready_before_their_epoch);
    tcase_add_loop_test(c, a_case_damaged_meanwhile_ends_its_first_step, 0, 3);
    tcase_add_loop_test(c, processes_read_the_cases_of_a_single_one, 0, 8);
    tcase_add_loop_test(c, lanes_are_read_by_their_process, 0, 8);
    tcase_add_test(c, processes_hold_one_copy_of_the_window);
    tcase_add_test(c, a_damaged_case_fails_in_the_process_that_wants_it);
    return suite_run();
}
