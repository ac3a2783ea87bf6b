/*
 * check_arena.c - pieces are aligned, zeroed and apart.
 */
#include "suite.h"

#include "base/arena.h"

#include <stdint.h>
#include <string.h>

START_TEST(pieces_are_aligned_zeroed_and_do_not_overlap)
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

START_TEST(texts_are_copied_and_formatted_whole)
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

int main(void)
{
    TCase *c = suite_new("arena");
    tcase_add_test(c, pieces_are_aligned_zeroed_and_do_not_overlap);
    tcase_add_test(c, texts_are_copied_and_formatted_whole);
    return suite_run();
}
