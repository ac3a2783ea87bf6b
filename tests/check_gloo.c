/*
 * check_gloo.c - the comm plugin 'gloo' between forked processes: over loopback, and where they are
 * of one node by the memory that they let each other read.
 */
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "comm_suite.h"
#include "suite.h"

/* Processes with one address: all, none but oneself, pairs. */
enum { ARRANGEMENTS = 3 };
static const int per_node[ARRANGEMENTS] = { 0, 1, 2 };

START_TEST(every_trial_is_passed_by_one_to_five_processes)
{
    every_trial_is_passed(false, 5, per_node[_i]);
}
END_TEST

START_TEST(abort_ends_what_hangs_within_a_second_for_all)
{
    an_abort_ends_what_hangs(per_node[_i]);
}
END_TEST

START_TEST(the_death_of_a_process_ends_the_sums_of_the_others)
{
    for (int count = 2; count <= 4; count++)
        a_death_ends_the_sums(count, per_node[_i]);
}
END_TEST

static pons_status start_something_else(processes *p, int rank, void *context, pons_error *err)
{
    double buffer[64] = { 0 };
    comm_party party;
    void *pending;
    pons_status status;

    if (comm_suite_join(p, rank, "127.0.0.1", &party, err) != PONS_OK)
        return err->status;
    if (party.operations->all_reduce(party.comm, buffer, 64, PONS_F32, &pending, err) == PONS_OK)
        comm_end(&party, pending, 10, err);
    if (rank == 1)
        status = party.operations->broadcast(party.comm, buffer, 100, 1, &pending, err);
    else
        status = party.operations->all_reduce(party.comm, buffer, 64, PONS_F64, &pending, err);
    if (status == PONS_OK && comm_end(&party, pending, 10, err) == PONS_COMM_RUNNING)
        pons_fail(err, PONS_FAILURE, "it hangs");
    party.operations->close(party.comm);
    return err->status;
}

START_TEST(different_collectives_are_named_by_both_names)
{
    processes *p = processes_new(3);

    comm_suite_load();
    processes_start(p, start_something_else, NULL);
    processes_join(p, 20);
    for (int r = 0; r < 3; r++)
        ck_assert_msg(p->err[r].status == PONS_COMMUNICATION, "rank %d: code %d, '%s'", r,
                      p->code[r], p->err[r].text);
    ck_assert_str_eq(p->err[1].text, "collective 1: rank 1 starts a broadcast of 100 bytes from "
                     "rank 1, rank 0 an all-reduce of 512 bytes (f64)");
    processes_free(p);
}
END_TEST

START_TEST(a_process_that_never_comes_is_waited_for_as_long_as_said)
{
    who_never_comes_is_not_waited_for("cannot connect the processes: no connection with rank ");
}
END_TEST

static pons_status come_elsewhere(processes *p, int rank, void *context, pons_error *err)
{
    comm_party party;

    return comm_suite_join(p, rank, "192.0.2.1", &party, err);
}

START_TEST(an_address_of_another_machine_is_refused)
{
    processes *p = processes_new(1);

    comm_suite_load();
    processes_start(p, come_elsewhere, NULL);
    processes_join(p, 20);
    ck_assert_msg(p->err[0].status == PONS_COMMUNICATION, "code %d, '%s'", p->code[0],
                  p->err[0].text);
    ck_assert_msg(strstr(p->err[0].text, "cannot connect the processes") != NULL, "%s",
                  p->err[0].text);
    processes_free(p);
}
END_TEST

/* ---- strangers ------------------------------------------------------------------------------- */

enum { CROWD = 100 };         /* more than are heard at a time                                    */

