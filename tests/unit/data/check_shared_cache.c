/*
 * check_shared_cache.c - one cache for all processes of a machine: its memory, the reads of each
 * process, limits, failures, and the state after kills. Processes that do not know of each other
 * are the control.
 */
#include "support/dataset_maker.h"
#include "support/process/gathering.h"
#include "support/process/process_state.h"
#include "support/suite.h"

#include "data/cache/case_hash.h"
#include "data/case/case_read.h"
#include "data/loader/loader.h"

#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* The memory of a sanitizer grows with the memory that a process touches. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool counts_are_ours = false;
#else
static const bool counts_are_ours = true;
#endif

enum { CASES = 5, SIDE = 72, PROCESSES_MAX = GATHERING_PROCESSES };

static const char plain[] = "[preprocess]\nsteps = scale_range\n"
                            "[preprocess.scale_range]\nfrom = 0 4000\n";

/* Almost all voxels differ, so that a case is stored as floats. */
static double image_value(int64_t i, int64_t j, int64_t k)
{
    return (double)(i * 331 + j * 17 * j + k * k * 5) * 1.001 - 40;
}

static double label_value(int64_t i, int64_t j, int64_t k)
{
    return i > 4 && j < 7 && k > 2;
}

static void write_cases(void)
{
    pons_error err = PONS_ERROR_INIT;
    char name[64];

    ck_assert_int_eq(folder_make(maker_path("d"), &err), PONS_OK);
    for (int n = 0; n < CASES; n++) {
        snprintf(name, sizeof name, "d/case%d_image.nii", n);
        maker_volume(name, SIDE, SIDE + n, SIDE, image_value, 0, 16);
        snprintf(name, sizeof name, "d/case%d_label.nii", n);
        maker_volume(name, SIDE, SIDE + n, SIDE, label_value, 0, 2);
    }
}

static void setup(void)
{
    make_root();
    write_cases();
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Each process writes its observations, and the test reads them. */
typedef struct seen {
    pons_error err;
    int held, failures;        /* calls of note_failure                                           */
    int64_t size, pss, bytes_read;
    bool same[CASES], kept[CASES];
    unsigned long inode[CASES]; /* file that each case is mapped from                             */
    char said[4096], failure[sizeof ((pons_error *)NULL)->text];
} seen;

/* Shared memory of the test and its processes. */
typedef struct shared {
    gathering meeting;
    seen process[PROCESSES_MAX];
} shared;

static shared *all;

/* Settings of a run; the processes of the control do not know of each other. */
typedef struct plan {
    int processes;
    bool alone;
    cache_mode mode;
    int64_t limit;
    rlim_t file_size[PROCESSES_MAX]; /* limit of files and shared memory; 0: none                 */
    const char *steps;
    void (*then)(cache *c, int self);
} plan;

static void note_failure(void *context, const pons_error *failure)
{
    const gathering_member *m = context;
    seen *s = &all->process[m->self];

    s->failures++;
    snprintf(s->failure, sizeof s->failure, "%s", failure->text);
}

static int64_t memory_share(void)
{
    malloc_trim(0);
    return 1024 * process_number("/proc/self/smaps_rollup", "Pss:");
}

/* Inode of the file that is mapped at an address; 0: memory without a file. */
static unsigned long mapped_inode(const void *at)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[4096];
    unsigned long begin, end, inode, found = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &begin, &end, &inode) == 3
            && (uintptr_t)at >= begin && (uintptr_t)at < end)
            found = inode;
    if (file != NULL)
        fclose(file);
    return found;
}

typedef struct opened {
    config *ini;
    dataset *data;
    pipeline *chain;
    cache *held;
} opened;

static pons_status open_data(opened *o, const char *steps, int self, pons_error *err)
{
    static const char *const labels[] = { "background:0", "organ:1" };
    const char *image[] = { maker_path("d/*_image.nii") };
    dataset_settings data = { .image = { 1, image }, .label = maker_path("d/*_label.nii"),
                              .labels = { 2, labels }, .validation = "none" };
    const char *path = maker_path("%d.ini", self);
    FILE *file = fopen(path, "w");

    fputs(steps, file);
    fclose(file);
    if (config_open(path, 0, NULL, &o->ini, err) == PONS_OK
        && pipeline_open(o->ini, "preprocess", false, 1, &o->chain, err) == PONS_OK)
        dataset_open(&data, &o->data, err);
    return err->status;
}

