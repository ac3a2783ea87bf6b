/*
 * check_group.c - processes joined by store, watchdog and a comm plugin over loopback: agreement,
 * sums, and the error of each rank when one fails, dies, stops or hangs.
 */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/random.h"
#include "cluster/group/group.h"
#include "cluster/store/store.h"
#include "support/pause.h"
#include "support/process/shared_table.h"
#include "support/run/comm_suite.h"
#include "support/suite.h"

/* The memory of a sanitizer grows with the memory that a process touches. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool counts_are_ours = false;
#else
static const bool counts_are_ours = true;
#endif

enum { SUMS = 12 };

typedef struct scene {
    const plugin *comm;
    processes *p;
    int listener, port;
    bool deterministic;
    double timeout_s;
    int victim;               /* rank that the fault happens to                                   */
    bool (*happen)(const struct scene *s, group *g, int rank); /* true: it takes no further part  */
} scene;

static scene scene_open(int count)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    pons_error err = PONS_ERROR_INIT;
    scene s = { .p = processes_new(count), .timeout_s = 20, .victim = count - 1 };

    if (plugin_load(PONS_KIND_COMM, comm_backend_tested.plugin, sizeof(pons_comm_operations), NULL,
                    &s.comm, &err) != PONS_OK)
        ck_abort_msg("%s", err.text);
    s.listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(s.listener, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(s.listener, 16), 0);
    ck_assert_int_eq(getsockname(s.listener, (struct sockaddr *)&at, &size), 0);
    s.port = ntohs(at.sin_port);
    return s;
}

static void scene_close(scene *s)
{
    close(s->listener);
    processes_free(s->p);
}

/* The rank info of one rank, in a process of the scene. */
static rank_info take_place(const scene *s, int rank)
{
    if (rank > 0)
        close(s->listener);
    return (rank_info){ .rank = rank, .size = s->p->count, .local_rank = rank,
                        .local_size = s->p->count, .master = "127.0.0.1", .port = s->port,
                        .listener = rank == 0 ? s->listener : -1, .token = "a-token" };
}

static pons_status join_scene(const scene *s, int rank, group **g, pons_error *err)
{
    rank_info place = take_place(s, rank);
    group_settings settings = { .place = &place, .comm = s->comm, .timeout_s = s->timeout_s,
                                .deterministic = s->deterministic,
                                .stream = comm_backend_tested.stream != NULL
                                          ? comm_backend_tested.stream() : NULL };

    return group_open(&settings, g, err);
}

static void leave_scene(group *g, const pons_error *err)
{
    group_close(g, err->status != PONS_OK ? err : NULL);
}

static void run_all(scene *s, processes_work *work, double patience)
{
    processes_start(s->p, work, s);
    processes_join(s->p, patience);
}

