/*
 * flame_graph.c - profile.svg: ranges as boxes whose width is their time, above the range that they
 * are in (Gregg 2016, doi:10.1145/2909476). Boxes show their times as titles; there is no script.
 */
#include "report/profile/profile_files_internal.h"

#include <inttypes.h>
#include <string.h>

#include "report/html/html.h"

/* Pixels. */
enum { WIDTH = 1200, MARGIN = 10, HEAD = 64, ROW = 18, LETTER = 7 };

/* A box of a smaller width is not drawn, and neither are those above it. */
static const double WIDTH_LEAST = 0.2;

typedef struct flame {
    FILE *to;
    double seconds;              /* of the whole width                                            */
    int levels;
} flame;

static int count_levels(const profile_node *n)
{
    int most = 0;

    for (const profile_node *c = n->child; c != NULL; c = c->next) {
        int levels = count_levels(c);

        most = levels > most ? levels : most;
    }
    return most + 1;
}

static double pixels(const flame *f, double seconds)
{
    return (WIDTH - 2 * MARGIN) * seconds / f->seconds;
}

/* As much of a name as fits, by characters of UTF-8. */
static void put_label(const flame *f, const char *name, double x, int y, double width)
{
    size_t room = width > 3 * LETTER ? (size_t)(width / LETTER) : 0, length = strlen(name);
    char text[256];

    if (room == 0)
        return;
    room = room < sizeof text - 4 ? room : sizeof text - 4;
    if (length <= room)
        snprintf(text, sizeof text, "%s", name);
    else {
        room -= 2;
        while (room > 0 && ((unsigned char)name[room] & 0xc0) == 0x80)
            room--;
        snprintf(text, sizeof text, "%.*s..", (int)room, name);
    }
    fprintf(f->to, "<text x=\"%.2f\" y=\"%d\">", x + 3, y + ROW - 5);
    html_put_text(f->to, text);
    fputs("</text>", f->to);
}

static void put_box(const flame *f, const profile_node *n, double seconds, double x, int level)
{
    double width = pixels(f, seconds);
    int y = HEAD + (f->levels - 1 - level) * ROW;

    fputs("<g><title>", f->to);
    html_put_text(f->to, n->name);
    fprintf(f->to, " (%s): %.6g s, %.2f %%", range_kind_name(n->kind), seconds,
            100 * seconds / f->seconds);
    if (n->calls > 0)
        fprintf(f->to, ", %" PRId64 " calls", n->calls);
    if (n->device_seconds > 0)
        fprintf(f->to, ", %.6g s on the device", n->device_seconds);
    fprintf(f->to, "</title><rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"#%06x\""
            "/>", x, y, width, ROW - 1, range_kind_color(n->kind) & 0xffffffu);
    put_label(f, n->name, x, y, width);
    fputs("</g>\n", f->to);
}

static void put_below(const flame *f, const profile_node *n, double x, int level)
{
    for (const profile_node *c = n->child; c != NULL; c = c->next) {
        if (pixels(f, c->seconds) < WIDTH_LEAST)
            continue;
        put_box(f, c, c->seconds, x, level);
        put_below(f, c, x, level + 1);
        x += pixels(f, c->seconds);
    }
}

static void put_legend(FILE *to)
{
    int x = MARGIN;

    for (int i = 0; i < RANGE_KIND_COUNT; i++) {
        const char *name = range_kind_name((range_kind)i);

        fprintf(to, "<rect x=\"%d\" y=\"40\" width=\"11\" height=\"11\" fill=\"#%06x\"/>"
                "<text x=\"%d\" y=\"50\">%s</text>\n", x,
                range_kind_color((range_kind)i) & 0xffffffu, x + 15, name);
        x += 26 + LETTER * (int)strlen(name);
    }
}

static void put_head(const flame *f, const profile_writing *w)
{
    int height = HEAD + f->levels * ROW + MARGIN;

    fprintf(f->to, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\" font-family=\"monospace\" font-size=\"11\">\n",
            WIDTH, height, WIDTH, height);
    fputs("<title>flame graph of ", f->to);
    html_put_text(f->to, w->of->name);
    fprintf(f->to, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, height);
    fprintf(f->to, "<text x=\"%d\" y=\"22\" font-size=\"14\">", MARGIN);
    html_put_text(f->to, w->of->name);
    fprintf(f->to, ": %" PRId64 " steps, %.4g s of all threads and devices in ranges; widths are "
            "times</text>\n", profile_steps(w->profile), f->seconds);
    put_legend(f->to);
}

void flame_graph_put(FILE *to, const profile_writing *w)
{
    flame f = { .to = to };
    double x = MARGIN;

    for (const profile_track *t = profile_tracks(w->profile); t != NULL; t = t->next) {
        int levels = count_levels(&t->root);

        f.seconds += profile_track_seconds(t);
        f.levels = levels > f.levels ? levels : f.levels;
    }
    put_head(&f, w);
    for (const profile_track *t = profile_tracks(w->profile); t != NULL; t = t->next) {
        double seconds = profile_track_seconds(t);

        if (f.seconds <= 0 || pixels(&f, seconds) < WIDTH_LEAST)
            continue;
        put_box(&f, &t->root, seconds, x, 0);
        put_below(&f, &t->root, x, 1);
        x += pixels(&f, seconds);
    }
    fputs("</svg>\n", to);
}
