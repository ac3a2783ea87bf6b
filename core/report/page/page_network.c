/*
 * page_network.c - the table of the network's levels.
 */
#include "report/page/page_internal.h"

#include <inttypes.h>

#include "base/text/text.h"
#include "report/html/page_frame.h"
#include "report/page/network_levels.h"

static void put_level(FILE *to, const report_run *r, const network_level *l)
{
    char bytes[32];

    page_row(to, arena_format(r->memory, "%" PRId64 " x %" PRId64 " x %" PRId64, l->extent[0],
                              l->extent[1], l->extent[2]));
    fprintf(to, "<td class=\"n\">%d</td><td class=\"n\">%" PRId64 "</td><td class=\"n\">%" PRId64
            "</td>", l->products, l->channels, l->parameters);
    page_cell(to, text_amount(l->bytes, "B", bytes));
    page_row(to, NULL);
}

void page_put_network(FILE *to, const report_run *r)
{
    static const char *const column[] = { "extent", "products", "channels", "parameters",
                                          "memory of their results" };
    int64_t parameters = 0;
    network_levels l;

    page_section(to, "network", "Network");
    network_levels_read(r->memory, r->path, &l);
    if (l.count == 0) {
        fputs("<p>The run has no table of its network.</p>\n", to);
        page_section(to, NULL, NULL);
        return;
    }
    page_table_begin(to, "Levels of the network", 5, column);
    for (int i = 0; i < l.count; i++) {
        put_level(to, r, &l.level[i]);
        parameters += l.level[i].parameters;
    }
    page_table_end(to);
    fprintf(to, "<p class=\"soft\">%" PRId64 " parameters. Products are convolutions and matrix "
            "products; the memory is that of a micro-batch, without the tensors between them.</p>"
            "\n", parameters);
    page_section(to, NULL, NULL);
}
