/*
 * check_shm.c - the comm plugin 'shm' between forked processes.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/run/comm_suite.h"
#include "support/suite.h"

START_TEST(all_communicator_trials_pass_with_one_to_five_processes)
{
    every_trial_is_passed(false, 5);
}
END_TEST

START_TEST(a_missing_process_is_awaited_until_the_timeout)
{
    who_never_comes_is_not_waited_for("shm.");
}
END_TEST

/* Counts around one slice per rank and around one piece of a sum. */
static const int counts[] = { 1, 2, 3, 16384, 16385, 65536, 65537 };

static float share_of(int rank, int i)
{
    return 1.0f / (float)(1 + rank * 7919 + i % 1009);
}

static pons_status sum_in_order(processes *p, int rank, void *context, pons_error *err)
{
    int count = *(const int *)context;
    float *x = malloc((size_t)count * sizeof *x);
    comm_party party;
    void *pending;

    for (int i = 0; i < count; i++)
        x[i] = share_of(rank, i);
    if (comm_suite_join(p, rank, NULL, &party, err) != PONS_OK)
        return err->status;
    if (party.operations->all_reduce(party.comm, x, count, PONS_F32, &pending, err) == PONS_OK
        && comm_end(&party, pending, 20, err) == PONS_COMM_RUNNING)
        pons_fail(err, PONS_FAILURE, "the sum hangs");
    for (int i = 0; i < count && err->status == PONS_OK; i++) {
        float expected = share_of(0, i);
        for (int r = 1; r < p->count; r++)
            expected += share_of(r, i);
        if (x[i] != expected)
            pons_fail(err, PONS_FAILURE, "%d of %d: %.9g, expected %.9g", i, count, (double)x[i],
                      (double)expected);
    }
    if (err->status == PONS_OK)
        comm_suite_leave(p, &party, err);
    free(x);
    return err->status;
}

START_TEST(shm_sums_add_the_ranks_in_order)
{
    comm_suite_load();
    for (int count = 2; count <= 4; count++) {
        processes *p = processes_new(count);

        processes_start(p, sum_in_order, (void *)&counts[_i]);
        processes_join(p, 60);
        processes_check(p);
        processes_free(p);
    }
}
END_TEST

/* Rank 1 is not dumpable, so that only root may read its memory. */
static pons_status come_unreadable(processes *p, int rank, void *context, pons_error *err)
{
    comm_party party;

    if (setuid(65534) != 0)
        return pons_fail(err, PONS_FAILURE, "cannot become another user");
    if (rank == 1)
        prctl(PR_SET_DUMPABLE, 0);
    return comm_suite_join(p, rank, NULL, &party, err);
}

START_TEST(unreadable_process_memory_is_refused_with_a_hint)
{
    processes *p = comm_suite_run(2, 2, come_unreadable, NULL);

    ck_assert_msg(p->err[0].status == PONS_COMMUNICATION
                  && strstr(p->err[0].text, "cannot read the memory of rank 1: ") != NULL
                  && strstr(p->err[0].text, "hint: --set distribute.backend=gloo") != NULL,
                  "code %d, '%s'", p->code[0], p->err[0].text);
    ck_assert_int_ne(p->code[1], 0);
    processes_free(p);
}
END_TEST

START_TEST(shm_refuses_processes_of_two_nodes)
{
    const pons_comm_operations *o = comm_suite_load();
    const pons_comm_rank_info place = { .size = 4, .local_size = 2, .address = "127.0.0.1",
                                        .timeout_s = 1 };
    const pons_comm_store store = { NULL };
    pons_error err = PONS_ERROR_INIT;
    void *comm;

    ck_assert_int_eq(o->open(&place, &store, &comm, &err), PONS_CONFIG);
    ck_assert_str_eq(err.text, "the communicator 'shm' joins processes of one node, found 2 of 4 "
                     "here\nhint: --set distribute.backend=gloo");
}
END_TEST

/* ---- bytes on the network -------------------------------------------------------------------- */

enum { LARGE = 1 << 20 }; /* elements of a sum: 4 MiB                                             */

/* A network namespace of this test, with loopback traffic of this test alone. */
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

static void send_datagram(size_t size)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    char *data = calloc(1, size);
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    ck_assert_int_eq(sendto(s, data, size, 0, (struct sockaddr *)&to, sizeof to), (ssize_t)size);
    close(s);
    free(data);
}

START_TEST(the_network_carries_no_sum)
{
    const int count = LARGE;
    long long before, sent;
    processes *p;

    if (!suite_has("the_network_carries_no_sum", enter_own_network(), "a network of its own"))
        return;
    before = loopback_bytes();
    send_datagram(1000);
    ck_assert_int_ge(loopback_bytes() - before, 1000);
    comm_suite_load();
    p = processes_new(2);
    before = loopback_bytes();
    processes_start(p, sum_in_order, (void *)&count);
    processes_join(p, 60);
    for (int r = 0; r < 2; r++)
        ck_assert_msg(p->code[r] == 0, "rank %d: code %d, %s", r, p->code[r], p->err[r].text);
    processes_free(p);
    sent = loopback_bytes() - before;
    ck_assert_msg(sent < LARGE / 4, "%lld bytes", sent);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("shm");

    tcase_add_test(c, all_communicator_trials_pass_with_one_to_five_processes);
    comm_suite_add_faults(c, true, NULL);
    tcase_add_test(c, a_missing_process_is_awaited_until_the_timeout);
    tcase_add_loop_test(c, shm_sums_add_the_ranks_in_order, 0,
                        sizeof counts / sizeof *counts);
    suite_add_test_if(c, getuid() == 0, "root",
                      unreadable_process_memory_is_refused_with_a_hint);
    tcase_add_test(c, shm_refuses_processes_of_two_nodes);
    tcase_add_test(c, the_network_carries_no_sum);
    return suite_run();
}