/* Connect to the port that a rank has published and say 'size' bytes; the connection stays. */
static bool disturb(processes *p, int rank, size_t size, char fill)
{
    char key[32], value[256] = "", bytes[4096];
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int port = 0, fd = socket(AF_INET, SOCK_STREAM, 0);
    size_t got;

    snprintf(key, sizeof key, "gloo.%d", rank);
    memset(bytes, fill, sizeof bytes);
    if (fd < 0 || table_get(p, key, value, sizeof value - 1, &got, NULL) != PONS_OK
        || sscanf(value, "127.0.0.1 %d ", &port) != 1)
        return false;
    to.sin_port = htons((uint16_t)port);
    return connect(fd, (struct sockaddr *)&to, sizeof to) == 0
           && send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* The last rank comes late, behind strangers that say nothing, too much or the wrong thing. */
static pons_status sum_among_strangers(processes *p, int rank, void *context, pons_error *err)
{
    float one = 1;
    comm_party party;
    void *pending;

    for (int i = 0; rank == p->count - 1 && i < CROWD; i++)
        if (!disturb(p, i % rank, 0, 0) || (i == 0 && !disturb(p, 0, 4096, 0))
            || (i == 1 && !disturb(p, 1, 128, 'x')))
            return pons_fail(err, PONS_FAILURE, "stranger %d cannot connect", i);
    if (comm_suite_join(p, rank, NULL, &party, err) != PONS_OK)
        return err->status;
    if (party.operations->all_reduce(party.comm, &one, 1, PONS_F32, &pending, err) == PONS_OK)
        comm_end(&party, pending, 20, err);
    if (err->status == PONS_OK && one != (float)p->count)
        pons_fail(err, PONS_FAILURE, "the sum is %g", (double)one);
    return err->status == PONS_OK ? comm_suite_leave(p, &party, err) : err->status;
}

START_TEST(strangers_at_the_ports_are_turned_away_and_change_nothing)
{
    processes *p = processes_new(3);

    comm_suite_load();
    processes_start(p, sum_among_strangers, NULL);
    processes_join(p, 30);
    processes_check(p);
    processes_free(p);
}
END_TEST

/* The right rank with the wrong secret. */
static pons_status come_with_another_secret(processes *p, int rank, void *context, pons_error *err)
{
    char value[256] = "";
    comm_party party;
    size_t size = 0;

    if (rank == 1 && table_get(p, "gloo.0", value, sizeof value - 1, &size, err) == PONS_OK) {
        value[size - 1] = value[size - 1] == '0' ? '1' : '0';
        table_set(p, "gloo.0", value, size, NULL);
    }
    return comm_suite_join(p, rank, NULL, &party, err);
}

START_TEST(a_process_without_the_secret_does_not_get_in)
{
    processes *p = processes_new(2);

    comm_suite_load();
    p->patience = 0.5;
    processes_start(p, come_with_another_secret, NULL);
    processes_join(p, 20);
    for (int r = 0; r < 2; r++)
        ck_assert_msg(p->err[r].status == PONS_COMMUNICATION
                      && strstr(p->err[r].text, "no connection with rank ") != NULL,
                      "rank %d: code %d, '%s'", r, p->code[r], p->err[r].text);
    processes_free(p);
}
END_TEST

static pons_status set_and_raise(void *context, const char *key, const void *value, size_t size,
                                 pons_error *err)
{
    pthread_kill(pthread_self(), SIGPIPE);
    return table_set(context, key, value, size, err);
}

static pons_status open_with_a_broken_pipe(processes *p, int rank, void *context, pons_error *err)
{
    const pons_comm_operations *o = comm_suite_load();
    const pons_comm_store store = { p, set_and_raise, table_get };
    const pons_comm_rank_info place = { .size = 1, .local_size = 1, .address = "127.0.0.1",
                                        .timeout_s = 10 };
    void *comm;

    signal(SIGPIPE, SIG_DFL);
    if (o->open(&place, &store, &comm, err) == PONS_OK)
        o->close(comm);
    return err->status;
}

START_TEST(a_signal_of_a_broken_pipe_at_the_start_ends_nobody)
{
    processes *p = processes_new(1);

    comm_suite_load();
    processes_start(p, open_with_a_broken_pipe, NULL);
    processes_join(p, 20);
    processes_check(p);
    processes_free(p);
}
END_TEST

/* ---- what goes over the network -------------------------------------------------------------- */

enum { LARGE = 1 << 20 }; /* numbers of a sum: 4 MiB                                              */

static pons_status sum_once(processes *p, int rank, void *context, pons_error *err)
{
    float *buffer = calloc(LARGE, sizeof *buffer);
    comm_party party;
    void *pending;

    if (comm_suite_join(p, rank, NULL, &party, err) != PONS_OK)
        return err->status;
    buffer[LARGE - 1] = (float)(rank + 1);
    if (party.operations->all_reduce(party.comm, buffer, LARGE, PONS_F32, &pending, err) == PONS_OK
        && comm_end(&party, pending, 20, err) == PONS_COMM_RUNNING)
        pons_fail(err, PONS_FAILURE, "the sum hangs");
    if (err->status == PONS_OK && buffer[LARGE - 1] != 3)
        pons_fail(err, PONS_FAILURE, "the sum is %g", (double)buffer[LARGE - 1]);
    if (err->status == PONS_OK)
        comm_suite_leave(p, &party, err);
    free(buffer);
    return err->status;
}

/* A network of this test's own, where nothing else counts. */
static bool enter_own_network(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    int s, code;

    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return false;
    s = socket(AF_INET, SOCK_DGRAM, 0);
    code = s >= 0 ? ioctl(s, SIOCSIFFLAGS, &request) : -1;
    if (s >= 0)
        close(s);
    return code == 0;
}

/* Bytes that the loopback interface has carried. */
static long long loopback_bytes(void)
{
    FILE *file = fopen("/proc/self/net/dev", "re");
    char line[512];
    long long bytes = -1;

    while (file != NULL && bytes < 0 && fgets(line, sizeof line, file) != NULL)
        sscanf(line, " lo: %lld", &bytes);
    if (file != NULL)
        fclose(file);
    ck_assert(bytes >= 0);
    return bytes;
}

static long long bytes_of_a_sum(int processes_per_node)
{
    processes *p = processes_new(2);
    long long before = loopback_bytes();

    p->per_node = processes_per_node;
    processes_start(p, sum_once, NULL);
    processes_join(p, 60);
    for (int r = 0; r < 2; r++)
        ck_assert_msg(p->code[r] == 0, "rank %d: code %d, %s", r, p->code[r], p->err[r].text);
    processes_free(p);
    return loopback_bytes() - before;
}

START_TEST(a_node_does_not_send_its_sums_through_the_network)
{
    long long near, far;

    if (!enter_own_network()) {
        fprintf(stderr, "skipped: no network of its own for this test\n");
        return;
    }
    comm_suite_load();
    near = bytes_of_a_sum(2);
    far = bytes_of_a_sum(1);
    ck_assert_msg(near < LARGE / 4, "%lld bytes", near);
    ck_assert_msg(far > LARGE * (long long)sizeof(float), "%lld bytes", far);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("gloo");

    tcase_add_loop_test(c, every_trial_is_passed_by_one_to_five_processes, 0, ARRANGEMENTS);
    tcase_add_loop_test(c, abort_ends_what_hangs_within_a_second_for_all, 0, ARRANGEMENTS);
    tcase_add_loop_test(c, the_death_of_a_process_ends_the_sums_of_the_others, 0, ARRANGEMENTS);
    tcase_add_test(c, different_collectives_are_named_by_both_names);
    tcase_add_test(c, a_process_that_never_comes_is_waited_for_as_long_as_said);
    tcase_add_test(c, an_address_of_another_machine_is_refused);
    tcase_add_test(c, strangers_at_the_ports_are_turned_away_and_change_nothing);
    tcase_add_test(c, a_process_without_the_secret_does_not_get_in);
    tcase_add_test(c, a_signal_of_a_broken_pipe_at_the_start_ends_nobody);
    tcase_add_test(c, a_node_does_not_send_its_sums_through_the_network);
    return suite_run();
}
