/*
 * check_store.c - the store with threads and processes as ranks: values, waits, and every fault of
 * a joining process. Unauthenticated peers do no harm.
 */
#include <config.h>

#include "base/clock.h"
#include "cluster/store/message.h"
#include "cluster/store/server.h"
#include "cluster/store/socket.h"
#include "cluster/store/store.h"

#include "support/pause.h"
#include "support/process/free_port.h"
#include "support/suite.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE deadline_scaled(90) /* timeout where no fault is expected                        */
#define TAKEN_S 2.0          /* timeout at a port that stays taken                                */
#define SLACK deadline_scaled(30)    /* delay of a busy machine when a wait has to end in time    */

/* ---- ranks ----------------------------------------------------------------------------------- */

static rank_info place_of(int rank, int size, int port)
{
    rank_info p = { .rank = rank, .size = size, .local_rank = rank, .local_size = size,
                    .master = "127.0.0.1", .port = port, .listener = -1, .token = "job" };

    return p;
}

/* A rank is a thread: it opens the store, does 'work' and closes the store. */
typedef struct rank {
    rank_info place;
    double timeout_s, delay_s, took_s;
    void (*work)(struct rank *r);
    store *store;
    pid_t other;                /* process of another rank                                        */
    pthread_t thread;
    pons_error err;
} rank;

static void *run_rank(void *context)
{
    rank *r = context;
    double start;

    pause_for(r->delay_s);
    start = seconds_now();
    store_open(&r->place, r->timeout_s, &r->store, &r->err);
    r->took_s = seconds_now() - start;
    if (r->err.status == PONS_OK && r->work != NULL)
        r->work(r);
    store_close(r->store, 5);
    return NULL;
}

static void run_ranks(rank *r, int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&r[i].thread, NULL, run_rank, &r[i]), 0);
    for (int i = 0; i < count; i++)
        pthread_join(r[i].thread, NULL);
}

/* All ranks open the store, work and close it without an error. */
static void expect_ranks(rank *r, int count)
{
    run_ranks(r, count);
    for (int i = 0; i < count; i++)
        ck_assert_msg(r[i].err.status == PONS_OK, "rank %d: %s", i, r[i].err.text);
}

static void make_ranks(rank *r, int count, int size, double timeout_s, void (*work)(rank *))
{
    int port = free_port();

    for (int i = 0; i < count; i++)
        r[i] = (rank){ .place = place_of(i, size, port), .timeout_s = timeout_s, .work = work };
}

static void expect_work(int count, void (*work)(rank *r))
{
    rank r[5];

    make_ranks(r, count, count, PATIENCE, work);
    expect_ranks(r, count);
}

#define OK(R, CALL) \
    ck_assert_msg((CALL) == PONS_OK, "rank %d: %s", (R)->place.rank, (R)->err.text)
#define SAYS(R, STATUS, TEXT) do { \
    ck_assert_msg(strstr((R)->err.text, TEXT) != NULL, "rank %d: found '%s', expected '%s'", \
                  (R)->place.rank, (R)->err.text, TEXT); \
    ck_assert_int_eq((R)->err.status, STATUS); \
} while (0)

static void set_text(rank *r, const char *key, const char *text)
{
    OK(r, store_set(r->store, key, text, strlen(text), &r->err));
}