static void check_text(const scene *s, int rank, const char *expected)
{
    ck_assert_msg(strstr(s->p->err[rank].text, expected) != NULL, "rank %d, code %d: '%s'", rank,
                  s->p->code[rank], s->p->err[rank].text);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static int64_t count_of(int sum)
{
    return sum % 5 == 0 ? 1 : sum * sum * 701 + sum;
}

static float rank_element(int rank, int sum, int64_t i)
{
    uint32_t u[4];

    random_voxels((uint64_t)(rank * SUMS + sum), (uint64_t)i, u);
    return ldexpf(random_uniform(u[0]) - 0.5f, (int)(u[1] % 24));
}

/* The pairwise sum of R2, written as the rule states it. */
static double rank_pairwise_sum(const double *a, int n, bool wide)
{
    double sum;
    int p = 1;

    if (n == 1)
        return a[0];
    while (2 * p < n)
        p *= 2;
    sum = rank_pairwise_sum(a, p, wide) + rank_pairwise_sum(a + p, n - p, wide);
    return wide ? sum : (double)(float)sum;
}

static void check_sum(const scene *s, int sum, bool wide, const void *buffer, pons_error *err)
{
    for (int64_t i = 0; i < count_of(sum) && err->status == PONS_OK; i++) {
        double part[PROCESSES], size = 0, expected, found;
        for (int r = 0; r < s->p->count; r++) {
            part[r] = rank_element(r, sum, i);
            size += fabs(part[r]);
        }
        expected = rank_pairwise_sum(part, s->p->count, wide);
        found = wide ? ((const double *)buffer)[i] : (double)((const float *)buffer)[i];
        /* Each addition, in any order, rounds to 2^-24 of at most the sum of magnitudes. */
        if (s->deterministic ? found != expected : fabs(found - expected) > 8 * 0x1p-24 * size)
            pons_fail(err, PONS_FAILURE, "element %lld of sum %d is %.9g, expected %.9g",
                      (long long)i, sum, found, expected);
    }
}

static pons_status sum_up(const scene *s, group *g, int rank, bool wide, pons_error *err)
{
    const program_collective *c = group_collective(g);
    void *buffer[SUMS], *pending[SUMS];
    int started = 0;

    for (int k = 0; k < SUMS; k++) {
        buffer[k] = malloc(sizeof(double) * (size_t)count_of(k));
        for (int64_t i = 0; i < count_of(k); i++)
            if (wide)
                ((double *)buffer[k])[i] = rank_element(rank, k, i);
            else
                ((float *)buffer[k])[i] = rank_element(rank, k, i);
    }
    while (started < SUMS && c->start(c->context, buffer[started], count_of(started),
                                      wide ? PONS_F64 : PONS_F32, &pending[started],
                                      err) == PONS_OK) {
        started++;
        usleep(1000 * (unsigned)rank);
        if (started == SUMS / 2) /* some of several sums in flight may not have been sent */
            group_barrier(g, err);
    }
    for (int k = 0; k < started; k++)
        c->wait(c->context, pending[k], err);
    for (int k = 0; k < SUMS; k++) {
        check_sum(s, k, wide, buffer[k], err);
        free(buffer[k]);
    }
    return err->status;
}

static pons_status sum_twice(processes *p, int rank, void *context, pons_error *err)
{
    const scene *s = context;
    group *g;

    if (join_scene(s, rank, &g, err) != PONS_OK)
        return err->status;
    group_note(g, 1, "step");
    for (int round = 0; round < 2 && err->status == PONS_OK; round++)
        sum_up(s, g, rank, round == 1, err);
    leave_scene(g, err);
    return err->status;
}

START_TEST(deterministic_sums_equal_the_pairwise_sum_bit_for_bit)
{
    for (int count = 1; count <= 5; count++) {
        scene s = scene_open(count);
        s.deterministic = true;
        run_all(&s, sum_twice, 60);
        processes_check(s.p);
        scene_close(&s);
    }
}
END_TEST

enum { LARGE = 1 << 18, LARGE_SUMS = 16 }; /* floats: 16 MiB a process */

/* Peak memory of this process in bytes. */
static double peak(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss;
}

static pons_status sum_large(group *g, float *buffer, pons_error *err)
{
    const program_collective *c = group_collective(g);
    void *pending[LARGE_SUMS];
    int started = 0;

    while (started < LARGE_SUMS
           && c->start(c->context, buffer + (size_t)started * LARGE, LARGE, PONS_F32,
                       &pending[started], err) == PONS_OK)
        started++;
    for (int k = 0; k < started && err->status == PONS_OK; k++)
        c->wait(c->context, pending[k], err);
    return err->status;
}

/* Gather all ranks' buffers at once, as a sum without slices would. */
static pons_status gather_large(group *g, const float *buffer, pons_error *err)
{
    size_t size = (size_t)LARGE_SUMS * LARGE * sizeof *buffer;
    char *all = malloc(size * (size_t)group_size(g));

    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    group_all_gather(g, buffer, size, all, err);
    free(all);
    return err->status;
}

static pons_status weigh_sums(processes *p, int rank, void *context, pons_error *err)
{
    const scene *s = context;
    float *buffer = malloc((size_t)LARGE_SUMS * LARGE * sizeof *buffer);
    double before;
    group *g;

    if (buffer == NULL || join_scene(s, rank, &g, err) != PONS_OK)
        return PONS_FAILURE;
    for (int64_t i = 0; i < (int64_t)LARGE_SUMS * LARGE; i++)
        buffer[i] = (float)(rank + 1);
    before = peak();
    for (int step = 0; step < 2 && err->status == PONS_OK; step++)
        s->deterministic ? sum_large(g, buffer, err) : gather_large(g, buffer, err);
    p->note[rank] = peak() - before;
    for (int64_t i = 0; s->deterministic && i < (int64_t)LARGE_SUMS * LARGE; i++)
        if (err->status == PONS_OK && buffer[i] != (float)(10 * p->count))
            pons_fail(err, PONS_FAILURE, "element %lld is %g", (long long)i, (double)buffer[i]);
    leave_scene(g, err);
    free(buffer);
    return err->status;
}

START_TEST(deterministic_sums_take_no_more_memory_than_their_input)
{
    const double size = sizeof(float) * (double)LARGE_SUMS * LARGE, little = 4e6;
    /* The memory of a made-up GPU belongs to this process too. */
    const bool weighed = counts_are_ours && comm_backend_tested.stream == NULL;
    scene sums = scene_open(4), control = scene_open(4);

    sums.deterministic = true;
    run_all(&sums, weigh_sums, 60);
    run_all(&control, weigh_sums, 60);
    processes_check(sums.p);
    processes_check(control.p);
    for (int r = 0; r < 4; r++) {
        printf("rank %d: %.1f MB for sums of %.1f MB, %.1f MB without pieces\n", r,
               1e-6 * sums.p->note[r], 1e-6 * size, 1e-6 * control.p->note[r]);
        if (weighed) {
            ck_assert_double_lt(sums.p->note[r], size + little);
            ck_assert_double_gt(control.p->note[r], size + little);
        }
    }
    scene_close(&sums);
    scene_close(&control);
}
END_TEST

START_TEST(fast_sums_are_right_in_any_order)
{
    for (int count = 2; count <= 4; count++) {
        scene s = scene_open(count);
        run_all(&s, sum_twice, 60);
        processes_check(s.p);
        scene_close(&s);
    }
}
END_TEST

/* ---- agreement ------------------------------------------------------------------------------- */

static const group_fact same[] = { { "[train] lr", "0.01" }, { "plugin 'unet'", "1.0 abcdef" },
                                   { "tensor 'a.weight'", "[3, 4]" } };
static const group_fact other_value[] = { { "[train] lr", "0.01" },
                                          { "plugin 'unet'", "1.1 012345" },
                                          { "tensor 'a.weight'", "[3, 4]" } };
static const group_fact other_name[] = { { "[train] lr", "0.01" },
                                         { "plugin 'unet'", "1.0 abcdef" },
                                         { "tensor 'b.weight'", "[3, 4]" } };
static const struct {
    const group_fact *fact;
    int count;
    const char *expected;
} lists[] = {
    { same, 3, NULL },
    { other_value, 3, "the processes differ in plugin 'unet': rank 0 has '1.0 abcdef', rank 2 has "
                      "'1.1 012345'" },
    { other_name, 3, "the processes differ: rank 0 has tensor 'a.weight' = '[3, 4]' where rank 2 "
                     "has tensor 'b.weight' = '[3, 4]'" },
    { same, 2, "the processes differ: rank 0 has tensor 'a.weight' = '[3, 4]', rank 2 does not" },
    { same, 0, "the processes differ: rank 0 has [train] lr = '0.01', rank 2 does not" },
};

static pons_status agree(processes *p, int rank, void *context, pons_error *err)
{
    const scene *s = context;
    group *g;
    int list = rank == 2 ? s->victim : 0;

    if (join_scene(s, rank, &g, err) != PONS_OK)
        return err->status;
    group_agree(g, lists[list].count, lists[list].fact, err);
    leave_scene(g, err);
    return err->status;
}

/*
 * Lists of five items on four ranks, 0 for an unknown item. 'item' and 'rank' name the first
 * difference.
 */
static const struct {
    uint64_t of[4][5];
    int item, rank;
} contents[] = {
    { { { 1, 2, 3, 4, 5 }, { 1, 2, 3, 4, 5 }, { 1, 2, 3, 4, 5 }, { 1, 2, 3, 4, 5 } }, -1, -1 },
    { { { 1, 2, 3, 4, 5 }, { 1, 2, 3, 4, 9 }, { 1, 2, 3, 4, 5 }, { 1, 2, 8, 7, 5 } }, 2, 3 },
    { { { 1, 2, 0, 4, 5 }, { 1, 2, 3, 4, 5 }, { 0, 0, 9, 0, 0 }, { 1, 2, 3, 4, 5 } }, -1, -1 },
    { { { 1, 2, 0, 4, 5 }, { 1, 2, 3, 4, 5 }, { 0, 3, 9, 0, 0 }, { 1, 9, 3, 4, 5 } }, 1, 2 },
};

static pons_status compare_contents(processes *p, int rank, void *context, pons_error *err)
{
    const scene *s = context;
    hash128 mine[5];
    group *g;
    int item, where;

    if (join_scene(s, rank, &g, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < 5; i++)
        mine[i] = (hash128){ contents[s->victim].of[rank][i], 0 };
    if (group_compare_hashes(g, 5, mine, &item, &where, err) == PONS_OK
        && (item != contents[s->victim].item || where != contents[s->victim].rank))
        pons_fail(err, PONS_FAILURE, "found item %d, rank %d", item, where);
    leave_scene(g, err);
    return err->status;
}

START_TEST(all_ranks_find_the_first_differing_item_of_a_list)
{
    scene s = scene_open(4);

    s.victim = _i;
    run_all(&s, compare_contents, 20);
    for (int r = 0; r < 4; r++)
        ck_assert_msg(s.p->err[r].status == PONS_OK, "rank %d: %s", r, s.p->err[r].text);
    scene_close(&s);
}
END_TEST

START_TEST(all_ranks_report_a_difference_with_both_values)
{
    for (int k = 0; k < (int)(sizeof lists / sizeof *lists); k++) {
        scene s = scene_open(4);
        s.victim = k;
        run_all(&s, agree, 20);
        for (int r = 0; r < 4; r++) {
            ck_assert_int_eq(s.p->err[r].status, k == 0 ? PONS_OK : PONS_CONFIG);
            ck_assert_str_eq(s.p->err[r].text, k == 0 ? "" : lists[k].expected);
        }
        scene_close(&s);
    }
}
END_TEST

/* Join, and leave after a success; the rank's note is the duration of the join in seconds. */
static pons_status join_timed(const scene *s, int rank, pons_error *err)
{
    const double begin = seconds_now();
    group *g;

    if (join_scene(s, rank, &g, err) == PONS_OK)
        leave_scene(g, err);
    s->p->note[rank] = seconds_now() - begin;
    return err->status;
}

/* Rank 1 joins by the backend 'other', the other ranks by the tested one. */
typedef struct divided {
    scene s;
    plugin other;
} divided;

static pons_status join_divided(processes *p, int rank, void *context, pons_error *err)
{
    const divided *d = context;
    scene s = d->s;

    if (rank == 1)
        s.comm = &d->other;
    return join_timed(&s, rank, err);
}

/* All ranks report 'text' with both values, long before their timeout. */
static bool is_divided(divided *d, const char *text, const char *first, const char *other)
{
    char expected[512];
    bool at_once = true;

    snprintf(expected, sizeof expected, "the processes differ in %s: rank 0 has '%s', rank 1 has "
             "'%s'", text, first, other);
    processes_start(d->s.p, join_divided, d);
    processes_join(d->s.p, 30);
    for (int r = 0; r < 3; r++) {
        ck_assert_str_eq(d->s.p->err[r].text, expected);
        ck_assert_int_eq(d->s.p->err[r].status, PONS_CONFIG);
        at_once = at_once && d->s.p->note[r] < 2;
    }
    scene_close(&d->s);
    return at_once;
}

static bool is_divided_by_name(void)
{
    divided d = { .s = scene_open(3) };
    pons_plugin renamed = *d.s.comm->descriptor;
    const char *name = renamed.name;

    renamed.name = "other";
    d.other = *d.s.comm;
    d.other.descriptor = &renamed;
    return is_divided(&d, "[distribute] backend", name, "other");
}

static bool is_divided_by_file(void)
{
    divided d = { .s = scene_open(3) };

    d.other = *d.s.comm;
    d.other.sha256[0] = d.other.sha256[0] != '0' ? '0' : '1';
    return is_divided(&d, "the plugin that joins processes", d.s.comm->sha256, d.other.sha256);
}

/* A machine may be paused in one round, which delays that round only. */
START_TEST(different_backends_are_reported_before_the_join)
{
    for (int round = 0; !is_divided_by_name(); round++)
        ck_assert_int_lt(round, 3);
    for (int round = 0; !is_divided_by_file(); round++)
        ck_assert_int_lt(round, 3);
}
END_TEST

/* One rank connects and sends nothing until the others have ended. */
typedef struct silence {
    scene s;
    int rank;
} silence;

static pons_status join_silence(processes *p, int rank, void *context, pons_error *err)
{
    const silence *q = context;
    rank_info place;
    store *s;

    if (rank != q->rank)
        return join_timed(&q->s, rank, err);
    place = take_place(&q->s, rank);
    if (store_open(&place, 10, &s, err) != PONS_OK)
        return err->status;
    for (int r = 0; r < p->count; r++)
        while (r != rank && p->ended[r] == 0)
            pause_for(0.01);
    store_close(s, 0);
    return PONS_OK;
}

START_TEST(a_connected_but_silent_rank_is_named_by_all)
{
    const int rank = _i;
    silence q = { .s = scene_open(3), .rank = rank };
    char expected[128];

    q.s.timeout_s = 1;
    snprintf(expected, sizeof expected, "rank %d is connected, but has not said within 1 s whether "
             "%s", rank, rank == 0 ? "all take part" : "it takes part");
    processes_start(q.s.p, join_silence, &q);
    processes_join(q.s.p, 30);
    for (int r = 0; r < 3; r++) {
        ck_assert_str_eq(q.s.p->err[r].text, r == rank ? "" : expected);
        ck_assert_int_eq(q.s.p->err[r].status, r == rank ? PONS_OK : PONS_COMMUNICATION);
        ck_assert_double_lt(q.s.p->note[r], 8);
    }
    scene_close(&q.s);
}
END_TEST

static pons_status send_around(processes *p, int rank, void *context, pons_error *err)
{
    const scene *s = context;
    int value = rank == 2 ? 4711 : 0, all[PROCESSES] = { 0 };
    group *g;

    if (join_scene(s, rank, &g, err) != PONS_OK)
        return err->status;
    if (group_rank(g) != rank || group_size(g) != p->count)
        pons_fail(err, PONS_FAILURE, "rank %d of %d", group_rank(g), group_size(g));
    group_broadcast(g, &value, sizeof value, 2, err);
    value += rank;
    group_all_gather(g, &value, sizeof value, all, err);
    for (int r = 0; r < p->count; r++)
        if (all[r] != 4711 + r)
            pons_fail(err, PONS_FAILURE, "rank %d sent %d", r, all[r]);
    group_barrier(g, err);
    leave_scene(g, err);
    return err->status;
}

START_TEST(broadcast_values_reach_all_ranks)
{
    scene s = scene_open(3);

    run_all(&s, send_around, 20);
    processes_check(s.p);
    scene_close(&s);
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------- */

/*
 * Notes hold the time of the fault, the time at which each rank's steps ended, and whether it
 * joined.
 */
enum { MET = 4 };

/*
 * Each step is a small sum. The fault happens to the victim in the fifth, after a heartbeat of
 * every rank.
 */
static pons_status train_rank(processes *p, int rank, void *context, pons_error *err)
{
    const scene *s = context;
    group *g;

    if (join_scene(s, rank, &g, err) != PONS_OK)
        return err->status;
    p->note[MET + rank] = 1;
    for (int step = 1; step <= 10 && err->status == PONS_OK; step++) {
        const program_collective *c = group_collective(g);
        float buffer[1000] = { 0 };
        void *pending;
        group_note(g, step, "step");
        if (step <= 5)
            usleep(250000);
        if (step == 5 && rank == s->victim) {
            p->note[0] = seconds_now();
            if (s->happen(s, g, rank))
                return PONS_OK;
        }
        if (c->start(c->context, buffer, 1000, PONS_F32, &pending, err) == PONS_OK)
            c->wait(c->context, pending, err);
    }
    p->note[rank + 1] = seconds_now();
    leave_scene(g, err);
    return err->status;
}

/* A paused machine or a preempted rank may be late in one round, or miss a heartbeat. */
enum { ROUNDS = 3 };

/*
 * All ranks but the victim have failed with 'expected' in their lines; true: within 'limit'
 * seconds.
 */
static bool check_others(const scene *s, const char *expected, double limit)
{
    bool in_time = true;

    for (int r = 0; r < s->p->count; r++) {
        if (r == s->victim)
            continue;
        check_text(s, r, expected);
        ck_assert_int_eq(s->p->err[r].status, PONS_COMMUNICATION);
        if (s->p->ended[r] - s->p->note[0] < limit)
            continue;
        printf("rank %d took %g s\n", r, s->p->ended[r] - s->p->note[0]);
        in_time = false;
    }
    return in_time;
}

/* The part of 'text' that tells the last known state of a rank; NULL: there is none. */
static const char *row_of(const char *text, int rank)
{
    char name[32];
    const char *line;

    snprintf(name, sizeof name, "\n  rank %d: ", rank);
    line = strstr(text, name);
    return line != NULL ? line + strlen(name) : NULL;
}

/* Age of the last heartbeat of a rank in 'text'; 0: it has just come, INFINITY: there was none. */
static double heartbeat_age(const char *text, int rank)
{
    static const char nothing[] = "nothing known";
    const char *line = row_of(text, rank);
    double ago;

    ck_assert_msg(line != NULL, "rank %d is not in '%s'", rank, text);
    if (strncmp(line, nothing, strlen(nothing)) == 0)
        return INFINITY;
    return sscanf(line, "last heard %lf s ago, at ", &ago) == 1 ? ago : 0;
}

/* One process fails; all others soon report 'expected' with its rank. */
static bool fail_one_rank(int victim, bool (*happen)(const scene *, group *, int),
                          const char *expected)
{
    scene s = scene_open(3);
    char text[64];

    s.victim = victim;
    s.happen = happen;
    run_all(&s, train_rank, 30);
    snprintf(text, sizeof text, expected, victim);
    bool as_usual = check_others(&s, text, 5);
    for (int r = 0; r < 3; r++)
        as_usual = as_usual && (r == victim || isfinite(heartbeat_age(s.p->err[r].text, 0)));
    scene_close(&s);
    return as_usual;
}

static bool kill_this_rank(const scene *s, group *g, int rank)
{
    raise(SIGKILL);
    return true;
}

START_TEST(a_killed_rank_is_named_by_all_at_once)
{
    for (int victim = 0; victim < 3; victim++) {
        int round = 0;
        while (!fail_one_rank(victim, kill_this_rank, "rank %d has gone: its connection has ended"))
            ck_assert_int_lt(++round, ROUNDS);
    }
}
END_TEST

static bool fail_alone(const scene *s, group *g, int rank)
{
    pons_error own = { PONS_DATA, "cannot read 'case_7.nii.gz': it ends too early" };

    group_close(g, &own);
    return true;
}

START_TEST(the_root_cause_is_the_error_of_all_ranks)
{
    for (int victim = 0; victim < 3; victim += 2) {
        scene s = scene_open(3);
        char expected[128];
        s.victim = victim;
        s.happen = fail_alone;
        run_all(&s, train_rank, 30);
        snprintf(expected, sizeof expected, "rank %d failed at step 5 (step): cannot read "
                 "'case_7.nii.gz': it ends too early", victim);
        for (int r = 0; r < 3; r++) {
            if (r == victim)
                continue;
            ck_assert_str_eq(s.p->err[r].text, expected);
            ck_assert_int_eq(s.p->err[r].status, PONS_DATA);
        }
        scene_close(&s);
    }
}
END_TEST

static bool sum_more(const scene *s, group *g, int rank)
{
    const program_collective *c = group_collective(g);
    pons_error err = PONS_ERROR_INIT;
    float buffer[2000] = { 0 };
    void *pending;

    if (c->start(c->context, buffer, 2000, PONS_F32, &pending, &err) == PONS_OK)
        c->wait(c->context, pending, &err);
    s->p->err[rank] = err;
    group_close(g, &err);
    return true;
}

START_TEST(mismatched_sums_are_reported_and_do_not_hang)
{
    for (int victim = 0; victim < 3; victim += 2) {
        scene s = scene_open(3);
        s.victim = victim;
        s.happen = sum_more;
        run_all(&s, train_rank, 30);
        for (int r = 0; r < 3; r++) {
            check_text(&s, r, "8000 bytes");
            check_text(&s, r, "4000 bytes");
        }
        scene_close(&s);
    }
}
END_TEST

static bool stop_this_rank(const scene *s, group *g, int rank)
{
    raise(SIGSTOP);
    return true;
}

/* A stopped process does not end by itself. The limit is a count of polls, as in processes_join. */
static void run_stopped(scene *s)
{
    int left = 3000;

    processes_start(s->p, train_rank, s);
    for (int r = 0; r < s->p->count; r++)
        while (r != s->victim && s->p->ended[r] == 0 && left-- > 0)
            usleep(10000);
    kill(s->p->pid[s->victim], SIGKILL);
    processes_join(s->p, 10);
}

/*
 * All ranks report the ages of heartbeats after one has stopped. None has a recent heartbeat of
 * the stopped rank. Where rank 0 has stopped, each rank reports on itself alone. The result tells
 * whether rank 0 has recent heartbeats of all others, and none is missing. The activity of a rank
 * is not checked: on a busy machine it may still be the start.
 */
static bool check_ages(const scene *s)
{
    const double least = s->timeout_s - 0.1; /* the message rounds the age */
    bool as_usual = true;

    for (int r = 0; r < s->p->count; r++) {
        const char *text = s->p->err[r].text;
        const int teller = s->victim == 0 ? r : 0;
        for (int k = 0; k < s->p->count && r != s->victim; k++) {
            double ago = heartbeat_age(text, k);
            if (k == teller)
                ck_assert_msg(ago == 0, "rank %d of itself: '%s'", k, text);
            else if (k == s->victim || teller != 0)
                ck_assert_msg(ago >= least, "rank %d: '%s'", k, text);
            else
                as_usual = as_usual && ago < 1.5;
            as_usual = as_usual && isfinite(ago);
        }
    }
    return as_usual;
}

static bool find_stopped(int victim)
{
    scene s = scene_open(3);
    char expected[64];

    s.timeout_s = 2;
    s.victim = victim;
    s.happen = stop_this_rank;
    run_stopped(&s);
    snprintf(expected, sizeof expected, "rank %d has stopped: ", victim);
    bool in_time = check_others(&s, expected, s.timeout_s + 2);
    in_time = check_ages(&s) && in_time;
    for (int r = 0; r < 3; r++) {
        double took = s.p->note[r + 1] - s.p->note[0];
        if (r == victim || took > s.timeout_s - 0.7)
            continue;
        printf("an early alarm of rank %d after %g s\n", r, took);
        in_time = false;
    }
    scene_close(&s);
    return in_time;
}

START_TEST(a_stopped_rank_is_found_within_the_timeout_and_two_seconds)
{
    for (int victim = 0; victim < 3; victim += 2) {
        int round = 0;
        while (!find_stopped(victim))
            ck_assert_int_lt(++round, ROUNDS);
    }
}
END_TEST

static bool loop_in_this_rank(const scene *s, group *g, int rank)
{
    while (seconds_now() > 0)
        usleep(1000);
    return true;
}

static bool find_loop(int victim)
{
    scene s = scene_open(3);
    char expected[64];

    s.timeout_s = 2;
    s.victim = victim;
    s.happen = loop_in_this_rank;
    run_all(&s, train_rank, 30); /* the victim's own watchdog ends it */
    snprintf(expected, sizeof expected, "rank %d hangs: no progress for ", victim);
    bool in_time = check_others(&s, expected, s.timeout_s + 2);
    ck_assert_msg(WIFEXITED(s.p->code[victim])
                  && WEXITSTATUS(s.p->code[victim]) == PONS_COMMUNICATION, "code %d",
                  s.p->code[victim]);
    scene_close(&s);
    return in_time;
}

START_TEST(a_rank_in_an_endless_loop_is_found_and_ended)
{
    for (int victim = 0; victim < 3; victim += 2) {
        int round = 0;
        while (!find_loop(victim))
            ck_assert_int_lt(++round, ROUNDS);
    }
}
END_TEST

/* All ranks stop for longer than the timeout and then go on, as on a closed laptop. */
START_TEST(a_pause_of_all_ranks_is_no_fault)
{
    scene s = scene_open(3);

    s.timeout_s = 3;
    s.victim = -1;
    processes_start(s.p, train_rank, &s);
    for (int r = 0; r < 3; r++)
        for (int left = 3000; s.p->note[MET + r] == 0 && left > 0; left--)
            usleep(10000);
    for (int r = 0; r < 3; r++)
        kill(s.p->pid[r], SIGSTOP);
    sleep(8);
    for (int r = 0; r < 3; r++)
        kill(s.p->pid[r], SIGCONT);
    processes_join(s.p, 30);
    processes_check(s.p);
    scene_close(&s);
}
END_TEST

static bool take_long(const scene *s, group *g, int rank)
{
    for (int piece = 0; piece < 12; piece++) {
        usleep(400000);
        group_note(g, 5, "validation");
    }
    return false;
}

START_TEST(a_rank_with_progress_may_exceed_the_timeout)
{
    scene s = scene_open(3);

    s.timeout_s = 3; /* heartbeats may be late */
    s.happen = take_long;
    run_all(&s, train_rank, 30);
    processes_check(s.p);
    scene_close(&s);
}
END_TEST

static pons_status prepare(processes *p, int rank, void *context, pons_error *err)
{
    const scene *s = context;
    group *g;

    if (join_scene(s, rank, &g, err) != PONS_OK)
        return err->status;
    usleep(5000000);
    group_barrier(g, err);
    leave_scene(g, err);
    return err->status;
}

START_TEST(a_start_without_progress_may_exceed_the_timeout)
{
    scene s = scene_open(2);

    s.timeout_s = 2.5; /* heartbeats may be late */
    run_all(&s, prepare, 30);
    processes_check(s.p);
    scene_close(&s);
}
END_TEST

/* ---- a plugin that fails without a message --------------------------------------------------- */

static pons_status open_not(const pons_comm_rank_info *place, const pons_comm_store *store,
                            void **comm,
                            pons_error *err)
{
    return PONS_COMMUNICATION;
}

static pons_status gather_not(void *comm, const void *mine, size_t size, void *all, void **pending,
                              pons_error *err)
{
    return PONS_COMMUNICATION;
}

static pons_comm_state poll_failed(void *comm, void *pending, double wait_s, pons_error *err)
{
    return PONS_COMM_FAILED;
}

static pons_status gather_once(processes *p, int rank, void *context, pons_error *err)
{
    const scene *s = context;
    int all[2];
    group *g;

    if (join_scene(s, rank, &g, err) != PONS_OK)
        return err->status;
    group_all_gather(g, &rank, sizeof rank, all, err);
    leave_scene(g, err);
    return err->status;
}

static void gather_with(const pons_comm_operations *operations, const char *expected)
{
    scene s = scene_open(2);
    plugin mute = *s.comm;

    mute.operations = operations;
    s.comm = &mute;
    run_all(&s, gather_once, 20);
    for (int r = 0; r < 2; r++) {
        ck_assert_int_eq(s.p->err[r].status, PONS_PLUGIN);
        check_text(&s, r, expected);
    }
    scene_close(&s);
}

START_TEST(a_comm_plugin_failure_without_a_message_is_reported)
{
    static const char mute[] = "the comm plugin failed and has not said why";
    scene s = scene_open(2);
    pons_comm_operations o = *(const pons_comm_operations *)s.comm->operations, with = o;

    scene_close(&s);
    with.open = open_not;
    gather_with(&with, "the comm plugin: 'open' returned 7 and has not said why");
    with = o;
    with.all_gather = gather_not;
    gather_with(&with, mute);
    with = o;
    with.poll = poll_failed;
    gather_with(&with, mute);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("group");

    tcase_add_test(c, deterministic_sums_equal_the_pairwise_sum_bit_for_bit);
    tcase_add_test(c, deterministic_sums_take_no_more_memory_than_their_input);
    tcase_add_test(c, fast_sums_are_right_in_any_order);
    tcase_add_test(c, all_ranks_report_a_difference_with_both_values);
    tcase_add_loop_test(c, all_ranks_find_the_first_differing_item_of_a_list, 0,
                        sizeof contents / sizeof *contents);
    tcase_add_test(c, different_backends_are_reported_before_the_join);
    tcase_add_loop_test(c, a_connected_but_silent_rank_is_named_by_all, 0, 3);
    tcase_add_test(c, broadcast_values_reach_all_ranks);
    tcase_add_test(c, a_killed_rank_is_named_by_all_at_once);
    tcase_add_test(c, the_root_cause_is_the_error_of_all_ranks);
    tcase_add_test(c, mismatched_sums_are_reported_and_do_not_hang);
    tcase_add_test(c, a_stopped_rank_is_found_within_the_timeout_and_two_seconds);
    tcase_add_test(c, a_rank_in_an_endless_loop_is_found_and_ended);
    tcase_add_test(c, a_pause_of_all_ranks_is_no_fault);
    tcase_add_test(c, a_rank_with_progress_may_exceed_the_timeout);
    tcase_add_test(c, a_comm_plugin_failure_without_a_message_is_reported);
    tcase_add_test(c, a_start_without_progress_may_exceed_the_timeout);
    return suite_run();
}
