/*
 * text.c - parse numbers, and guess misspelt names.
 */
#include "base/text/text.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* strtod also accepts blanks, hexadecimals, 'inf' and 'nan'; these are refused. */
static bool read_real(const char *text, double *value, char **end)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double number;

    if (c == (locale_t)0)
        return false;
    number = strtod_l(text, end, c);
    freelocale(c);
    for (const char *p = text; p < *end; p++)
        if (strchr("0123456789+-.eE", *p) == NULL)
            return false;
    if (*end == text || !isfinite(number))
        return false;
    *value = number;
    return true;
}

bool text_real(const char *text, double *value)
{
    char *end;
    double number;

    if (!read_real(text, &number, &end) || *end != '\0')
        return false;
    *value = number;
    return true;
}

bool text_integer(const char *text, int64_t *value)
{
    const char *digits = text + (*text == '-' || *text == '+');
    char *end;
    long long number;

    if (!isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (*end != '\0' || errno == ERANGE)
        return false;
    *value = number;
    return true;
}

bool text_size(const char *text, int64_t *size)
{
    static const struct { const char *name; double factor; } units[] = {
        { "", 1 }, { "B", 1 }, { "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 },
        { "TiB", 0x1p40 }
    };
    char *end;
    double number;

    if (!read_real(text, &number, &end))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        double bytes = number * units[i].factor;
        if (strcmp(end, units[i].name) != 0)
            continue;
        if (fabs(bytes) >= 0x1p62 || bytes != floor(bytes))
            return false;
        *size = (int64_t)bytes;
        return true;
    }
    return false;
}

static int smallest(int a, int b)
{
    return a < b ? a : b;
}

locale_t text_locale_begin(void)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    return c == (locale_t)0 ? c : uselocale(c);
}

void text_locale_end(locale_t before)
{
    if (before != (locale_t)0)
        freelocale(uselocale(before));
}

bool text_ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);

    return size >= tail && strcmp(text + size - tail, end) == 0;
}

const char *text_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

const char *text_amount(double number, const char *unit, char out[32])
{
    static const char *const prefixes[] = { "", "k", "M", "G", "T" };
    int p = 0;

    for (; number >= 999.5 && p < 4; p++)
        number /= 1000;
    snprintf(out, 32, "%.*f %s%s", p == 0 || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2, number,
             prefixes[p], unit);
    return out;
}

int text_distance(const char *a, const char *b)
{
    enum { ROOM = 64 };
    int row[3][ROOM + 1];
    int n = (int)strnlen(a, ROOM), m = (int)strnlen(b, ROOM);

    for (int j = 0; j <= m; j++)
        row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            now[j] = smallest(smallest(last[j], now[j - 1]) + 1,
                              last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = smallest(now[j], before[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

text_guess text_guess_for(const char *wrong)
{
    /* Accept wrong letters up to a third of the name, at least one. */
    int edits = (int)strlen(wrong) / 3;

    return (text_guess){ wrong, NULL, (edits > 0 ? edits : 1) + 1 };
}

void text_guess_try(text_guess *g, const char *candidate)
{
    int distance = text_distance(g->wrong, candidate);
    size_t size = strlen(g->wrong);

    /* The beginning of a name counts as one edit, however much is missing. */
    if (size >= 3 && strncmp(g->wrong, candidate, size) == 0)
        distance = smallest(distance, 1);
    if (distance < g->distance) {
        g->distance = distance;
        g->best = candidate;
    }
}
