/*
 * machine.c - devices and communicators of this machine, as their plugins describe them.
 */
#include "cli/machine.h"

#include <stdlib.h>
#include <string.h>

#include <pons/comm.h>

#include "base/text/quote.h"
#include "device/device_list.h"
#include "device/device_open.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_search.h"
#include "plugin/plugin_status.h"

/* Print a text behind a name. Further lines are indented to the first. */
static void print_lines(FILE *to, const char *name, const char *text)
{
    quote_print(to, "%-10s ", name);
    for (; *text != '\0'; text++)
        if (*text == '\n')
            fprintf(to, "\n%-10s ", "");
        else
            fputc(*text, to);
    fputc('\n', to);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void print_device(FILE *to, const char *name, const device *d)
{
    const pons_device_facts *f = &d->facts;
    char libraries[2048];

    snprintf(libraries, sizeof libraries, "%s", f->library);
    if (d->operations->describe != NULL)
        d->operations->describe(d->handle, libraries, sizeof libraries);
    quote_print(to, "%-10s %s: %s%s", name, f->name, f->address, f->address[0] != '\0' ? ", " : "");
    if (f->memory_size > 0)
        fprintf(to, "%.1f GiB, ", (double)f->memory_size * 0x1p-30);
    fprintf(to, "%d thread%s", f->threads, f->threads == 1 ? "" : "s");
    fprintf(to, "%s%s%s", f->bf16 ? ", bf16" : "", f->fp16 ? ", fp16" : "",
            f->tf32 ? ", tf32" : "");
    if (libraries[0] != '\0')
        quote_print(to, ", %.2047s", libraries);
    quote_print(to, "\n%-10s %s\n", "", f->features);
}

/* Print device k. All processors are one device ('one'), which runs divide on request. */
static void print_number(FILE *to, const plugin *p, int k, bool one, pons_error *err)
{
    const pons_device_settings settings = { .index = k, .count = one ? 1 : DEVICES_MAX };
    char name[PONS_NAME_SIZE + 16];
    device d;

    if (device_open_plugin(p, &settings, &d, err) != PONS_OK)
        return;
    snprintf(name, sizeof name, one ? "%s" : "%s:%d", p->descriptor->name, k);
    print_device(to, name, &d);
    device_close(&d);
}

/* Print all devices of a plugin. A device that does not open has a line with the reason. */
static void print_all_of(FILE *to, const char *name)
{
    const pons_device_operations *o;
    pons_error err = PONS_ERROR_INIT;
    bool one = strcmp(name, "cpu") == 0;
    int count = one;
    const plugin *p;

    if (plugin_load(PONS_KIND_DEVICE, name, sizeof *o, NULL, &p, &err) != PONS_OK) {
        print_lines(to, name, err.text);
        return;
    }
    o = p->operations;
    if (o->count != NULL)
        count = o->count();
    for (int k = 0; k < DEVICES_MAX && (k == 0 || k < count || (count == 0 && err.text[0] == '\0'));
         k++) {
        err = (pons_error)PONS_ERROR_INIT;
        print_number(to, p, k, one, &err);
        if (err.status != PONS_OK && (k == 0 || k < count))
            print_lines(to, name, err.text);
    }
}

/* ---- communicators --------------------------------------------------------------------------- */

static void print_comm(FILE *to, const char *name)
{
    const pons_comm_operations *o;
    pons_error err = PONS_ERROR_INIT;
    char library[256] = "";
    const plugin *p;

    if (plugin_load(PONS_KIND_COMM, name, sizeof *o, NULL, &p, &err) != PONS_OK) {
        print_lines(to, name, err.text);
        return;
    }
    o = p->operations;
    if (o->available != NULL)
        plugin_status(o->available(&err), "the comm plugin", "available", &err);
    if (err.status != PONS_OK) {
        print_lines(to, name, err.text);
        return;
    }
    if (o->describe != NULL)
        o->describe(library, sizeof library);
    quote_print(to, "%-10s ready%s%s\n", name, library[0] != '\0' ? ", " : "", library);
}

/* ---- plugins of a kind ----------------------------------------------------------------------- */

static pons_status print_kind(FILE *to, pons_kind kind, void (*print)(FILE *to, const char *name),
                              pons_error *err)
{
    plugin_file *files;
    int count, found = 0;

    if (plugin_list(&files, &count, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count; i++) {
        if (files[i].kind != kind)
            continue;
        found++;
        if (files[i].problem != NULL)
            print_lines(to, files[i].name, files[i].problem);
        else
            print(to, files[i].name);
    }
    plugin_list_free(files, count);
    if (found == 0)
        fprintf(to, "%-10s no plugin of this kind is found; PONS_PLUGIN_PATH names folders to "
                "search\n", plugin_kind_name(kind));
    return PONS_OK;
}

pons_status machine_print_devices(FILE *to, pons_error *err)
{
    return print_kind(to, PONS_KIND_DEVICE, print_all_of, err);
}

pons_status machine_print_comms(FILE *to, pons_error *err)
{
    return print_kind(to, PONS_KIND_COMM, print_comm, err);
}
