/*
 * check_caches.c - the size of the largest cache, as read from a folder in the format of
 * /sys/devices/system/cpu.
 */
#include "support/suite.h"

#include "cpu/cache_size.h"
#include "support/root.h"

#include <sys/stat.h>

static void write_size(int index, const char *size)
{
    char name[32];

    snprintf(name, sizeof name, "index%d", index);
    mkdir(in_root(name), 0777);
    snprintf(name, sizeof name, "index%d/size", index);
    write_text(name, size);
}

START_TEST(the_largest_cache_of_all_levels_is_found)
{
    ck_assert_int_eq(cache_size_largest(root), 0);
    write_size(0, "32K\n");
    ck_assert_int_eq(cache_size_largest(root), 32 << 10);
    write_size(1, "32K\n");
    write_size(2, "1024K\n");
    write_size(3, "32768K\n");
    ck_assert_int_eq(cache_size_largest(root), 32 << 20);
    write_size(4, "48M\n");
    ck_assert_int_eq(cache_size_largest(root), 48 << 20);
}
END_TEST

START_TEST(an_invalid_cache_size_is_ignored)
{
    write_size(0, "");
    write_size(1, "many\n");
    write_size(2, "-4K\n");
    write_size(3, "99999999999999999999K\n");
    ck_assert_int_eq(cache_size_largest(root), 0);
    write_size(4, "4096");
    ck_assert_int_eq(cache_size_largest(root), 4096);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("caches");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, the_largest_cache_of_all_levels_is_found);
    tcase_add_test(c, an_invalid_cache_size_is_ignored);
    return suite_run();
}
