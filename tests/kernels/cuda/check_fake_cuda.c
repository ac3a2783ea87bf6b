/*
 * check_fake_cuda.c - the made-up driver finds races that a GPU does not report. Two streams access
 * memory without an event between them. The host accesses memory too early, or device memory at
 * all. The same accesses are found in every launch of a graph.
 */
#include "fake/fake.h"
#include "support/suite.h"

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

START_TEST(streams_with_an_event_between_them_share_memory)
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

START_TEST(a_read_without_an_event_is_found)
{
    cuMemcpyAsync(device, address(host), SIZE, one);
    cuMemcpyAsync(address(other), device, SIZE, two);
}
END_TEST

START_TEST(a_write_concurrent_with_a_read_is_found)
{
    cuMemcpyAsync(address(other), device, SIZE, one);
    cuMemcpyAsync(device + 128, address(host), 128, two);
}
END_TEST

START_TEST(an_earlier_event_does_not_order_a_later_access)
{
    cuEventRecord(edge, one);
    cuMemcpyAsync(device, address(host), SIZE, one);
    cuStreamWaitEvent(two, edge, 0);
    cuMemcpyAsync(address(other), device, SIZE, two);
}
END_TEST

START_TEST(disjoint_ranges_need_no_event)
{
    cuMemcpyAsync(device, address(host), 128, one);
    cuMemcpyAsync(address(other), device + 128, 128, two);
    ck_assert_int_eq(cuStreamSynchronize(one), 0);
    ck_assert_int_eq(cuStreamSynchronize(two), 0);
}
END_TEST

/* Operations that may return before they have completed, and that no stream waits for. */
static void fill_memory(void) { ck_assert_int_eq(cuMemsetD8_v2(device, 3, SIZE), 0); }
static void upload_memory(void) { ck_assert_int_eq(cuMemcpyHtoD_v2(device, "plain", 5), 0); }
static void (*const unordered[])(void) = { fill_memory, upload_memory };

START_TEST(a_synchronized_default_stream_is_safe)
{
    unordered[_i]();
    ck_assert_int_eq(cuStreamSynchronize(NULL), 0);
    cuMemcpyAsync(address(other), device, SIZE, one);
    ck_assert_int_eq(cuStreamSynchronize(one), 0);
    ck_assert_int_eq(other[0], _i == 0 ? 3 : 'p');
}
END_TEST

START_TEST(an_unsynchronized_default_stream_is_found)
{
    unordered[_i]();
    cuMemcpyAsync(address(other), device, SIZE, one);
}
END_TEST

START_TEST(events_have_a_time_if_timing_is_enabled)
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

START_TEST(the_host_cannot_read_device_memory)
{
    ck_assert_int_eq(*(const volatile char *)(uintptr_t)device, 0);
}
END_TEST

START_TEST(an_unsynchronized_copy_cannot_be_read)
{
    cuMemcpyAsync(address(other), device, SIZE, one);
    ck_assert_int_eq(*(const volatile char *)other, 0);
}
END_TEST

START_TEST(the_source_of_a_pending_copy_cannot_be_written)
{
    cuMemcpyAsync(device, address(host), SIZE, one);
    *(volatile char *)host = 1;
}
END_TEST

START_TEST(freed_device_memory_is_refused)
{
    ck_assert_int_eq(cuMemFree_v2(device), 0);
    ck_assert_int_ne(cuMemcpyAsync(address(other), device, SIZE, one), 0);
}
END_TEST

/* ---- graphs ---------------------------------------------------------------------------------- */

enum { GLOBAL = 0, THREAD_LOCAL };

/* A graph that copies 'host' to the device and from there to 'other'. */
static graph capture_round_trip(void)
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

