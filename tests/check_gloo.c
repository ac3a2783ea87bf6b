/*
 * check_gloo.c - the comm plugin 'gloo' over loopback, between forked processes.
 */
#include "comm_suite.h"
#include "suite.h"

START_TEST(every_trial_is_passed_by_one_to_five_processes)
{
    every_trial_is_passed(false, 5);
}
END_TEST

START_TEST(abort_ends_what_hangs_within_a_second_for_all)
{
    an_abort_ends_what_hangs();
}
END_TEST

START_TEST(the_death_of_a_process_ends_the_sums_of_the_others)
{
    for (int count = 2; count <= 4; count++)
        a_death_ends_the_sums(count);
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
    who_never_comes_is_not_waited_for("cannot connect the processes: nobody has set 'gloo.");
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

int main(void)
{
    TCase *c = suite_new("gloo");

    tcase_add_test(c, every_trial_is_passed_by_one_to_five_processes);
    tcase_add_test(c, abort_ends_what_hangs_within_a_second_for_all);
    tcase_add_test(c, the_death_of_a_process_ends_the_sums_of_the_others);
    tcase_add_test(c, different_collectives_are_named_by_both_names);
    tcase_add_test(c, a_process_that_never_comes_is_waited_for_as_long_as_said);
    tcase_add_test(c, an_address_of_another_machine_is_refused);
    return suite_run();
}
