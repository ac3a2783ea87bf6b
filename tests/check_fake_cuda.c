/*
 * check_fake_cuda.c - the made-up driver finds what a card would not tell: memory that two streams
 * touch with no edge between them, and that this process touches too early or not at all; also
 * through a graph, each time that it is launched.
 */
#include "fake/fake.h"
#include "suite.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

enum { SIZE = 1 << 16 };

typedef struct CUevent_st *event;
typedef struct CUgraph_st *graph;
typedef struct CUstream_st *stream;

int cuCtxSetCurrent(void *context);
int cuDevicePrimaryCtxRetain(void **out, int device);
int cuMemAlloc_v2(uint64_t *memory, size_t size);
int cuMemHostAlloc(void **memory, size_t size, unsigned flags);
int cuMemFree_v2(uint64_t memory);
int cuMemsetD8_v2(uint64_t memory, unsigned char value, size_t size);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t size, stream s);
int cuStreamCreate(stream *out, unsigned flags);
int cuStreamSynchronize(stream s);
int cuStreamWaitEvent(stream s, event e, unsigned flags);
int cuEventCreate(event *out, unsigned flags);
int cuEventRecord(event e, stream s);
int cuEventSynchronize(event e);
int cuEventElapsedTime(float *out, event from, event to);
int cuStreamBeginCapture_v2(stream s, int mode);
int cuStreamEndCapture(stream s, graph *out);
int cuGraphInstantiateWithFlags(graph *out, graph g, unsigned long long flags);
int cuGraphLaunch(graph g, stream s);
int cuGraphExecDestroy(graph g);
int cuGraphDestroy(graph g);

static stream one, two;
static event edge;
static uint64_t device;
static char *host, *other;

static uint64_t address(const void *memory) { return (uint64_t)(uintptr_t)memory; }

static void open_card(void)
{
    void *context;

    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&context, 0), 0);
    ck_assert_int_eq(cuCtxSetCurrent(context), 0);
    ck_assert_int_eq(cuStreamCreate(&one, 1), 0);
    ck_assert_int_eq(cuStreamCreate(&two, 1), 0);
    ck_assert_int_eq(cuEventCreate(&edge, 2), 0);
    ck_assert_int_eq(cuMemAlloc_v2(&device, SIZE), 0);
    ck_assert_int_eq(cuMemHostAlloc((void **)&host, SIZE, 0), 0);
    ck_assert_int_eq(cuMemHostAlloc((void **)&other, SIZE, 0), 0);
    memset(host, 7, SIZE);
}

START_TEST(streams_with_an_edge_hand_memory_over)
{
    cuMemcpyAsync(device, address(host), SIZE, one);
    cuEventRecord(edge, one);
    cuStreamWaitEvent(two, edge, 0);
    cuMemcpyAsync(address(other), device, SIZE, two);
    cuEventRecord(edge, two);
    ck_assert_int_eq(cuEventSynchronize(edge), 0);
    ck_assert_mem_eq(host, other, SIZE);
    memset(host, 0, SIZE);
}
END_TEST

START_TEST(a_read_without_an_edge_is_found)
{
    cuMemcpyAsync(device, address(host), SIZE, one);
    cuMemcpyAsync(address(other), device, SIZE, two);
}
END_TEST

START_TEST(a_write_beside_a_read_is_found)
{
    cuMemcpyAsync(address(other), device, SIZE, one);
    cuMemcpyAsync(device + 128, address(host), 128, two);
}
END_TEST

START_TEST(an_edge_of_before_does_not_help)
{
    cuEventRecord(edge, one);
    cuMemcpyAsync(device, address(host), SIZE, one);
    cuStreamWaitEvent(two, edge, 0);
    cuMemcpyAsync(address(other), device, SIZE, two);
}
END_TEST

START_TEST(ranges_apart_need_no_edge)
{
    cuMemcpyAsync(device, address(host), 128, one);
    cuMemcpyAsync(address(other), device + 128, 128, two);
    ck_assert_int_eq(cuStreamSynchronize(one), 0);
    ck_assert_int_eq(cuStreamSynchronize(two), 0);
}
END_TEST

/* Both may return before they have ended, and no stream waits for them. */
static void fill(void) { ck_assert_int_eq(cuMemsetD8_v2(device, 3, SIZE), 0); }
static void upload(void) { ck_assert_int_eq(cuMemcpyHtoD_v2(device, "plain", 5), 0); }
static void (*const unordered[])(void) = { fill, upload };

