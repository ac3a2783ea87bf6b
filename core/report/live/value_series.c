/*
 * value_series.c - means of equal numbers of values, and their sparkline.
 */
#include "report/live/value_series.h"

#include <math.h>
#include <stdio.h>

#include "base/integer.h"

enum { LEVELS = 8 };

static void halve(value_series *s)
{
    s->count /= 2;
    for (int i = 0; i < s->count; i++)
        s->value[i] = 0.5 * (s->value[2 * i] + s->value[2 * i + 1]);
    s->stride *= 2;
}

void value_series_add(value_series *s, double value)
{
    s->last = value;
    if (!isfinite(value))
        return;
    if (s->stride == 0)
        s->stride = 1;
    s->sum += value;
    if (++s->held < s->stride)
        return;
    s->value[s->count++] = s->sum / (double)s->held;
    s->sum = 0;
    s->held = 0;
    if (s->count == VALUE_SERIES_SIZE)
        halve(s);
}

/* The mean of the values that column 'i' of 'columns' shows. */
static double column_value(const value_series *s, int i, int columns)
{
    int begin = i * s->count / columns, end = max_int((i + 1) * s->count / columns, begin + 1);
    double sum = 0;

    for (int k = begin; k < end; k++)
        sum += s->value[k];
    return sum / (end - begin);
}

static int level_of(double value, double least, double most)
{
    return most > least ? min_int((int)((value - least) / (most - least) * LEVELS), LEVELS - 1) : 0;
}

void value_series_draw(const value_series *s, int columns, bool utf8, char *out, size_t size)
{
    static const char ascii[] = "_.-~=+*#";
    double least = INFINITY, most = -INFINITY;
    size_t used = 0;

    out[0] = '\0';
    columns = min_int(columns, s->count);
    for (int i = 0; i < columns; i++) {
        least = fmin(least, column_value(s, i, columns));
        most = fmax(most, column_value(s, i, columns));
    }
    for (int i = 0; i < columns && used + sizeof "\xe2\x96\x81" <= size; i++) {
        int level = level_of(column_value(s, i, columns), least, most);
        const char block[] = { '\xe2', '\x96', (char)(0x81 + level), '\0' };
        const char letter[] = { ascii[level], '\0' };

        used += (size_t)snprintf(out + used, size - used, "%s", utf8 ? block : letter);
    }
}