static pons_status open_cache(opened *o, const plan *p, int self, pons_error *err)
{
    seen *s = &all->process[self];
    gathering_member me = { &all->meeting, self };
    cache_peers peers = { self, p->processes, gathering_all_gather, note_failure, &me };
    cache_settings settings = { .mode = p->mode, .threads = 2, .limit = p->limit,
                                .folder = maker_path("kept"), .sampling = SAMPLING_BALANCED,
                                .background_above = 0.1, .peers = p->alone ? NULL : &peers };
    struct rlimit room = { p->file_size[self], RLIM_INFINITY };
    FILE *stream = fmemopen(s->said, sizeof s->said, "w");
    logger l = { .terminal = stream, .level = LOG_NORMAL };

    signal(SIGXFSZ, SIG_IGN);
    if (p->file_size[self] > 0)
        setrlimit(RLIMIT_FSIZE, &room);
    cache_open(o->data, o->chain, CASES, o->data->training, &settings, &l, &o->held, err);
    fclose(stream);
    return err->status;
}

/* Read every byte of a case and record its inode. */
static void read_all_cases(cache *c, int rank, seen *s)
{
    pons_error err = PONS_ERROR_INIT;
    cache_pin hold;
    volatile char sum = 0;

    if (cache_pin_begin(c, rank, &hold, &err) != PONS_OK)
        return;
    s->kept[rank] = hold.packed != &hold.own;
    s->inode[rank] = mapped_inode(hold.packed->codes);
    for (int64_t i = 0; s->kept[rank] && i < pons_volume_count(&hold.packed->image); i++)
        sum += (char)packed_case_value(hold.packed, i) + (char)hold.packed->target[i];
    cache_pin_end(&hold);
}

/* All processes know the content hash of the case's files, whichever process read them. */
static bool is_true_source(const opened *o, int rank)
{
    const hash128 told = cache_case_hash(o->held, rank);
    pons_error err = PONS_ERROR_INIT;
    hash128 own;

    return case_hash(&o->data->cases[rank], &own, &err) == PONS_OK
        && memcmp(&own, &told, sizeof own) == 0;
}

/* The case of the cache equals the case that is preprocessed without a cache. */
static bool is_true_case(const opened *o, int rank)
{
    pons_error err = PONS_ERROR_INIT;
    pons_case one, again;
    bool same;

    if (cache_read(o->held, rank, &one, &err) != PONS_OK
        || case_read(o->data, rank, &again, &err) != PONS_OK
        || pipeline_apply(o->chain, PIPELINE_ALL, &again, NULL, &err) != PONS_OK)
        return false;
    same = memcmp(one.image.extent, again.image.extent, sizeof one.image.extent) == 0
        && memcmp(one.image.voxels, again.image.voxels, pons_volume_size(&one.image)) == 0
        && memcmp(one.label.voxels, again.label.voxels, pons_volume_size(&one.label)) == 0;
    case_clear(&one);
    case_clear(&again);
    return same;
}

static void run_process(const plan *p, int self)
{
    seen *s = &all->process[self];
    opened o = { NULL };
    int64_t before, read;

    mallopt(M_MMAP_THRESHOLD, 64 * 1024); /* freed memory leaves the process */
    if (open_data(&o, p->steps, self, &s->err) != PONS_OK)
        return;
    before = memory_share();
    read = process_number("/proc/self/io", "rchar:");
    gathering_wait(&all->meeting);
    if (open_cache(&o, p, self, &s->err) != PONS_OK)
        return;
    s->bytes_read = process_number("/proc/self/io", "rchar:") - read;
    s->held = maker_cases_held(o.held);
    s->size = cache_size(o.held);
    for (int n = 0; n < CASES; n++)
        read_all_cases(o.held, n, s);
    gathering_wait(&all->meeting);
    s->pss = memory_share() - before;
    gathering_wait(&all->meeting);
    if (p->then != NULL)
        p->then(o.held, self);
    for (int n = 0; n < CASES; n++)
        s->same[n] = is_true_case(&o, n) && is_true_source(&o, n);
    cache_close(o.held);
    pipeline_close(o.chain);
    dataset_close(o.data);
    config_close(o.ini);
}