static void get_text(rank *r, const char *key, char out[64])
{
    size_t size = 0;

    OK(r, store_get(r->store, key, PATIENCE, out, 63, &size, &r->err));
    ck_assert_uint_le(size, 63);
    out[size] = '\0';
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Every rank reads the values of all ranks, then the value that rank 0 has replaced. */
static void exchange_values(rank *r)
{
    char key[32], text[64], expected[64];

    snprintf(key, sizeof key, "of.%d", r->place.rank);
    snprintf(text, sizeof text, "value %d", r->place.rank);
    set_text(r, key, text);
    for (int i = 0; i < r->place.size; i++) {
        snprintf(key, sizeof key, "of.%d", i);
        snprintf(expected, sizeof expected, "value %d", i);
        get_text(r, key, text);
        ck_assert_str_eq(text, expected);
    }
    if (r->place.rank == 0) {
        set_text(r, "word", "first");
        set_text(r, "word", "replaced");
        set_text(r, "done", "");
    }
    get_text(r, "done", text);
    ck_assert_str_eq(text, "");
    get_text(r, "word", text);
    ck_assert_str_eq(text, "replaced");
    ck_assert_str_eq(store_address(r->store), r->place.master);
}

START_TEST(ranks_share_values_through_the_store)
{
    expect_work(5, exchange_values);
}
END_TEST

static bool has_ipv6(void)
{
    struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0;

    if (fd >= 0)
        close(fd);
    return has;
}

START_TEST(ranks_join_over_ipv6)
{
    rank r[2];

    make_ranks(r, 2, 2, PATIENCE, exchange_values);
    strcpy(r[0].place.master, "::1");
    strcpy(r[1].place.master, "::1");
    expect_ranks(r, 2);
}
END_TEST

START_TEST(one_rank_serves_itself)
{
    expect_work(1, exchange_values);
}
END_TEST

START_TEST(the_launchers_socket_is_served)
{
    int listener[SOCKET_LISTENERS];
    rank r[2];

    make_ranks(r, 2, 2, PATIENCE, exchange_values);
    ck_assert_int_eq(socket_listen("127.0.0.1", r[0].place.port, listener), 1);
    r[0].place.listener = listener[0];
    expect_ranks(r, 2);
}
END_TEST

START_TEST(a_descriptor_that_does_not_listen_is_refused)
{
    rank r[1];

    make_ranks(r, 1, 2, PATIENCE, NULL);
    r[0].place.listener = open("/dev/null", O_RDONLY);
    run_ranks(r, 1);
    SAYS(&r[0], PONS_CONFIG, "is no socket that listens");
}
END_TEST

static void set_first(rank *r)
{
    char own[32], text[64], seen[64];

    snprintf(own, sizeof own, "rank %d", r->place.rank);
    OK(r, store_set_first(r->store, "cause", own, strlen(own), &r->err));
    get_text(r, "cause", text);
    snprintf(own, sizeof own, "seen.%d", r->place.rank);
    set_text(r, own, text);
    for (int i = 0; i < r->place.size; i++) {
        snprintf(own, sizeof own, "seen.%d", i);
        get_text(r, own, seen);
        ck_assert_str_eq(seen, text);
    }
}

START_TEST(the_first_value_set_for_a_key_is_kept)
{
    expect_work(4, set_first);
}
END_TEST

/* One thread of a rank waits for a value that another thread of the rank sets later. */
static void *wait_for_late(void *context)
{
    rank *r = context;
    pons_error err = PONS_ERROR_INIT;
    char text[64];
    size_t size = 0;

    ck_assert_int_eq(store_get(r->store, "late", PATIENCE, text, sizeof text, &size, &err),
                     PONS_OK);
    ck_assert_uint_eq(size, 4);
    ck_assert_int_eq(memcmp(text, "here", 4), 0);
    return NULL;
}

static void wait_and_work(rank *r)
{
    pthread_t waiting[3];
    char key[32], text[64];

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&waiting[i], NULL, wait_for_late, r), 0);
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof key, "%d.%d", r->place.rank, i);
        set_text(r, key, key);
        get_text(r, key, text);
        ck_assert_str_eq(text, key);
    }
    set_text(r, "late", "here");
    for (int i = 0; i < 3; i++)
        pthread_join(waiting[i], NULL);
}

START_TEST(a_waiting_get_blocks_no_other_call)
{
    expect_work(2, wait_and_work);
}
END_TEST

static void ask_for_nothing(rank *r)
{
    double start = seconds_now();
    char text[64];
    size_t size;

    ck_assert_int_eq(store_get(r->store, "nothing", 0, text, sizeof text, &size, &r->err),
                     PONS_COMMUNICATION);
    SAYS(r, PONS_COMMUNICATION, "nobody has set 'nothing' within 0 s");
    r->err = (pons_error)PONS_ERROR_INIT;
    store_get(r->store, "nothing", 0.3, text, sizeof text, &size, &r->err);
    SAYS(r, PONS_COMMUNICATION, "nobody has set 'nothing' within 0.3 s");
    ck_assert_double_ge(seconds_now() - start, 0.3);
    r->err = (pons_error)PONS_ERROR_INIT;
    ck_assert(!store_broken(r->store));
}

START_TEST(a_missing_value_is_named_after_the_timeout)
{
    expect_work(2, ask_for_nothing);
}
END_TEST

/*
 * Each rank reads the age of its own value 0.3 s after it was set, and again after it was set
 * anew.
 */
static void look_at_age(rank *r)
{
    double begin = seconds_now(), age;
    char key[32], text[64];
    size_t size = 0;

    snprintf(key, sizeof key, "aged.%d", r->place.rank);
    ck_assert_int_eq(store_try_peek(r->store, key, PATIENCE, text, sizeof text, &size, &age,
                                    &r->err), PONS_COMMUNICATION);
    r->err = (pons_error)PONS_ERROR_INIT;
    set_text(r, key, "old");
    pause_for(0.3);
    OK(r, store_try_peek(r->store, key, PATIENCE, text, sizeof text, &size, &age, &r->err));
    ck_assert_uint_eq(size, 3);
    ck_assert_double_ge(age, 0.299); /* the store sends the age in milliseconds */
    ck_assert_double_le(age, seconds_now() - begin);
    begin = seconds_now();
    set_text(r, key, "anew");
    OK(r, store_try_peek(r->store, key, PATIENCE, text, sizeof text, &size, &age, &r->err));
    ck_assert_uint_eq(size, 4);
    ck_assert_double_le(age, seconds_now() - begin);
}

START_TEST(a_value_has_the_age_of_its_last_setting)
{
    expect_work(2, look_at_age);
}
END_TEST

