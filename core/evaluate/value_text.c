/*
 * value_text.c - finite, infinite and undefined values.
 */
#include "evaluate/value_text.h"

#include <math.h>

#include "base/file/json.h"

void value_print(FILE *to, int width, double value)
{
    if (isnan(value))
        fprintf(to, "%*s", width, "-");
    else
        fprintf(to, "%*.4f", width, value);
}

void value_put_json(FILE *to, double value)
{
    if (isinf(value))
        fprintf(to, "\"%sinf\"", value < 0 ? "-" : "");
    else
        json_put_number(to, value);
}
