/*
 * bench_kernels.c - the time of each kernel, the bytes it moved and the operations it computed in
 * it, and their share of the device's peak.
 */
#include "cli/bench/bench_kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/quote.h"
#include "graph/program/explain.h"

static const char *const section_names[] = { "begin", "micro", "reduce", "update" };

/* The row of a kernel, or of all kernels of one kind and implementation. */
typedef struct row {
    const char *section, *kind, *by, *name;
    int64_t calls;               /* 0: only the baseline has the kernel                           */
    int kernels;
    double seconds, bytes, flop; /* totals of a step                                              */
    double host;                 /* seconds of this process to launch the kernels                 */
    double least;                /* seconds at the device's peak; 0: not known                    */
    double before;               /* seconds in the baseline; NaN: it lacks the kernel             */
} row;

typedef struct rows {
    int count;
    row *row;
    double seconds;              /* sum of all kernels                                            */
} rows;

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

double bench_before(const json_t *before, const char *object, const char *key)
{
    return number_of(json_object_get(before, object), key);
}

static bool is_product(const char *kind)
{
    return strncmp(kind, "convolution", 11) == 0 || strcmp(kind, "matmul") == 0;
}

/* The peak of a kernel. Only products of a type may have special units; sums and maps have none. */
static double flop_of(const pons_device_peak *l, const kernel_facts *k)
{
    double own = k->type == PONS_BF16 ? l->bf16 : k->type == PONS_F16 ? l->fp16
                                                : k->tf32 ? l->tf32 : 0;

    return is_product(k->kind) && own > 0 ? own : l->f32;
}

static double least_seconds(const pons_device_peak *l, const kernel_facts *k)
{
    double flop = flop_of(l, k);

    if (l->copy <= 0 || flop <= 0)
        return 0;
    return fmax((double)k->bytes / l->copy, (double)k->flop / flop);
}

/* ---- the baseline ---------------------------------------------------------------------------- */

static bool is_kernel(const json_t *then, const row *r)
{
    return strcmp(text_of(then, "name"), r->name) == 0
        && strcmp(text_of(then, "kind"), r->kind) == 0
        && strcmp(text_of(then, "section"), r->section) == 0;
}

static const json_t *kernels_of(const json_t *before)
{
    return json_object_get(before, "kernels");
}

bool bench_kernels_timed(const json_t *before)
{
    const json_t *list = kernels_of(before), *k;
    size_t i;

    json_array_foreach(list, i, k)
        if (isnan(number_of(k, "seconds")))
            return false;
    return list == NULL || json_is_array(list);
}

static bool ran_then(const json_t *then)
{
    return number_of(then, "calls") != 0;
}

/* Find each kernel of the baseline. Kernels that only the baseline has get rows at the end. */
static void find_before(rows *all, const json_t *before)
{
    const json_t *list = kernels_of(before), *k;
    int known = all->count;
    size_t n;

    json_array_foreach(list, n, k) {
        row *found = NULL;
        if (!ran_then(k))
            continue;
        for (int i = 0; i < known && found == NULL; i++)
            if (is_kernel(k, all->row + i))
                found = all->row + i;
        if (found != NULL)
            found->before = number_of(k, "seconds");
        else
            all->row[all->count++] = (row){ text_of(k, "section"), text_of(k, "kind"),
                text_of(k, "implementation"), text_of(k, "name"),
                .before = number_of(k, "seconds") };
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The longest kernel comes first. Kernels that only the baseline has come last. */
static int longest_first(const void *a, const void *b)
{
    const row *x = a, *y = b;
    double then_x = fmax(x->before, 0), then_y = fmax(y->before, 0);

    if ((x->calls > 0) != (y->calls > 0))
        return x->calls > 0 ? -1 : 1;
    return x->calls > 0 ? (x->seconds < y->seconds) - (x->seconds > y->seconds)
                        : (then_x < then_y) - (then_x > then_y);
}

static rows rows_new(int kernels, const json_t *before)
{
    size_t count = (size_t)kernels + json_array_size(kernels_of(before)) + 1;

    return (rows){ .row = calloc(count, sizeof(row)) };
}

static rows rows_of_kernels(const measured *m, const json_t *before)
{
    rows all = rows_new(m->kernel_count, before);
    int count = 0;

    for (int i = 0; all.row != NULL && i < m->kernel_count; i++) {
        const measured_kernel *k = m->kernel + i;
        double calls = (double)k->calls;
        all.row[all.count++] = (row){ section_names[k->facts.section], k->facts.kind,
            k->facts.implementation != NULL ? k->facts.implementation : "", k->name, k->calls, 1,
            k->seconds, calls * (double)k->facts.bytes, calls * (double)k->facts.flop,
            k->host_seconds, calls * least_seconds(&m->limits, &k->facts), NAN };
        all.seconds += k->seconds;
    }
    count = all.count;
    if (all.row != NULL) {
        find_before(&all, before);
        qsort(all.row + count, (size_t)(all.count - count), sizeof *all.row, longest_first);
    }
    return all;
}

static row *kind_row(rows *all, const char *kind, const char *by)
{
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->row[i].kind, kind) == 0 && strcmp(all->row[i].by, by) == 0)
            return all->row + i;
    all->row[all->count] = (row){ .kind = kind, .by = by, .before = NAN };
    return all->row + all->count++;
}

