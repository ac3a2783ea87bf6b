/*
 * bench_data.c - the output of pons bench --data: reading, preprocessing, caching, patches.
 */
#include "cli/bench/bench_data.h"

#include <inttypes.h>

#include "base/file/json.h"
#include "bench/measure.h"
#include "bench/measure_data.h"

static double per_second(double count, double seconds)
{
    return seconds > 0 ? count / seconds : 0;
}

static void put_rate(const char *name, double seconds, const char *unit, double count)
{
    printf("\"%s\":{\"seconds\":", name);
    json_put_number(stdout, seconds);
    printf(",\"%s\":", unit);
    json_put_number(stdout, per_second(count, seconds));
}

/* Print the time with all threads that fill the cache, one case at a time. */
static void put_threads(double seconds, const measured_data *m)
{
    printf(",\"threads\":%d,\"megavoxels_per_second_of_threads\":", m->fill_threads);
    json_put_number(stdout, per_second((double)m->voxels * 1e-6, seconds));
    fputs("},", stdout);
}

static void print_json(const measured_data *m)
{
    double million = (double)m->voxels * 1e-6, patches = (double)m->patches;

    printf("{\"cases\":%d,\"voxels\":%" PRId64 ",", m->cases, m->voxels);
    put_rate("read", m->read, "megavoxels_per_second", million);
    put_threads(m->read_threads, m);
    put_rate("preprocess", m->preprocess, "megavoxels_per_second", million);
    put_threads(m->preprocess_threads, m);
    put_rate("cache", m->fill, "megavoxels_per_second", million);
    printf(",\"threads\":%d,\"bytes\":%" PRId64 "},", m->fill_threads, m->cache_size);
    put_rate("patches", m->patch_threads, "per_second", patches);
    printf(",\"threads\":%d,\"count\":%" PRId64 ",\"per_second_of_one_thread\":", m->threads,
           m->patches);
    json_put_number(stdout, per_second(patches, m->patch_alone));
    fputs(",\"processor_seconds_each\":", stdout);
    json_put_number(stdout, m->patches > 0 ? m->patch_processor / patches : 0);
    printf("},\"rounds\":%d,\"differ\":", m->rounds);
    json_put_number(stdout, m->differ);
    puts("}");
}

static void print_table(const measured_data *m)
{
    double million = (double)m->voxels * 1e-6, patches = (double)m->patches;

    printf("%d case%s, %.1f Mvoxel, medians of %d rounds\n", m->cases, m->cases == 1 ? "" : "s",
           million, m->rounds);
    printf("read        %8.1f Mvoxel/s  image and label, one thread\n",
           per_second(million, m->read));
    printf("preprocess  %8.1f Mvoxel/s  with reading, one thread\n",
           per_second(million, m->preprocess));
    if (m->fill_threads > 1) {
        printf("read        %8.1f Mvoxel/s  image and label, %d threads\n",
               per_second(million, m->read_threads), m->fill_threads);
        printf("preprocess  %8.1f Mvoxel/s  with reading, %d threads\n",
               per_second(million, m->preprocess_threads), m->fill_threads);
    }
    printf("cache       %8.1f Mvoxel/s  with both, %d thread%s, %.1f MiB held%s\n",
           per_second(million, m->fill), m->fill_threads, m->fill_threads == 1 ? "" : "s",
           (double)m->cache_size / 1048576, m->fill_rounds < m->rounds ? ", once" : "");
    printf("patches     %8.1f /s        one thread, %" PRId64 " patches, processor %.2f ms each\n",
           per_second(patches, m->patch_alone), m->patches, 1e3 * m->patch_processor / patches);
    if (m->threads > 0)
        printf("patches     %8.1f /s        %d loader thread%s\n",
               per_second(patches, m->patch_threads), m->threads, m->threads == 1 ? "" : "s");
}

pons_status bench_data(config *c, int warm_up, int batches, bool json, logger *l, pons_error *err)
{
    measured_data m;

    if (measure_data(c, warm_up, batches, l, &m, err) != PONS_OK)
        return err->status;
    if (json)
        print_json(&m);
    else
        print_table(&m);
    if (m.differ > MEASURE_DIFFER)
        log_warning(l, "the median of a stage is %.0f %% longer than its fastest round: the "
                    "machine was busy or slowed down, and the rates mean little", 100 * m.differ);
    return PONS_OK;
}