static void set_large(rank *r)
{
    enum { LARGE = PONS_COMM_VALUE_MAX };
    const pons_comm_store *shared = store_comm_interface(r->store);
    uint8_t *value = malloc(LARGE + 1), *got = malloc(LARGE);
    char key[300];
    size_t size = 0;

    for (int i = 0; i < LARGE; i++)
        value[i] = (uint8_t)(i * 7 + r->place.rank);
    snprintf(key, sizeof key, "large.%d", r->place.rank);
    OK(r, shared->set(shared->context, key, value, LARGE, &r->err));
    OK(r, shared->get(shared->context, key, got, LARGE, &size, &r->err));
    ck_assert_uint_eq(size, LARGE);
    ck_assert_int_eq(memcmp(value, got, LARGE), 0);
    OK(r, store_get(r->store, key, 0, got, 3, &size, &r->err));
    ck_assert_uint_eq(size, LARGE); /* the whole size, although the buffer holds three bytes */
    store_set(r->store, key, value, LARGE + 1, &r->err);
    SAYS(r, PONS_FAILURE, "has 65537 bytes, the store takes at most 65536");
    r->err = (pons_error)PONS_ERROR_INIT;
    store_set(r->store, "two words", value, 1, &r->err);
    SAYS(r, PONS_FAILURE, "no word: 'two words'");
    memset(key, 'k', sizeof key - 1);
    key[256] = '\0';
    r->err = (pons_error)PONS_ERROR_INIT;
    store_get(r->store, key, 0, got, 1, &size, &r->err);
    SAYS(r, PONS_FAILURE, "no word: 'kkkk");
    r->err = (pons_error)PONS_ERROR_INIT;
    free(value);
    free(got);
}

START_TEST(store_keys_and_values_have_size_limits)
{
    expect_work(2, set_large);
}
END_TEST

/* ---- missing and contradictory ranks --------------------------------------------------------- */

START_TEST(missing_ranks_are_named_to_all_within_the_timeout)
{
    rank r[3];

    make_ranks(r, 3, 8, 2, NULL);
    r[1].place.rank = 4;
    r[2].place.rank = 6;
    run_ranks(r, 3);
    for (int i = 0; i < 3; i++) {
        SAYS(&r[i], PONS_COMMUNICATION,
             "ranks 1, 2, 3, 5 and 7 of 8 have not come to the store at 127.0.0.1:");
        ck_assert_double_lt(r[i].took_s, 2 + SLACK);
    }
}
END_TEST

START_TEST(the_shortest_timeout_decides_when_missing_ranks_are_named)
{
    rank r[2];

    make_ranks(r, 2, 3, PATIENCE, NULL);
    r[1].timeout_s = 2;
    run_ranks(r, 2);
    for (int i = 0; i < 2; i++)
        SAYS(&r[i], PONS_COMMUNICATION, "rank 2 of 3 has not come");
}
END_TEST

START_TEST(a_rank_that_comes_late_is_waited_for)
{
    rank r[2];

    make_ranks(r, 2, 2, PATIENCE, exchange_values);
    r[_i].delay_s = 0.5;
    expect_ranks(r, 2);
}
END_TEST

START_TEST(an_address_without_a_listener_is_named)
{
    rank r[2];

    make_ranks(r, 2, 2, 1, NULL);
    run_ranks(r + 1, 1);
    SAYS(&r[1], PONS_COMMUNICATION, "rank 1: cannot reach the store of rank 0 at 127.0.0.1:");
    SAYS(&r[1], PONS_COMMUNICATION, "within 1 s: Connection refused");
    ck_assert_double_lt(r[1].took_s, 1 + SLACK);
}
END_TEST

START_TEST(an_address_that_is_not_rank_0s_is_named)
{
    rank r[1];

    make_ranks(r, 1, 2, 1, NULL);
    strcpy(r[0].place.master, "host..name");
    run_ranks(r, 1);
    SAYS(&r[0], PONS_COMMUNICATION, "rank 0: cannot reach the store of rank 0 at host..name:");
    SAYS(&r[0], PONS_COMMUNICATION, "hint: rank 0 serves the store itself");
}
END_TEST

START_TEST(a_port_that_is_taken_is_named)
{
    int listener[SOCKET_LISTENERS];
    rank r[1];

    make_ranks(r, 1, 2, 1, NULL);
    ck_assert_int_eq(socket_listen("127.0.0.1", r[0].place.port, listener), 1);
    run_ranks(r, 1);
    SAYS(&r[0], PONS_COMMUNICATION, "rank 0 cannot open the store at port ");
    SAYS(&r[0], PONS_COMMUNICATION, "Address already in use");
    ck_assert_double_lt(r[0].took_s, 1 + SLACK);
}
END_TEST