START_TEST(the_default_stream_is_waited_for)
{
    unordered[_i]();
    ck_assert_int_eq(cuStreamSynchronize(NULL), 0);
    cuMemcpyAsync(address(other), device, SIZE, one);
    ck_assert_int_eq(cuStreamSynchronize(one), 0);
    ck_assert_int_eq(other[0], _i == 0 ? 3 : 'p');
}
END_TEST

START_TEST(a_default_stream_that_was_not_is_found)
{
    unordered[_i]();
    cuMemcpyAsync(address(other), device, SIZE, one);
}
END_TEST

START_TEST(events_have_a_time_where_it_was_asked_for)
{
    event timed;
    float milliseconds = -1;

    ck_assert_int_eq(cuEventCreate(&timed, 0), 0);
    ck_assert_int_eq(cuEventElapsedTime(&milliseconds, timed, timed), 400);
    cuEventRecord(timed, one);
    cuEventRecord(edge, one);
    ck_assert_int_eq(cuStreamSynchronize(one), 0);
    ck_assert_int_eq(cuEventElapsedTime(&milliseconds, timed, edge), 400);
    ck_assert_int_eq(cuEventElapsedTime(&milliseconds, timed, timed), 0);
    ck_assert(milliseconds == 0);
}
END_TEST

START_TEST(this_process_cannot_read_the_cards_memory)
{
    ck_assert_int_eq(*(const volatile char *)(uintptr_t)device, 0);
}
END_TEST

START_TEST(a_copy_that_nobody_waited_for_cannot_be_read)
{
    cuMemcpyAsync(address(other), device, SIZE, one);
    ck_assert_int_eq(*(const volatile char *)other, 0);
}
END_TEST

START_TEST(what_a_copy_still_reads_cannot_be_written)
{
    cuMemcpyAsync(device, address(host), SIZE, one);
    *(volatile char *)host = 1;
}
END_TEST

START_TEST(memory_that_was_given_back_is_refused)
{
    ck_assert_int_eq(cuMemFree_v2(device), 0);
    ck_assert_int_ne(cuMemcpyAsync(address(other), device, SIZE, one), 0);
}
END_TEST

/* ---- graphs ---------------------------------------------------------------------------------- */

enum { GLOBAL = 0, THREAD_LOCAL };

/* 'host' to the card to 'other'. */
static graph round_trip(void)
{
    graph captured, out;

    ck_assert_int_eq(cuStreamBeginCapture_v2(one, THREAD_LOCAL), 0);
    ck_assert_int_eq(cuMemcpyAsync(device, address(host), SIZE, one), 0);
    ck_assert_int_eq(cuMemcpyAsync(address(other), device, SIZE, one), 0);
    ck_assert_int_eq(cuStreamEndCapture(one, &captured), 0);
    ck_assert_int_eq(cuGraphInstantiateWithFlags(&out, captured, 0), 0);
    ck_assert_int_eq(cuGraphDestroy(captured), 0);
    return out;
}

START_TEST(a_graph_does_nothing_before_its_launch_and_all_with_each)
{
    graph g = round_trip();

    memset(other, 1, SIZE);
    ck_assert_int_eq(cuStreamSynchronize(one), 0);
    ck_assert_int_eq(other[SIZE - 1], 1);
    for (int i = 2; i < 4; i++) {
        memset(host, i, SIZE);
        ck_assert_int_eq(cuGraphLaunch(g, one), 0);
        ck_assert_int_eq(cuStreamSynchronize(one), 0);
        ck_assert_mem_eq(host, other, SIZE);
    }
    ck_assert_int_eq(cuGraphExecDestroy(g), 0);
}
END_TEST

START_TEST(a_graph_beside_another_stream_is_found)
{
    graph g = round_trip();

    ck_assert_int_eq(cuGraphLaunch(g, one), 0);
    cuMemcpyAsync(device, address(host), 128, two);
}
END_TEST

START_TEST(what_a_graph_has_not_written_yet_cannot_be_read)
{
    ck_assert_int_eq(cuGraphLaunch(round_trip(), one), 0);
    ck_assert_int_eq(*(const volatile char *)other, 0);
}
END_TEST

