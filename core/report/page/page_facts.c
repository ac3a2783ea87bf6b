/*
 * page_facts.c - the plugins and versions of a run, its settings, and the command that repeats it.
 */
#include "report/page/page_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/shell_word.h"
#include "report/html/html.h"
#include "report/html/page_frame.h"

/* Split "unet 1.0 sha256 ..." into cells. */
static void put_plugin(FILE *to, const report_run *r, const char *kind, const char *rest)
{
    char *copy = arena_string(r->memory, rest), *hash = strstr(copy, " sha256 ");
    char *version;

    if (hash == NULL)
        return;
    *hash = '\0';
    version = strchr(copy, ' ');
    if (version != NULL)
        *version++ = '\0';
    page_row(to, copy);
    page_cell(to, kind);
    page_cell(to, version != NULL ? version : "");
    fputs("<td class=\"wrap\"><code>", to);
    html_put_text(to, hash + strlen(" sha256 "));
    fputs("</code></td>", to);
    page_row(to, NULL);
}

/* Comments "model unet 1.0 sha256 ..." of resolved.ini. */
static void put_plugins(FILE *to, const report_run *r)
{
    static const char *const column[] = { "name", "kind", "version", "sha256" };

    page_table_begin(to, "Plugins", 4, column);
    for (int i = 0; i < r->comment_count; i++) {
        char *kind = arena_string(r->memory, r->comment[i]), *rest = strchr(kind, ' ');

        if (rest == NULL || strstr(rest, " sha256 ") == NULL)
            continue;
        *rest = '\0';
        put_plugin(to, r, kind, rest + 1);
    }
    page_table_end(to);
}

static void put_versions(FILE *to, const report_run *r)
{
    static const char *const column[] = { "part", "version" };

    page_table_begin(to, "Versions", 2, column);
    for (int i = 0; i < r->fact_count; i++) {
        if (strncmp(r->fact[i].name, "plugin ", 7) == 0)
            continue;
        page_row(to, r->fact[i].name);
        page_cell(to, r->fact[i].value);
        page_row(to, NULL);
    }
    if (report_run_comment(r, "run") != NULL) {
        page_row(to, "run");
        page_cell(to, report_run_comment(r, "run"));
        page_row(to, NULL);
    }
    page_table_end(to);
}

static void put_command(FILE *to, const report_run *r)
{
    char file[4096], name[1024], *whole = realpath(r->path, NULL);

    shell_word_bare(file, sizeof file, arena_format(r->memory, "%s/resolved.ini",
                    whole != NULL ? whole : r->path));
    free(whole);
    shell_word_bare(name, sizeof name, arena_format(r->memory, "experiment.name=%s-again",
                    report_run_setting(r, "experiment", "name")));
    page_section(to, "repeat", "Run it again");
    fputs("<pre tabindex=\"0\">pons train ", to);
    html_put_text(to, file);
    fputs(" --set ", to);
    html_put_text(to, name);
    fputs("</pre>\n", to);
    page_section(to, NULL, NULL);
}

static void put_settings(FILE *to, const report_run *r)
{
    page_section(to, "settings", "Settings");
    if (r->resolved[0] == '\0')
        fputs("<p>The run has no resolved.ini.</p>\n", to);
    else {
        fputs("<details>\n<summary>resolved.ini, with the origin of each value</summary>\n"
              "<pre tabindex=\"0\">", to);
        html_put_text(to, r->resolved);
        fputs("</pre>\n</details>\n", to);
    }
    page_section(to, NULL, NULL);
}

void page_put_facts(FILE *to, const report_run *r)
{
    page_section(to, "plugins", "Plugins and versions");
    put_plugins(to, r);
    put_versions(to, r);
    page_section(to, NULL, NULL);
    put_settings(to, r);
    put_command(to, r);
}