START_TEST(a_port_of_another_service_is_named)
{
    static const char banner[] = "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and more of it\r\n";
    int listener[SOCKET_LISTENERS];
    pid_t child;
    rank r[2];

    make_ranks(r, 2, 2, 3, NULL);
    ck_assert_int_eq(socket_listen("127.0.0.1", r[0].place.port, listener), 1);
    child = fork();
    if (child == 0)
        for (;;) {
            int fd = socket_accept(listener[0]);
            if (fd >= 0 && write(fd, banner, sizeof banner - 1) > 0)
                close(fd);
            pause_for(0.01);
        }
    run_ranks(r + 1, 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    SAYS(&r[1], PONS_COMMUNICATION, "what answers there is no store of this version of pons");
}
END_TEST

START_TEST(a_rank_of_another_job_is_refused_with_a_message_to_both)
{
    rank r[2];

    make_ranks(r, 2, 2, 2, NULL);
    strcpy(r[1].place.token, "other");
    run_ranks(r, 2);
    SAYS(&r[0], PONS_COMMUNICATION, "rank 1 of 2 has not come");
    SAYS(&r[0], PONS_COMMUNICATION, "without the job's token");
    SAYS(&r[0], PONS_COMMUNICATION, "refused, the last from 127.0.0.1");
    SAYS(&r[1], PONS_COMMUNICATION, "belongs to another job: its token differs");
}
END_TEST

/* Rank 0 has file descriptors for its own connection alone; its message goes to 'out'. */
static void starve_and_tell(rank *r, int out)
{
    const rlim_t most = (rlim_t)dup(out) + 5;
    const struct rlimit limit = { most, most };

    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(1);
    run_rank(r);
    _exit(write(out, &r->err, sizeof r->err) != (ssize_t)sizeof r->err);
}

START_TEST(a_rank_0_without_file_descriptors_reports_it_at_once)
{
    double start = seconds_now();
    int ends[2];
    rank r[3];

    make_ranks(r, 3, 3, PATIENCE, NULL);
    r[1].timeout_s = r[2].timeout_s = 2;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        starve_and_tell(&r[0], ends[1]);
    run_ranks(r + 1, 2);
    ck_assert_int_eq(read(ends[0], &r[0].err, sizeof r[0].err), sizeof r[0].err);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    /* The last descriptor is lacking for another rank, or for rank 0 where that one came first. */
    SAYS(&r[0], PONS_DEVICE, strstr(r[0].err.text, "rank 0: ") != NULL
         ? "rank 0: cannot connect to the store of rank 0 at 127.0.0.1:"
         : "rank 0 cannot take connections to its store: ");
    SAYS(&r[0], PONS_DEVICE, ": Too many open files");
    ck_assert_double_lt(seconds_now() - start, PATIENCE / 2);
    for (int i = 1; i < 3; i++)
        ck_assert_int_ne(r[i].err.status, PONS_OK);
}
END_TEST

START_TEST(different_world_sizes_are_reported_to_both_at_once)
{
    rank r[2];

    make_ranks(r, 2, 3, PATIENCE, NULL);
    r[1].place.size = 4;
    run_ranks(r, 2);
    for (int i = 0; i < 2; i++) {
        SAYS(&r[i], PONS_CONFIG, " at 127.0.0.1 is rank 1 of 4, but process ");
        SAYS(&r[i], PONS_CONFIG, " is one of 3");
        ck_assert_double_lt(r[i].took_s, PATIENCE / 2);
    }
}
END_TEST

START_TEST(a_duplicate_rank_is_reported_to_all_at_once)
{
    rank r[3];

    make_ranks(r, 3, 4, PATIENCE, NULL);
    r[2].place.rank = 1;
    run_ranks(r, 3);
    for (int i = 0; i < 3; i++) {
        SAYS(&r[i], PONS_CONFIG, "rank 1 is there twice: process ");
        ck_assert_double_lt(r[i].took_s, PATIENCE / 2);
    }
}
END_TEST

/*
 * A second process with the same rank comes later and waits until its timeout; the complete run
 * goes on.
 */
static void join_with_duplicate(rank *r)
{
    rank other = { .place = r->place, .timeout_s = TAKEN_S };

    if (r->place.rank == 1) {
        run_ranks(&other, 1);
        SAYS(&other, PONS_COMMUNICATION, "rank 1 has found the store at 127.0.0.1:");
        SAYS(&other, PONS_COMMUNICATION, " taken for 2 s: rank 1 is there twice: process ");
        ck_assert_double_lt(other.took_s, TAKEN_S + SLACK);
    }
    exchange_values(r);
}

START_TEST(a_late_duplicate_rank_is_refused)
{
    expect_work(2, join_with_duplicate);
}
END_TEST

/* ---- restarts -------------------------------------------------------------------------------- */

static void expect_met(const rank *r)
{
    ck_assert_msg(r->err.status == PONS_OK, "rank %d: %s", r->place.rank, r->err.text);
}

/* A restarted rank that comes while the old store exists finds the port taken. */
static void expect_taken(const rank *r, const char *why)
{
    rank next = { .place = r->place, .timeout_s = TAKEN_S };

    run_ranks(&next, 1);
    SAYS(&next, PONS_COMMUNICATION, " taken for 2 s: ");
    SAYS(&next, PONS_COMMUNICATION, why);
}

/* Rank 0 has lost rank 1 and ends slowly, then rank 0 is restarted too. */
static rank *returned;

static void lose_the_other(rank *r)
{
    char text[64];

    get_text(r, "alive", text);
    set_text(r, "seen", "yes");
    get_text(r, STORE_LOST, text);
    expect_taken(returned, "rank 1 is there twice");
    ck_assert_int_eq(pthread_create(&returned->thread, NULL, run_rank, returned), 0);
    pause_for(0.5);
}

/* Both functions are defined in the section on ends. */
static pid_t fork_rank(const rank *r, void (*work)(rank *));
static void end_suddenly(rank *r);

START_TEST(an_early_restarted_rank_joins_the_next_run)
{
    rank r[2], again[2];

    make_ranks(r, 2, 2, PATIENCE, lose_the_other);
    memcpy(again, r, sizeof again);
    again[0].work = again[1].work = exchange_values;
    returned = &again[1];
    pid_t child = fork_rank(&r[1], end_suddenly);
    run_ranks(r, 1);
    waitpid(child, NULL, 0);
    expect_met(&r[0]);
    run_ranks(again, 1);
    pthread_join(again[1].thread, NULL);
    for (int i = 0; i < 2; i++)
        expect_met(&again[i]);
}
END_TEST

/* A store server without a run. */
static store_server *serve_alone(const rank *r, double timeout_s)
{
    pons_error err = PONS_ERROR_INIT;
    store_server *s = NULL;

    ck_assert_msg(store_server_open(&r->place, timeout_s, &s, &err) == PONS_OK, "%s", err.text);
    return s;
}

START_TEST(a_rank_that_comes_after_the_timeout_joins_the_next_run)
{
    rank r[2], first;

    make_ranks(r, 2, 2, PATIENCE, exchange_values);
    store_server *old = serve_alone(&r[0], 0.5);
    first = r[1];
    first.timeout_s = TAKEN_S;
    run_ranks(&first, 1); /* rank 1 came in time and got the refusal with the others, or early */
    SAYS(&first, PONS_COMMUNICATION, "rank 0 of 2 has not come");
    expect_taken(&r[1], "rank 0 of 2 has not come");
    ck_assert_int_eq(pthread_create(&r[1].thread, NULL, run_rank, &r[1]), 0);
    pause_for(0.5);
    store_server_close(old, 0);
    run_ranks(r, 1);
    pthread_join(r[1].thread, NULL);
    for (int i = 0; i < 2; i++)
        expect_met(&r[i]);
}
END_TEST

/* The whole timeout starts at the end of the earlier run, however long that end takes. */
static bool wait_anew(void)
{
    const double timeout_s = 6;
    rank r[2];

    make_ranks(r, 2, 2, PATIENCE, exchange_values);
    r[0].timeout_s = r[1].timeout_s = timeout_s;
    store_server *old = serve_alone(&r[0], 0.2);
    pause_for(0.5); /* the run has failed for lack of ranks */
    ck_assert_int_eq(pthread_create(&r[1].thread, NULL, run_rank, &r[1]), 0);
    pause_for(0.6 * timeout_s);
    store_server_close(old, 0);
    pause_for(0.6 * timeout_s);
    run_ranks(r, 1);
    pthread_join(r[1].thread, NULL);
    return r[0].err.status == PONS_OK && r[1].err.status == PONS_OK;
}

/* A machine may be paused in one round, which delays that round only. */
START_TEST(an_earlier_run_does_not_shorten_the_join_timeout)
{
    for (int round = 0; !wait_anew(); round++)
        ck_assert_int_lt(round, 2);
}
END_TEST

/* ---- ends ------------------------------------------------------------------------------------ */

/* Ranks are processes; the calling process is rank 'own' of 'size'. */
static pid_t fork_rank(const rank *r, void (*work)(rank *))
{
    pid_t child = fork();

    if (child == 0) {
        rank copy = *r;
        signal(SIGPIPE, SIG_DFL);
        copy.work = work;
        run_rank(&copy);
        _exit(copy.err.status);
    }
    return child;
}

static void end_suddenly(rank *r)
{
    char text[64];

    set_text(r, "alive", "yes");
    get_text(r, "seen", text);
    _exit(0);
}

static void watch_the_lost(rank *r)
{
    char text[64];
    double start;

    get_text(r, "alive", text);
    set_text(r, "seen", "yes");
    start = seconds_now();
    get_text(r, STORE_LOST, text);
    ck_assert_str_eq(text, "1");
    ck_assert_double_lt(seconds_now() - start, PATIENCE / 2);
    ck_assert(!store_broken(r->store));
}

START_TEST(a_rank_that_ends_suddenly_is_lost)
{
    pid_t child;
    rank r[2];

    make_ranks(r, 2, 2, PATIENCE, watch_the_lost);
    child = fork_rank(&r[1], end_suddenly);
    run_ranks(r, 1);
    waitpid(child, NULL, 0);
    ck_assert_msg(r[0].err.status == PONS_OK, "%s", r[0].err.text);
}
END_TEST

static void leave_in_order(rank *r)
{
    if (r->place.rank == 1)
        return;
    char text[64];
    size_t size;

    store_get(r->store, STORE_LOST, 0.3, text, sizeof text, &size, &r->err);
    SAYS(r, PONS_COMMUNICATION, "nobody has set 'store.lost'");
    r->err = (pons_error)PONS_ERROR_INIT;
}

START_TEST(a_rank_that_closes_its_store_is_not_lost)
{
    expect_work(2, leave_in_order);
}
END_TEST

/* After the end of rank 0 pending and later calls fail at once, without a signal. */
static void outlive_rank_0(rank *r)
{
    double start = seconds_now();
    char text[64];
    size_t size;

    get_text(r, "alive", text);
    set_text(r, "seen", "yes");
    store_get(r->store, "never", PATIENCE, text, sizeof text, &size, &r->err);
    SAYS(r, PONS_COMMUNICATION, "rank 1: the connection to the store at 127.0.0.1:");
    SAYS(r, PONS_COMMUNICATION, "('never' was asked for)");
    ck_assert(store_broken(r->store));
    for (int i = 0; i < 3; i++) {
        r->err = (pons_error)PONS_ERROR_INIT;
        store_set(r->store, "k", "v", 1, &r->err);
        SAYS(r, PONS_COMMUNICATION, "has ended ('k' was asked for)");
    }
    ck_assert_double_lt(seconds_now() - start, PATIENCE / 2);
    r->err = (pons_error)PONS_ERROR_INIT;
}

START_TEST(the_end_of_rank_0_ends_every_wait)
{
    pid_t child;
    rank r[2];

    make_ranks(r, 2, 2, PATIENCE, outlive_rank_0);
    child = fork_rank(&r[0], end_suddenly);
    run_ranks(r + 1, 1);
    waitpid(child, NULL, 0);
    ck_assert_msg(r[1].err.status == PONS_OK, "%s", r[1].err.text);
}
END_TEST

static void set_and_stop(rank *r)
{
    char text[64];

    set_text(r, "alive", "yes");
    get_text(r, "seen", text);
    kill(getpid(), SIGSTOP);
}

/* A stopped rank 0 gives no answer; the wait for it is bounded. */
static void ask_the_stopped(rank *r)
{
    double start;
    char text[64];
    size_t size;

    get_text(r, "alive", text);
    set_text(r, "seen", "yes");
    waitpid(r->other, NULL, WUNTRACED);
    start = seconds_now();
    store_get(r->store, "never", 0.2, text, sizeof text, &size, &r->err);
    ck_assert_double_ge(seconds_now() - start, r->timeout_s);
    kill(r->other, SIGCONT);
    SAYS(r, PONS_COMMUNICATION, "does not answer ('never' was asked for)");
    r->err = (pons_error)PONS_ERROR_INIT;
}

START_TEST(the_wait_for_a_stopped_rank_0_is_bounded)
{
    rank r[2];

    make_ranks(r, 2, 2, 5, ask_the_stopped);
    r[1].other = fork_rank(&r[0], set_and_stop);
    run_ranks(r + 1, 1);
    waitpid(r[1].other, NULL, 0);
    ck_assert_msg(r[1].err.status == PONS_OK, "%s", r[1].err.text);
}
END_TEST

/* Count of open file descriptors; 'inherited': one of them survives an exec. */
static int count_descriptors(bool *inherited)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    int count = 0;

    *inherited = false;
    while ((entry = readdir(folder)) != NULL) {
        int fd = atoi(entry->d_name);
        struct sockaddr_storage a;
        socklen_t size = sizeof a;
        count += entry->d_name[0] != '.';
        if (entry->d_name[0] != '.' && getsockname(fd, (struct sockaddr *)&a, &size) == 0
            && (a.ss_family == AF_INET || a.ss_family == AF_INET6)
            && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            *inherited = true;
    }
    closedir(folder);
    return count;
}

static void look_at_descriptors(rank *r)
{
    bool inherited;

    ck_assert_int_gt(count_descriptors(&inherited), 3);
    ck_assert(!inherited);
    exchange_values(r);
}

START_TEST(no_descriptor_is_inherited_or_left_behind)
{
    bool inherited;
    rank r[3];

    make_ranks(r, 3, 3, PATIENCE, look_at_descriptors);
    int before = count_descriptors(&inherited);
    expect_ranks(r, 3);
    ck_assert_int_eq(count_descriptors(&inherited), before);
}
END_TEST

/* ---- unauthenticated peers ------------------------------------------------------------------- */

static int connect_raw(int port)
{
    char why[128];

    return socket_connect("127.0.0.1", port, seconds_now() + PATIENCE, why, sizeof why);
}

static void send_noise(int fd, unsigned seed)
{
    uint8_t noise[700];

    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)((seed = seed * 1103515245u + 12345u) >> 16);
    socket_send(fd, noise, sizeof noise, seconds_now() + 1);
}

