/*
 * check_gloo.c - the comm plugin 'gloo' between forked processes, over loopback.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/run/comm_suite.h"
#include "support/suite.h"

START_TEST(all_communicator_trials_pass_with_one_to_five_processes)
{
    every_trial_is_passed(false, 5);
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

START_TEST(mismatched_collectives_are_reported_with_both_names)
{
    processes *p = comm_suite_run(3, 0, start_something_else, NULL);

    for (int r = 0; r < 3; r++)
        ck_assert_msg(p->err[r].status == PONS_COMMUNICATION, "rank %d: code %d, '%s'", r,
                      p->code[r], p->err[r].text);
    ck_assert_str_eq(p->err[1].text, "collective 1: rank 1 starts a broadcast of 100 bytes from "
                     "rank 1, rank 0 an all-reduce of 512 bytes (f64)");
    processes_free(p);
}
END_TEST

START_TEST(a_missing_process_is_awaited_until_the_timeout)
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
    processes *p = comm_suite_run(1, 0, come_elsewhere, NULL);

    ck_assert_msg(p->err[0].status == PONS_COMMUNICATION, "code %d, '%s'", p->code[0],
                  p->err[0].text);
    ck_assert_msg(strstr(p->err[0].text, "cannot connect the processes") != NULL, "%s",
                  p->err[0].text);
    processes_free(p);
}
END_TEST

/* ---- unauthenticated peers ------------------------------------------------------------------- */

enum { CROWD = 100 };         /* more than the port serves at a time                              */

/* Connect to the port that a rank has published, send 'size' bytes and keep the connection open. */
static bool connect_unauthenticated(processes *p, int rank, size_t size, char fill)
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

/*
 * The last rank comes late, after unauthenticated peers that send nothing, too much or the wrong
 * bytes.
 */
static pons_status sum_among_strangers(processes *p, int rank, void *context, pons_error *err)
{
    float one = 1;
    comm_party party;
    void *pending;

    for (int i = 0; rank == p->count - 1 && i < CROWD; i++)
        if (!connect_unauthenticated(p, i % rank, 0, 0)
            || (i == 0 && !connect_unauthenticated(p, 0, 4096, 0))
            || (i == 1 && !connect_unauthenticated(p, 1, 128, 'x')))
            return pons_fail(err, PONS_FAILURE, "stranger %d cannot connect", i);
    if (comm_suite_join(p, rank, NULL, &party, err) != PONS_OK)
        return err->status;
    if (party.operations->all_reduce(party.comm, &one, 1, PONS_F32, &pending, err) == PONS_OK)
        comm_end(&party, pending, 20, err);
    if (err->status == PONS_OK && one != (float)p->count)
        pons_fail(err, PONS_FAILURE, "the sum is %g", (double)one);
    return err->status == PONS_OK ? comm_suite_leave(p, &party, err) : err->status;
}

START_TEST(unauthenticated_peers_are_refused_and_sums_stay_correct)
{
    comm_suite_pass(3, sum_among_strangers, NULL);
}
END_TEST

/* A process has the right rank and the wrong secret. */
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

START_TEST(a_process_without_the_secret_is_refused)
{
    processes *p = comm_suite_run(2, 0.5, come_with_another_secret, NULL);

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

START_TEST(a_broken_pipe_during_the_join_ends_no_process)
{
    comm_suite_pass(1, open_with_a_broken_pipe, NULL);
}
END_TEST

/* gloo asks for the address of its peer when it is given a connection, and nobody else asks. */
static bool peers_are_gone;

int getpeername(int file, struct sockaddr *restrict address, socklen_t *restrict size)
{
    if (!peers_are_gone)
        return (int)syscall(SYS_getpeername, file, address, size);
    errno = ENOTCONN;
    return -1;
}

static pons_status join_and_leave(processes *p, int rank, void *context, pons_error *err)
{
    comm_party party;
    int before = dup(0), after;

    peers_are_gone = rank == 1;
    if (comm_suite_join(p, rank, "127.0.0.1", &party, err) == PONS_OK)
        party.operations->close(party.comm);
    after = dup(0);
    if (after != before + 1)
        pons_fail(err, PONS_FAILURE, "files are left open: %d after %d", after, before);
    return err->status;
}

START_TEST(a_connection_that_ends_during_the_join_is_an_error)
{
    processes *p = comm_suite_run(2, 0, join_and_leave, NULL);

    ck_assert_msg(p->err[0].status == PONS_OK, "code %d, '%s'", p->code[0], p->err[0].text);
    ck_assert_msg(p->err[1].status == PONS_COMMUNICATION
                  && strstr(p->err[1].text, "cannot connect the processes: ") != NULL,
                  "code %d, '%s'", p->code[1], p->err[1].text);
    processes_free(p);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("gloo");

    tcase_add_test(c, all_communicator_trials_pass_with_one_to_five_processes);
    comm_suite_add_faults(c, true, NULL);
    tcase_add_test(c, mismatched_collectives_are_reported_with_both_names);
    tcase_add_test(c, a_missing_process_is_awaited_until_the_timeout);
    tcase_add_test(c, an_address_of_another_machine_is_refused);
    tcase_add_test(c, unauthenticated_peers_are_refused_and_sums_stay_correct);
    tcase_add_test(c, a_process_without_the_secret_is_refused);
    tcase_add_test(c, a_broken_pipe_during_the_join_ends_no_process);
    tcase_add_test(c, a_connection_that_ends_during_the_join_is_an_error);
    return suite_run();
}