/*
 * Rows of kinds. Their times in the baseline come from its own list, because its kernels may have
 * other names or other implementations.
 */
static rows rows_of_kinds(const rows *kernels, const json_t *before)
{
    const json_t *list = kernels_of(before), *then;
    rows all = rows_new(kernels->count, before);
    size_t n;

    all.seconds = kernels->seconds;
    if (all.row == NULL)
        return all;
    for (int i = 0; i < kernels->count && kernels->row[i].calls > 0; i++) {
        const row *k = kernels->row + i;
        row *r = kind_row(&all, k->kind, k->by);
        r->kernels += k->kernels;
        r->calls += k->calls;
        r->seconds += k->seconds;
        r->host += k->host;
        r->bytes += k->bytes;
        r->flop += k->flop;
        r->least += k->least;
    }
    json_array_foreach(list, n, then) {
        if (!ran_then(then))
            continue;
        row *r = kind_row(&all, text_of(then, "kind"), text_of(then, "implementation"));
        r->before = fmax(r->before, 0) + number_of(then, "seconds");
    }
    qsort(all.row, (size_t)all.count, sizeof *all.row, longest_first);
    return all;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put(const char *name, double number)
{
    printf(",\"%s\":", name);
    json_put_number(stdout, number);
}

static void put_limits(const measured *m)
{
    const pons_device_peak *l = &m->limits;

    fputs(",\"limits\":", stdout);
    if (l->copy <= 0) {
        fputs("null", stdout);
        return;
    }
    fputs("{\"copy_bytes_per_second\":", stdout);
    json_put_number(stdout, l->copy);
    put("fp32_flop_per_second", l->f32);
    put("bf16_flop_per_second", l->bf16 > 0 ? l->bf16 : NAN);
    put("fp16_flop_per_second", l->fp16 > 0 ? l->fp16 : NAN);
    put("tf32_flop_per_second", l->tf32 > 0 ? l->tf32 : NAN);
    put("differ", m->limits_differ);
    putchar('}');
}

static void put_row(const rows *all, const row *r, bool compared)
{
    double calls = (double)(r->calls > 0 ? r->calls : 1);

    printf(",\"calls\":%" PRId64, r->calls);
    put("seconds", r->seconds);
    put("share", r->seconds / all->seconds);
    put("bytes", r->bytes / calls);
    put("flop", r->flop / calls);
    put("bytes_per_second", r->bytes / r->seconds);
    put("flop_per_second", r->flop / r->seconds);
    put("of_limit", r->least > 0 ? r->least / r->seconds : NAN);
    if (compared) {
        put("before", r->before);
        put("ratio", r->before / r->seconds);
    }
    putchar('}');
}

static void put_group(const row *r, bool queue)
{
    printf("\"kernels\":%" PRId64, r->calls);
    put("cpu_ns", 1e9 * (queue ? r->host : r->seconds));
    put("gpu_ns", queue ? 1e9 * r->seconds : 0);
    putchar('}');
}

/* Print the kinds with the fields of DLProf's summary: kernels of a step, time on host and GPU. */
static void put_groups(const rows *kernels, bool queue)
{
    rows kinds = rows_of_kinds(kernels, NULL);
    row all = { .calls = 0 };

    for (int i = 0; i < kinds.count; i++) {
        all.calls += kinds.row[i].calls;
        all.seconds += kinds.row[i].seconds;
        all.host += kinds.row[i].host;
    }
    fputs(",\"summary\":{\"all\":{", stdout);
    put_group(&all, queue);
    fputs(",\"groups\":[", stdout);
    for (int i = 0; i < kinds.count; i++) {
        printf("%s\n{\"kind\":\"%s\",\"implementation\":", i > 0 ? "," : "", kinds.row[i].kind);
        json_put_text(stdout, kinds.row[i].by);
        putchar(',');
        put_group(kinds.row + i, queue);
    }
    fputs("]}", stdout);
    free(kinds.row);
}

/* Print the kernels that only the baseline has, from 'r' up to 'end'. */
static void put_gone(const row *r, const row *end)
{
    fputs(",\"gone\":[", stdout);
    for (const row *first = r; r < end; r++) {
        const char *const word[] = { "section", r->section, "kind", r->kind, "name", r->name,
                                     "implementation", r->by };
        fputs(r > first ? ",\n{" : "\n{", stdout);
        for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
            json_put_text(stdout, word[i]);
            putchar(i % 2 == 0 ? ':' : ',');
        }
        fputs("\"before\":", stdout);
        json_put_number(stdout, r->before);
        putchar('}');
    }
    putchar(']');
}

