/*
 * decimal_comma.c - see decimal_comma.h.
 */
#include "support/process/decimal_comma.h"

#include "support/suite.h"

#include <locale.h>
#include <stdlib.h>

bool decimal_comma_begin(const char *test)
{
    char folder[] = "/tmp/pons-locale-XXXXXX", command[256], text[16];
    bool made;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command,
             "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/said 2>&1", folder, folder);
    made = system(command) == 0;
    setenv("LOCPATH", folder, 1);
    made = made && setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    unsetenv("LOCPATH");
    if (!suite_has(test, made, "de_DE"))
        return false;
    snprintf(text, sizeof text, "%.1f", 1.5);
    ck_assert_str_eq(text, "1,5");
    return true;
}

void decimal_comma_end(void)
{
    setlocale(LC_ALL, "C");
}