static void send_text(int fd, unsigned seed)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n";

    (void)seed;
    socket_send(fd, text, sizeof text - 1, seconds_now() + 1);
}

static void send_little(int fd, unsigned seed)
{
    socket_send(fd, "pons rank 2\n", seed % 12, seconds_now() + 1);
}

static void send_wrong_token(int fd, unsigned seed)
{
    const store_response response = { seed % 2, 2, seed, 1000 };
    uint8_t challenge[STORE_CHALLENGE], bytes[STORE_RESPONSE];

    if (!socket_receive(fd, challenge, sizeof challenge, seconds_now() + 1))
        return;
    store_response_write(&response, "guessed", challenge, bytes);
    socket_send(fd, bytes, sizeof bytes, seconds_now() + 1);
}

/* Open many more connections than may wait, until the test says stop. */
static void disturb_store(int port)
{
    static void (*const manners[])(int fd, unsigned seed) = {
        send_noise, send_text, send_little, send_wrong_token
    };
    enum { KEPT = 200 };
    int kept[KEPT];

    for (unsigned i = 0; ; i++) {
        int fd = connect_raw(port);
        if (fd < 0) {
            pause_for(0.01);
            continue;
        }
        manners[i % 4](fd, i);
        if (i >= KEPT)
            close(kept[i % KEPT]);
        kept[i % KEPT] = fd;
    }
}