void bench_kernels_json(const measured *m, bool queue, const json_t *before)
{
    rows kernels = rows_of_kernels(m, before);
    int count = 0;

    put_limits(m);
    put("between_seconds", m->between);
    fputs(",\"kernels\":[", stdout);
    for (; count < kernels.count && kernels.row[count].calls > 0; count++) {
        const row *r = kernels.row + count;
        printf("%s\n{\"section\":\"%s\",\"kind\":\"%s\",\"name\":", count > 0 ? "," : "",
               r->section, r->kind);
        json_put_text(stdout, r->name);
        fputs(",\"implementation\":", stdout);
        json_put_text(stdout, r->by);
        put_row(&kernels, r, before != NULL);
    }
    putchar(']');
    if (before != NULL)
        put_gone(kernels.row + count, kernels.row + kernels.count);
    put_groups(&kernels, queue);
    free(kernels.row);
}

/* The first kernel of products with another number of operations in the baseline, or NULL. */
static const row *other_products(const rows *kernels, const json_t *before, double *then)
{
    const json_t *list = kernels_of(before), *k;
    size_t i;

    json_array_foreach(list, i, k)
        for (const row *r = kernels->row; r < kernels->row + kernels->count; r++) {
            if (r->calls == 0 || !is_product(r->kind) || !ran_then(k) || !is_kernel(k, r))
                continue;
            *then = number_of(k, "flop") * number_of(k, "calls");
            if (fabs(*then - r->flop) > 1e-6 * r->flop)
                return r;
        }
    return NULL;
}