START_TEST(a_graph_runs_completely_with_each_launch)
{
    graph g = capture_round_trip();

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

START_TEST(a_graph_concurrent_with_another_stream_is_found)
{
    graph g = capture_round_trip();

    ck_assert_int_eq(cuGraphLaunch(g, one), 0);
    cuMemcpyAsync(device, address(host), 128, two);
}
END_TEST

START_TEST(the_output_of_a_pending_graph_cannot_be_read)
{
    ck_assert_int_eq(cuGraphLaunch(capture_round_trip(), one), 0);
    ck_assert_int_eq(*(const volatile char *)other, 0);
}
END_TEST

START_TEST(a_graph_of_freed_memory_is_refused)
{
    graph g = capture_round_trip();

    ck_assert_int_eq(cuMemFree_v2(device), 0);
    ck_assert_int_ne(cuGraphLaunch(g, one), 0);
}
END_TEST

static int wait_for_stream(void) { return cuStreamSynchronize(one); }
static int wait_for_event(void) { return cuEventSynchronize(edge); }
static int record_event(void) { return cuEventRecord(edge, one); }

static int allocate_memory(void)
{
    uint64_t more;

    return cuMemAlloc_v2(&more, SIZE);
}

static int copy_plain_memory(void)
{
    char plain[16] = { 0 };

    return cuMemcpyAsync(device, address(plain), sizeof plain, one);
}

/* Calls that are refused during a capture and end it. */
static int (*const refused[])(void) = {
    wait_for_stream, wait_for_event, record_event, allocate_memory, copy_plain_memory
};

START_TEST(a_call_that_is_illegal_in_a_capture_ends_it)
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

static void *allocate_in_thread(void *context)
{
    void *card;

    cuDevicePrimaryCtxRetain(&card, 0);
    cuCtxSetCurrent(card);
    *(int *)context = allocate_memory();
    return NULL;
}

START_TEST(a_thread_local_capture_leaves_other_threads_alone)
{
    pthread_t thread;
    graph captured;
    int result = -1;

    ck_assert_int_eq(cuStreamBeginCapture_v2(one, _i), 0);
    pthread_create(&thread, NULL, allocate_in_thread, &result);
    pthread_join(thread, NULL);
    ck_assert_int_eq(result, _i == GLOBAL ? 900 : 0);
    ck_assert_int_eq(cuStreamEndCapture(one, &captured), _i == GLOBAL ? 901 : 0);
}
END_TEST

/*
 * Options that AddressSanitizer reads. Tests expect signals, and a process that a signal ends leaks
 * memory.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "handle_segv=0:handle_abort=0:detect_leaks=0";
}

int main(void)
{
    TCase *c = suite_new("fake cuda");

    tcase_add_checked_fixture(c, open_card, NULL);
    tcase_add_test(c, streams_with_an_event_between_them_share_memory);
    tcase_add_test(c, disjoint_ranges_need_no_event);
    tcase_add_test(c, freed_device_memory_is_refused);
    tcase_add_test_raise_signal(c, a_read_without_an_event_is_found, SIGABRT);
    tcase_add_test_raise_signal(c, a_write_concurrent_with_a_read_is_found, SIGABRT);
    tcase_add_test_raise_signal(c, an_earlier_event_does_not_order_a_later_access, SIGABRT);
    tcase_add_loop_test(c, a_synchronized_default_stream_is_safe, 0, 2);
    tcase_add_test(c, events_have_a_time_if_timing_is_enabled);
    tcase_add_loop_test_raise_signal(c, an_unsynchronized_default_stream_is_found, SIGABRT, 0, 2);
    tcase_add_test_raise_signal(c, the_host_cannot_read_device_memory, SIGSEGV);
    tcase_add_test_raise_signal(c, an_unsynchronized_copy_cannot_be_read, SIGSEGV);
    tcase_add_test_raise_signal(c, the_source_of_a_pending_copy_cannot_be_written, SIGSEGV);
    tcase_add_test(c, a_graph_runs_completely_with_each_launch);
    tcase_add_test_raise_signal(c, a_graph_concurrent_with_another_stream_is_found, SIGABRT);
    tcase_add_test_raise_signal(c, the_output_of_a_pending_graph_cannot_be_read, SIGSEGV);
    tcase_add_test(c, a_graph_of_freed_memory_is_refused);
    tcase_add_loop_test(c, a_call_that_is_illegal_in_a_capture_ends_it, 0,
                        2 * (int)(sizeof refused / sizeof *refused));
    tcase_add_loop_test(c, a_thread_local_capture_leaves_other_threads_alone, 0, 2);
    return suite_run();
}