START_TEST(unauthenticated_peers_do_not_disturb_the_store)
{
    pid_t child;
    rank r[4];

    make_ranks(r, 4, 4, PATIENCE, wait_and_work);
    child = fork();
    if (child == 0)
        disturb_store(r[0].place.port);
    r[3].delay_s = 1;
    run_ranks(r, 4);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(r[i].err.status == PONS_OK, "rank %d: %s", i, r[i].err.text);
}
END_TEST

/* A replayed response of another process is refused. */
static void replay_response(rank *r)
{
    const store_response response = { 1, 2, 1, 1000 };
    uint8_t first[STORE_CHALLENGE], second[STORE_CHALLENGE], bytes[STORE_RESPONSE];
    int a = connect_raw(r->place.port), b = connect_raw(r->place.port);
    store_message m;

    ck_assert(socket_receive(a, first, sizeof first, seconds_now() + PATIENCE));
    ck_assert(socket_receive(b, second, sizeof second, seconds_now() + PATIENCE));
    ck_assert_int_ne(memcmp(first, second, sizeof first), 0);
    store_response_write(&response, r->place.token, first, bytes);
    ck_assert(socket_send(b, bytes, sizeof bytes, seconds_now() + PATIENCE));
    ck_assert(socket_receive(b, bytes, STORE_HEAD, seconds_now() + PATIENCE));
    ck_assert_int_eq(store_message_read(bytes, STORE_HEAD, &m), STORE_HEAD);
    ck_assert_int_eq(m.kind, STORE_UNAUTHENTICATED);
    ck_assert(!socket_receive(b, bytes, 1, seconds_now() + PATIENCE));
    close(a);
    close(b);
    exchange_values(r);
}

