/*
 * check_arena.c - allocations are aligned, zeroed and disjoint; a program without memory reports
 * it once.
 */
#include "support/suite.h"

#include "base/arena.h"
#include "base/system/cxx_memory.h"
#include "cluster/watchdog/status_page.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(allocations_are_aligned_zeroed_and_disjoint)
{
    enum { COUNT = 2000 };
    static unsigned char *piece[COUNT];
    static size_t size[COUNT];
    arena *a = arena_new();

    for (size_t i = 0; i < COUNT; i++) {
        size[i] = i % 97 == 0 ? 70000 + i : i * 7 % 300 + 1;
        piece[i] = arena_alloc(a, size[i]);
        ck_assert_uint_eq((uintptr_t)piece[i] % 16, 0);
        for (size_t k = 0; k < size[i]; k++)
            ck_assert_uint_eq(piece[i][k], 0);
        memset(piece[i], (int)(i % 251), size[i]);
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < size[i]; k++)
            ck_assert_uint_eq(piece[i][k], i % 251);
    arena_free(a);
}
END_TEST

START_TEST(arena_texts_are_copied_and_formatted_whole)
{
    arena *a = arena_new();
    char *long_text = arena_format(a, "%0500d|%s", 7, "end");

    ck_assert_str_eq(arena_string(a, "spleen"), "spleen");
    ck_assert_uint_eq(strlen(long_text), 504);
    ck_assert_str_eq(long_text + 500, "|end");
    arena_free(a);
    arena_free(NULL);
}
END_TEST

typedef struct allocation {
    void *(*allocate)(void *from, size_t size);
    void *from;
    size_t size;
} allocation;

/* Exit code of a process that lacks memory for an allocation; 'said' receives its message. */
static int fail_allocation(const allocation *a, char *said, size_t room)
{
    int ends[2], status;

    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        a->allocate(a->from, a->size);
        _exit(0);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], said, room - 1);
    said[got > 0 ? got : 0] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void *allocate_of_arena(void *from, size_t size)
{
    return arena_alloc(from, size);
}

/* The launcher of a rank reports the lack of memory for it. */
START_TEST(a_program_reports_lack_of_memory_and_a_rank_leaves_it_to_its_launcher)
{
    arena *a = arena_new();
    const allocation too_much = { allocate_of_arena, a, SIZE_MAX };
    char said[256];

    unsetenv(STATUS_PAGE_VARIABLE);
    ck_assert_int_eq(fail_allocation(&too_much, said, sizeof said), PONS_DEVICE);
    ck_assert_ptr_nonnull(strstr(said, "error: out of memory"));
    setenv(STATUS_PAGE_VARIABLE, "3 0", 1);
    ck_assert_int_eq(fail_allocation(&too_much, said, sizeof said), PONS_DEVICE);
    ck_assert_str_eq(said, "");
    arena_free(a);
}
END_TEST

START_TEST(an_arena_that_lacked_memory_ends_the_program_at_its_first_allocation)
{
    const allocation any = { allocate_of_arena, NULL, 74 };
    char said[256];

    unsetenv(STATUS_PAGE_VARIABLE);
    ck_assert_int_eq(fail_allocation(&any, said, sizeof said), PONS_DEVICE);
    ck_assert_str_eq(said, "error: out of memory: 74 bytes were asked for\n");
}
END_TEST

/* The 'operator new' of a C++ library, in the process of a command. */
static void *allocate_of_cxx(void *library, size_t size)
{
    void *symbol = dlsym(library, "_Znwm"), *(*operator_new)(size_t);

    cxx_memory_own_process();
    cxx_memory_watch();
    memcpy(&operator_new, &symbol, sizeof operator_new);
    return operator_new(size);
}

START_TEST(a_library_of_cxx_without_memory_ends_the_program_like_an_arena)
{
    const allocation too_much = { allocate_of_cxx, dlopen("libstdc++.so.6", RTLD_NOW),
                                  SIZE_MAX / 4 };
    char said[256];

    ck_assert_ptr_nonnull(too_much.from);
    unsetenv(STATUS_PAGE_VARIABLE);
    ck_assert_int_eq(fail_allocation(&too_much, said, sizeof said), PONS_DEVICE);
    ck_assert_str_eq(said, "error: out of memory\n");
    dlclose(too_much.from);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("arena");
    tcase_add_test(c, allocations_are_aligned_zeroed_and_disjoint);
    tcase_add_test(c, arena_texts_are_copied_and_formatted_whole);
    tcase_add_test(c, a_program_reports_lack_of_memory_and_a_rank_leaves_it_to_its_launcher);
    tcase_add_test(c, an_arena_that_lacked_memory_ends_the_program_at_its_first_allocation);
    tcase_add_test(c, a_library_of_cxx_without_memory_ends_the_program_like_an_arena);
    return suite_run();
}