static void make_shared(int processes)
{
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(all != MAP_FAILED);
    gathering_init(&all->meeting, processes);
}

/* All processes begin and end by themselves; the result counts those that a signal ended. */
static int run_plan(const plan *p)
{
    plan given = *p;
    int killed = 0;

    given.steps = p->steps != NULL ? p->steps : plain;
    make_shared(p->processes);
    for (int n = 0; n < p->processes; n++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            run_process(&given, n);
            _exit(0);
        }
    }
    for (int n = 0; n < p->processes; n++) {
        int status;
        ck_assert_int_gt(wait(&status), 0);
        killed += WIFSIGNALED(status) != 0;
    }
    return killed;
}

static void expect_true_cases(const plan *p)
{
    for (int r = 0; r < p->processes; r++) {
        const seen *s = &all->process[r];
        ck_assert_msg(s->err.status == PONS_OK, "%s", s->err.text);
        for (int n = 0; n < CASES; n++)
            ck_assert_msg(s->same[n], "case %d of process %d", n, r);
    }
}

static int count_in(const char *text, const char *phrase)
{
    int count = 0;

    for (const char *p = text; (p = strstr(p, phrase)) != NULL; p += strlen(phrase))
        count++;
    return count;
}

#define END() munmap(all, sizeof *all)

/* ---- once ------------------------------------------------------------------------------------ */

typedef struct sums {
    double pss, bytes_read, size;
} sums;

static sums sum_of(const plan *p)
{
    sums s = { 0 };

    ck_assert_int_eq(run_plan(p), 0);
    expect_true_cases(p);
    for (int r = 0; r < p->processes; r++) {
        ck_assert_int_eq(all->process[r].held, CASES);
        s.pss += (double)all->process[r].pss;
        s.bytes_read += (double)all->process[r].bytes_read;
    }
    s.size = (double)all->process[0].size;
    END();
    return s;
}

/* Threads and allocator of a process may take half a megabyte. */
static bool is_once(const sums *s, int processes)
{
    return s->pss < 1.02 * s->size + 512 * 1024.0 * processes;
}

START_TEST(memory_holds_each_case_once_for_all_processes)
{
    static const int counts[] = { 1, 2, 4 };
    plan p = { .processes = counts[_i], .mode = CACHE_MEMORY };
    plan control = { .processes = counts[_i], .mode = CACHE_MEMORY, .alone = true };
    sums found = sum_of(&p), many = sum_of(&control);

    printf("%d processes: %.1f MB of cases; %.1f MB in memory, %.1f MB when each has its own\n",
           counts[_i], 1e-6 * found.size, 1e-6 * found.pss, 1e-6 * many.pss);
    if (!suite_has("memory_holds_each_case_once_for_all_processes", counts_are_ours,
                   "no sanitizer"))
        return;
    ck_assert_double_gt(found.pss, 0.98 * found.size);
    ck_assert(is_once(&found, counts[_i]));
    ck_assert_double_gt(many.pss, 0.98 * found.size * counts[_i]);
    ck_assert(counts[_i] == 1 || !is_once(&many, counts[_i]));
}
END_TEST