START_TEST(a_replayed_response_is_refused)
{
    expect_work(2, replay_response);
}
END_TEST

/*
 * Rank 1 sends hand-made messages that claim more than the bounds; each ends its own connection
 * only.
 */
static void *claim_too_much(void *context)
{
    static const uint8_t claims[][STORE_HEAD] = {
        { STORE_SET, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0 },         /* 65537 bytes        */
        { STORE_SET, 3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255 },
        { STORE_KINDS, 3, 0, 0, 1 }, { 0, 3, 0, 0, 1 }, { STORE_VALUE, 0, 0, 0, 1 },
        { STORE_GET, 0, 0, 0, 1 }                                           /* no key             */
    };
    const rank *r = context;
    int which = r->place.local_rank;
    const store_response response = { 1, 2, 1, 60000 };
    uint8_t bytes[STORE_MESSAGE_MAX];
    int fd = -1;

    while (fd < 0) {
        fd = connect_raw(r->place.port);
        pause_for(0.01);
    }
    ck_assert(socket_receive(fd, bytes, STORE_CHALLENGE, seconds_now() + PATIENCE));
    uint8_t challenge[STORE_CHALLENGE];
    memcpy(challenge, bytes, sizeof challenge);
    store_response_write(&response, r->place.token, challenge, bytes);
    ck_assert(socket_send(fd, bytes, STORE_RESPONSE, seconds_now() + PATIENCE));
    ck_assert(socket_receive(fd, bytes, STORE_HEAD + strlen("127.0.0.1"),
                             seconds_now() + PATIENCE));
    ck_assert_int_eq(bytes[0], STORE_WELCOME);
    ck_assert(socket_send(fd, claims[which], STORE_HEAD, seconds_now() + PATIENCE));
    ck_assert(!socket_receive(fd, bytes, 1, seconds_now() + PATIENCE));
    close(fd);
    return NULL;
}

START_TEST(a_message_beyond_the_bounds_ends_its_connection)
{
    pthread_t other;
    rank r[2];

    make_ranks(r, 2, 2, PATIENCE, watch_the_lost);
    r[1].place.local_rank = _i;
    ck_assert_int_eq(pthread_create(&other, NULL, claim_too_much, &r[1]), 0);
    ck_assert_int_eq(store_open(&r[0].place, PATIENCE, &r[0].store, &r[0].err), PONS_OK);
    set_text(&r[0], "alive", "yes");
    watch_the_lost(&r[0]);
    pthread_join(other, NULL);
    store_close(r[0].store, 5);
}
END_TEST