void bench_kernels_warn(const measured *m, const char *baseline, const json_t *before,
                        logger *l)
{
    rows kernels = rows_of_kernels(m, before);
    double then = 0;
    const row *other = kernels.row != NULL ? other_products(&kernels, before, &then) : NULL;

    if (other != NULL)
        log_warning(l, "'%s' is of another network, patch or batch: '%s' had %.4g GFLOP, now %.4g",
                    baseline, other->name, then / 1e9, other->flop / 1e9);
    free(kernels.row);
    if (m->limits_differ > MEASURE_DIFFER)
        log_warning(l, "what the device reached before the kernels and after them differs by %.0f "
                    "%%: it was busy or slowed down, and shares of a limit mean little",
                    100 * m->limits_differ);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Print a value, or '-' for an unknown one, like the rate of a kernel that took no time. */
static void print_column(int width, int digits, double value)
{
    if (isfinite(value))
        printf(" %*.*f", width, digits, value);
    else
        printf(" %*s", width, "-");
}

static void print_percent(int digits, double share)
{
    if (isfinite(share))
        printf(" %5.*f%%", digits, 100 * share);
    else
        printf(" %6s", "-");
}

static void print_numbers(const rows *all, const row *r, bool compared)
{
    double seconds = r->calls > 0 ? r->seconds : NAN;

    print_column(9, 3, 1e3 * seconds);
    if (compared) {
        print_column(9, 3, 1e3 * r->before);
        print_column(6, 2, r->before / seconds);
    }
    print_percent(1, seconds / all->seconds);
    print_column(8, 2, 1e-9 * r->bytes / seconds);
    print_column(9, 1, 1e-9 * r->flop / seconds);
    print_percent(0, r->least > 0 ? r->least / seconds : NAN);
}

static void print_head(const char *first, bool compared)
{
    printf("\n%s %9s", first, "ms");
    if (compared)
        printf(" %9s %6s", "before", "ratio");
    printf(" %6s %8s %9s %6s", "share", "GB/s", "GFLOP/s", "limit");
}

static void print_kernels(const rows *all, bool compared)
{
    char first[128];

    snprintf(first, sizeof first, "%-7s %-28s %-16s %5s", "section", "kernel", "by", "calls");
    print_head(first, compared);
    puts("  name");
    for (int i = 0; i < all->count; i++) {
        const row *r = all->row + i;
        quote_print(stdout, "%-7s %-28.28s %-16s %5" PRId64, r->section, r->kind, r->by, r->calls);
        print_numbers(all, r, compared);
        quote_print(stdout, "  %s\n", r->name);
    }
}

static void print_kinds(const rows *all, bool compared)
{
    row sum = { .before = NAN };
    char first[128];

    snprintf(first, sizeof first, "%-28s %-16s %7s", "kind", "by", "kernels");
    print_head(first, compared);
    putchar('\n');
    for (int i = 0; i < all->count; i++) {
        const row *r = all->row + i;
        quote_print(stdout, "%-28.28s %-16s %7d", r->kind, r->by, r->kernels);
        print_numbers(all, r, compared);
        putchar('\n');
        sum.kernels += r->kernels;
        sum.calls += r->calls;
        sum.seconds += r->seconds;
        sum.bytes += r->bytes;
        sum.flop += r->flop;
        sum.least += r->least;
        if (!isnan(r->before))
            sum.before = fmax(sum.before, 0) + r->before;
    }
    printf("%-28s %-16s %7d", "all", "", sum.kernels);
    print_numbers(all, &sum, compared);
    putchar('\n');
}

static void print_limits(const pons_device_peak *l)
{
    const struct { const char *name; double flop; } units[] = {
        { "fp32", l->f32 }, { "bf16", l->bf16 }, { "fp16", l->fp16 }, { "tf32", l->tf32 }
    };

    printf("limits      copy %.1f GB/s", 1e-9 * l->copy);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].flop > 0)
            printf(", %s %.0f GFLOP/s", units[i].name, 1e-9 * units[i].flop);
    putchar('\n');
}

void bench_kernels_table(const measured *m, const json_t *before)
{
    rows kernels = rows_of_kernels(m, before), kinds = rows_of_kinds(&kernels, before);
    bool compared = before != NULL;

    if (m->limits.copy > 0)
        print_limits(&m->limits);
    printf("ms          all calls of a kernel in a step, one after another: median of %d steps\n",
           m->count);
    printf("between     %.3f ms of a step, median, in none of its kernels\n", 1e3 * m->between);
    print_kernels(&kernels, compared);
    print_kinds(&kinds, compared);
    free(kernels.row);
    free(kinds.row);
}
