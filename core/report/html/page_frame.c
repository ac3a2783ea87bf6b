/*
 * page_frame.c - the style sheet, for light and dark screens of any width, and the page's parts.
 */
#include "report/html/page_frame.h"

#include <math.h>

#include "report/html/chart.h"
#include "report/html/html.h"

static const char style[] =
    ":root{color-scheme:light dark;--back:#fff;--text:#1b1f24;--soft:#545b64;--line:#d9dde2;"
    "--panel:#f5f6f8;--hover:rgba(0,0,0,.07);--link:#1d4fb8}"
    "@media(prefers-color-scheme:dark){:root{--back:#14171a;--text:#e6e8ea;--soft:#a8b0b8;"
    "--line:#343a41;--panel:#1d2226;--hover:rgba(255,255,255,.1);--link:#8ab4ff}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--text);"
    "font:15px/1.45 system-ui,sans-serif}"
    "header,main,footer{max-width:1500px;margin:0 auto;padding:0 16px}"
    "h1{font-size:1.6em;margin:.8em 0 .2em;overflow-wrap:anywhere}"
    "h2{font-size:1.2em;margin:1.6em 0 .6em;border-bottom:1px solid var(--line);"
    "padding-bottom:.2em}h3{font-size:1em;margin:0 0 .4em;overflow-wrap:anywhere}"
    "p{margin:.4em 0}a{color:var(--link)}small,.soft{color:var(--soft)}"
    "nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 16px;padding:0;margin:.6em 0}"
    "nav a{display:inline-block;padding:4px 0}\n"
    ".grid-box{display:grid;gap:14px;grid-template-columns:repeat(auto-fill,"
    "minmax(min(100%,400px),1fr))}"
    "figure,.card{margin:0;padding:10px 12px;background:var(--panel);border:1px solid var(--line);"
    "border-radius:6px;min-width:0}"
    "figcaption{font-weight:600;margin-bottom:4px}figcaption small{font-weight:400}"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 14px;padding:0;margin:6px 0;"
    "font-size:13px}.legend li{overflow-wrap:anywhere}.last{color:var(--soft)}"
    ".swatch{display:inline-block;width:12px;height:12px;border:1px solid var(--soft);"
    "border-radius:2px;vertical-align:-1px}\n"
    ".scroll{overflow-x:auto;max-width:100%}table{border-collapse:collapse;font-size:14px}"
    "th,td{padding:3px 10px 3px 0;text-align:left;border-bottom:1px solid var(--line);"
    "vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "thead th{color:var(--soft);font-weight:600}"
    "tbody th{font-weight:500;overflow-wrap:anywhere;min-width:7em}"
    ".wrap{overflow-wrap:anywhere}"
    "pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:10px;"
    "overflow-x:auto;font-size:13px;margin:.4em 0}summary{cursor:pointer;padding:4px 0}"
    ".mosaic{width:100%;height:auto;image-rendering:auto;display:block;background:#000;"
    "margin-bottom:4px}"
    ".pair{display:grid;gap:10px;grid-template-columns:repeat(auto-fit,"
    "minmax(min(100%,300px),1fr))}.pair figure{padding:0;border:0}.card+.card{margin-top:14px}"
    ".grid-box .card+.card{margin-top:0}"
    "footer{color:var(--soft);margin:2em auto;font-size:13px}\n";

void page_begin(FILE *to, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "img-src data:; style-src 'unsafe-inline'\">\n<title>", to);
    html_put_text(to, title);
    fputs("</title>\n<style>\n", to);
    fputs(style, to);
    chart_put_style(to);
    fputs("</style>\n</head>\n<body>\n<header>\n<h1>", to);
    html_put_text(to, title);
    fputs("</h1>\n", to);
}

void page_end(FILE *to)
{
    fputs("</main>\n</body>\n</html>\n", to);
}

void page_section(FILE *to, const char *id, const char *heading)
{
    if (id == NULL) {
        fputs("</section>\n", to);
        return;
    }
    fprintf(to, "<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">", id, id);
    html_put_text(to, heading);
    fputs("</h2>\n", to);
}

void page_table_begin(FILE *to, const char *label, int columns, const char *const *column)
{
    fputs("<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"", to);
    html_put_text(to, label);
    fputs("\">\n<table>\n<thead><tr>", to);
    for (int i = 0; i < columns; i++) {
        fputs("<th scope=\"col\">", to);
        html_put_text(to, column[i]);
        fputs("</th>", to);
    }
    fputs("</tr></thead>\n<tbody>\n", to);
}

void page_table_end(FILE *to)
{
    fputs("</tbody>\n</table>\n</div>\n", to);
}

void page_row(FILE *to, const char *name)
{
    if (name == NULL) {
        fputs("</tr>\n", to);
        return;
    }
    fputs("<tr><th scope=\"row\">", to);
    html_put_text(to, name);
    fputs("</th>", to);
}

void page_cell(FILE *to, const char *text)
{
    fputs("<td class=\"wrap\">", to);
    html_put_text(to, text);
    fputs("</td>", to);
}

void page_score(FILE *to, double value)
{
    if (isnan(value))
        fputs("<td class=\"n\">-</td>", to);
    else
        fprintf(to, "<td class=\"n\">%.4f</td>", value);
}

void page_number(FILE *to, double value)
{
    fputs("<td class=\"n\">", to);
    html_put_number(to, value, 4);
    fputs("</td>", to);
}