/* Besides the cases' files a process reads little: its own files and a few lines of /proc. */
START_TEST(each_case_is_read_once)
{
    static const cache_mode modes[] = { CACHE_MEMORY, CACHE_NONE, CACHE_DISK };
    static const double little = 256 * 1024;
    plan one = { .processes = 1, .mode = modes[_i] };
    plan four = { .processes = 4, .mode = modes[_i] };
    plan control = { .processes = 4, .mode = modes[_i], .alone = true };
    const plan *const plans[] = { &one, &four, &control };
    double read[3];

    for (int n = 0; n < 3; n++) {
        shell("rm -rf kept");
        ck_assert_int_eq(run_plan(plans[n]), 0);
        expect_true_cases(plans[n]);
        read[n] = 0;
        for (int r = 0; r < plans[n]->processes; r++)
            read[n] += (double)all->process[r].bytes_read;
        END();
    }
    if (!suite_has("each_case_is_read_once", read[0] > 0, "counts of what a process reads"))
        return;
    ck_assert_double_gt(read[0], 5.0 * CASES * SIDE * SIDE * SIDE);
    ck_assert_double_lt(read[1], read[0] + little);
    ck_assert_double_gt(read[2], 1.5 * read[0]); /* on disk all read again */
}
END_TEST

START_TEST(on_disk_all_processes_map_the_same_files)
{
    plan p = { .processes = 4, .mode = CACHE_DISK };

    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(run_plan(&p), 0);
        expect_true_cases(&p);
        for (int n = 0; n < CASES; n++) {
            ck_assert_uint_ne(all->process[0].inode[n], 0);
            for (int r = 0; r < p.processes; r++)
                ck_assert_uint_eq(all->process[r].inode[n], all->process[0].inode[n]);
        }
        const char *before = round == 0 ? ", 0 of them from before" : ", 5 of them from before";
        for (int r = 0; r < p.processes; r++)
            ck_assert_ptr_nonnull(strstr(all->process[r].said, before));
        END();
    }
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

START_TEST(the_shared_cache_limit_holds_for_the_machine)
{
    static const cache_mode modes[] = { CACHE_MEMORY, CACHE_DISK };
    plan p = { .processes = 4, .mode = modes[_i], .limit = 11 * SIDE * SIDE * SIDE };

    ck_assert_int_eq(run_plan(&p), 0);
    expect_true_cases(&p);
    for (int r = 0; r < p.processes; r++) {
        const seen *s = &all->process[r];
        ck_assert_int_ge(s->held, 1);
        ck_assert_int_le(s->held, 2); /* a voxel takes 5 bytes */
        ck_assert_int_le(s->size, p.limit);
        ck_assert_mem_eq(s->kept, all->process[0].kept, sizeof s->kept);
    }
    END();
}
END_TEST

START_TEST(without_memory_cases_are_read_each_time_with_one_warning)
{
    plan p = { .processes = 3, .mode = CACHE_MEMORY };
    int held;

    for (int r = 0; r < p.processes; r++)
        p.file_size[r] = 8 * SIDE * SIDE * SIDE; /* capacity of one case each */
    ck_assert_int_eq(run_plan(&p), 0);
    expect_true_cases(&p);
    held = all->process[0].held;
    ck_assert_int_ge(held, 1);
    ck_assert_int_le(held, p.processes);
    for (int r = 0; r < p.processes; r++) {
        const seen *s = &all->process[r];
        ck_assert_int_eq(s->held, held);
        ck_assert_msg(count_in(s->said, "cannot be kept, and are read each time: no memory to "
                               "share: File too large") == 1, "%s", s->said);
    }
    END();
}
END_TEST

START_TEST(a_process_that_cannot_share_keeps_its_own_cache)
{
    plan p = { .processes = 3, .mode = CACHE_MEMORY, .file_size = { 0, 1, 0 } };
    int lines = 0;

    ck_assert_int_eq(run_plan(&p), 0);
    expect_true_cases(&p);
    for (int r = 0; r < p.processes; r++) {
        ck_assert_int_eq(all->process[r].held, CASES);
        ck_assert_uint_eq(all->process[r].inode[0], 0);
        lines += count_in(all->process[r].said, "cannot map each other's memory");
    }
    ck_assert_int_eq(lines, 1);
    END();
}
END_TEST

/* ---- failures and warnings ------------------------------------------------------------------- */