/* ---- messages -------------------------------------------------------------------------------- */

START_TEST(a_store_message_reads_back_as_written)
{
    const store_message m = { STORE_SET_FIRST, 0xdeadbeef, 0x01020304, "key", "value", 5 };
    uint8_t bytes[STORE_MESSAGE_MAX];
    store_message back;
    size_t size = store_message_write(&m, bytes);

    ck_assert_uint_eq(size, STORE_HEAD + 3 + 5);
    for (size_t part = 0; part < size; part++)
        ck_assert_int_eq(store_message_read(bytes, part, &back), 0);
    ck_assert_int_eq(store_message_read(bytes, size, &back), (int)size);
    ck_assert_int_eq(back.kind, m.kind);
    ck_assert_uint_eq(back.number, m.number);
    ck_assert_uint_eq(back.extra, m.extra);
    ck_assert_str_eq(back.key, "key");
    ck_assert_uint_eq(back.size, 5);
    ck_assert_int_eq(memcmp(back.value, "value", 5), 0);
}
END_TEST

START_TEST(every_flipped_bit_of_a_response_is_refused)
{
    const store_response response = { 3, 8, 1234, 5000 };
    uint8_t challenge[STORE_CHALLENGE], bytes[STORE_RESPONSE];
    store_response back;

    ck_assert(store_challenge_write(challenge));
    ck_assert(store_challenge_valid(challenge));
    store_response_write(&response, "token", challenge, bytes);
    ck_assert(store_response_read(bytes, "token", challenge, &back));
    ck_assert_int_eq(memcmp(&response, &back, sizeof response), 0);
    ck_assert(!store_response_read(bytes, "toke", challenge, &back));
    ck_assert(!store_response_read(bytes, "tokens", challenge, &back));
    for (int bit = 0; bit < 8 * STORE_RESPONSE; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_msg(!store_response_read(bytes, "token", challenge, &back), "bit %d", bit);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    challenge[STORE_CHALLENGE - 1] ^= 1;
    ck_assert(!store_response_read(bytes, "token", challenge, &back));
}
END_TEST

static void add_values(TCase *c)
{
    tcase_add_test(c, a_store_message_reads_back_as_written);
    tcase_add_test(c, every_flipped_bit_of_a_response_is_refused);
    tcase_add_test(c, ranks_share_values_through_the_store);
    suite_add_test_if(c, has_ipv6(), "IPv6", ranks_join_over_ipv6);
    tcase_add_test(c, one_rank_serves_itself);
    tcase_add_test(c, the_launchers_socket_is_served);
    tcase_add_test(c, a_descriptor_that_does_not_listen_is_refused);
    tcase_add_test(c, the_first_value_set_for_a_key_is_kept);
    tcase_add_test(c, a_waiting_get_blocks_no_other_call);
    tcase_add_test(c, a_missing_value_is_named_after_the_timeout);
    tcase_add_test(c, store_keys_and_values_have_size_limits);
    tcase_add_test(c, a_value_has_the_age_of_its_last_setting);
}

static void add_faults(TCase *c)
{
    tcase_add_test(c, missing_ranks_are_named_to_all_within_the_timeout);
    tcase_add_test(c, the_shortest_timeout_decides_when_missing_ranks_are_named);
    tcase_add_loop_test(c, a_rank_that_comes_late_is_waited_for, 0, 2);
    tcase_add_test(c, an_address_without_a_listener_is_named);
    tcase_add_test(c, an_address_that_is_not_rank_0s_is_named);
    tcase_add_test(c, a_port_that_is_taken_is_named);
    tcase_add_test(c, a_port_of_another_service_is_named);
    tcase_add_test(c, a_rank_of_another_job_is_refused_with_a_message_to_both);
    tcase_add_test(c, a_rank_0_without_file_descriptors_reports_it_at_once);
    tcase_add_test(c, different_world_sizes_are_reported_to_both_at_once);
    tcase_add_test(c, a_duplicate_rank_is_reported_to_all_at_once);
    tcase_add_test(c, a_late_duplicate_rank_is_refused);
    tcase_add_test(c, an_early_restarted_rank_joins_the_next_run);
    tcase_add_test(c, a_rank_that_comes_after_the_timeout_joins_the_next_run);
    tcase_add_test(c, an_earlier_run_does_not_shorten_the_join_timeout);
    tcase_add_test(c, a_rank_that_ends_suddenly_is_lost);
    tcase_add_test(c, a_rank_that_closes_its_store_is_not_lost);
    tcase_add_test(c, the_end_of_rank_0_ends_every_wait);
    tcase_add_test(c, the_wait_for_a_stopped_rank_0_is_bounded);
    tcase_add_test(c, no_descriptor_is_inherited_or_left_behind);
    tcase_add_test(c, unauthenticated_peers_do_not_disturb_the_store);
    tcase_add_test(c, a_replayed_response_is_refused);
    tcase_add_loop_test(c, a_message_beyond_the_bounds_ends_its_connection, 0, 6);
}

int main(void)
{
    TCase *c = suite_new("store");

    add_values(c);
    add_faults(c);
    return suite_run();
}