START_TEST(a_graph_of_memory_that_was_given_back_is_refused)
{
    graph g = round_trip();

    ck_assert_int_eq(cuMemFree_v2(device), 0);
    ck_assert_int_ne(cuGraphLaunch(g, one), 0);
}
END_TEST

static int wait_for_stream(void) { return cuStreamSynchronize(one); }
static int wait_for_event(void) { return cuEventSynchronize(edge); }
static int mark_stream(void) { return cuEventRecord(edge, one); }

static int take_memory(void)
{
    uint64_t more;

    return cuMemAlloc_v2(&more, SIZE);
}

static int copy_plain_memory(void)
{
    char plain[16] = { 0 };

    return cuMemcpyAsync(device, address(plain), sizeof plain, one);
}

/* Refused, and the capture is over. */
static int (*const refused[])(void) = {
    wait_for_stream, wait_for_event, mark_stream, take_memory, copy_plain_memory
};

START_TEST(a_call_that_no_capture_allows_ends_it)
{
    graph captured;

    cuEventRecord(edge, two);
    ck_assert_int_eq(cuStreamBeginCapture_v2(one, _i % 2 ? GLOBAL : THREAD_LOCAL), 0);
    ck_assert_int_eq(refused[_i / 2](), 900);
    ck_assert_int_eq(cuStreamEndCapture(one, &captured), 901);
    ck_assert_ptr_null(captured);
    ck_assert_int_eq(refused[_i / 2](), 0);
}
END_TEST

static void *take_memory_elsewhere(void *context)
{
    void *card;

    cuDevicePrimaryCtxRetain(&card, 0);
    cuCtxSetCurrent(card);
    *(int *)context = take_memory();
    return NULL;
}

START_TEST(other_threads_go_on_beside_a_capture_of_one)
{
    pthread_t thread;
    graph captured;
    int result = -1;

    ck_assert_int_eq(cuStreamBeginCapture_v2(one, _i), 0);
    pthread_create(&thread, NULL, take_memory_elsewhere, &result);
    pthread_join(thread, NULL);
    ck_assert_int_eq(result, _i == GLOBAL ? 900 : 0);
    ck_assert_int_eq(cuStreamEndCapture(one, &captured), _i == GLOBAL ? 901 : 0);
}
END_TEST

/* Read by AddressSanitizer: signals are what is expected here, and what they end leaves memory. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "handle_segv=0:handle_abort=0:detect_leaks=0";
}

int main(void)
{
    TCase *c = suite_new("fake cuda");

    tcase_add_checked_fixture(c, open_card, NULL);
    tcase_add_test(c, streams_with_an_edge_hand_memory_over);
    tcase_add_test(c, ranges_apart_need_no_edge);
    tcase_add_test(c, memory_that_was_given_back_is_refused);
    tcase_add_test_raise_signal(c, a_read_without_an_edge_is_found, SIGABRT);
    tcase_add_test_raise_signal(c, a_write_beside_a_read_is_found, SIGABRT);
    tcase_add_test_raise_signal(c, an_edge_of_before_does_not_help, SIGABRT);
    tcase_add_loop_test(c, the_default_stream_is_waited_for, 0, 2);
    tcase_add_test(c, events_have_a_time_where_it_was_asked_for);
    tcase_add_loop_test_raise_signal(c, a_default_stream_that_was_not_is_found, SIGABRT, 0, 2);
    tcase_add_test_raise_signal(c, this_process_cannot_read_the_cards_memory, SIGSEGV);
    tcase_add_test_raise_signal(c, a_copy_that_nobody_waited_for_cannot_be_read, SIGSEGV);
    tcase_add_test_raise_signal(c, what_a_copy_still_reads_cannot_be_written, SIGSEGV);
    tcase_add_test(c, a_graph_does_nothing_before_its_launch_and_all_with_each);
    tcase_add_test_raise_signal(c, a_graph_beside_another_stream_is_found, SIGABRT);
    tcase_add_test_raise_signal(c, what_a_graph_has_not_written_yet_cannot_be_read, SIGSEGV);
    tcase_add_test(c, a_graph_of_memory_that_was_given_back_is_refused);
    tcase_add_loop_test(c, a_call_that_no_capture_allows_ends_it, 0,
                        2 * (int)(sizeof refused / sizeof *refused));
    tcase_add_loop_test(c, other_threads_go_on_beside_a_capture_of_one, 0, 2);
    return suite_run();
}