START_TEST(the_first_failure_is_reported_by_all_processes)
{
    plan p = { .processes = 4, .mode = CACHE_MEMORY };

    for (int n = 1; n < CASES; n++)
        ck_assert_int_eq(truncate(maker_path("d/case%d_image.nii", n), 1000), 0);
    ck_assert_int_eq(run_plan(&p), 0);
    for (int r = 0; r < p.processes; r++) {
        const seen *s = &all->process[r];
        ck_assert_int_eq(s->err.status, PONS_DATA);
        ck_assert_msg(strstr(s->err.text, "case1_image.nii") != NULL, "%s", s->err.text);
        ck_assert_int_eq(s->failures, 1);
        ck_assert_str_eq(s->failure, s->err.text);
    }
    END();
}
END_TEST

START_TEST(warnings_come_in_order_and_once)
{
    plan p = { .processes = 3, .mode = CACHE_MEMORY, .steps = "[preprocess]\n"
               "steps = crop_foreground\n[preprocess.crop_foreground]\nabove = 1e8\n" };

    ck_assert_int_eq(run_plan(&p), 0);
    expect_true_cases(&p);
    for (int r = 0; r < p.processes; r++) {
        const char *at = all->process[r].said;
        for (int n = 0; n < CASES; n++) {
            char phrase[64];
            snprintf(phrase, sizeof phrase, "case 'case%d': crop_foreground found no voxel", n);
            ck_assert_msg(count_in(at, phrase) == 1, "%s", all->process[r].said);
            at = strstr(at, phrase);
        }
    }
    END();
}
END_TEST

/* ---- killed ---------------------------------------------------------------------------------- */

static int count_files(const char *folder)
{
    DIR *list = opendir(folder);
    int count = 0;

    while (list != NULL && readdir(list) != NULL)
        count++;
    if (list != NULL)
        closedir(list);
    return count;
}

static void die_first(cache *c, int self)
{
    if (self == 0)
        kill(getpid(), SIGKILL);
}

START_TEST(a_killed_process_leaves_the_cases_to_the_others)
{
    plan p = { .processes = 3, .mode = CACHE_MEMORY, .then = die_first };

    ck_assert_int_eq(run_plan(&p), 1);
    for (int r = 1; r < p.processes; r++)
        for (int n = 0; n < CASES; n++)
            ck_assert(all->process[r].kept[n] && all->process[r].same[n]);
    END();
}
END_TEST

/* The count includes all names under the root: memory without a name ends with its processes. */
static void die_with_files_counted(cache *c, int self)
{
    all->process[self].failures = count_files(root);
    kill(getpid(), SIGKILL);
}

START_TEST(shared_memory_leaves_no_file_after_a_kill)
{
    plan p = { .processes = 4, .mode = CACHE_MEMORY, .then = die_with_files_counted };

    ck_assert_int_eq(run_plan(&p), 4);
    for (int r = 0; r < p.processes; r++) {
        ck_assert_int_eq(all->process[r].held, CASES);
        ck_assert_uint_ne(all->process[r].inode[0], 0);
        ck_assert_uint_eq(all->process[r].inode[0], all->process[0].inode[0]);
        ck_assert_int_eq(all->process[r].failures, 3 + p.processes); /* . .. d INI files */
    }
    ck_assert_int_eq(count_files(root), 3 + p.processes);
    END();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("shared_cache");

    tcase_add_checked_fixture(c, setup, remove_root);
    tcase_add_loop_test(c, memory_holds_each_case_once_for_all_processes, 0, 3);
    tcase_add_loop_test(c, each_case_is_read_once, 0, 3);
    tcase_add_test(c, on_disk_all_processes_map_the_same_files);
    tcase_add_loop_test(c, the_shared_cache_limit_holds_for_the_machine, 0, 2);
    tcase_add_test(c, without_memory_cases_are_read_each_time_with_one_warning);
    tcase_add_test(c, a_process_that_cannot_share_keeps_its_own_cache);
    tcase_add_test(c, the_first_failure_is_reported_by_all_processes);
    tcase_add_test(c, warnings_come_in_order_and_once);
    tcase_add_test(c, a_killed_process_leaves_the_cases_to_the_others);
    tcase_add_test(c, shared_memory_leaves_no_file_after_a_kill);
    return suite_run();
}
