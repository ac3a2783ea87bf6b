# The C sources in docs/kinds/KIND.md, as tables for command_plugin_new.c. A source begins with a comment that names
# its file: /* KIND/NAME.c - ...; the first of a page is the plugin of that kind.
BEGIN { print "/* Generated from docs/kinds by core/cli/plugin/templates.awk. */" }
/^```c$/ { code = 1; named = 0; next }
/^```$/ { if (code) print "    NULL\n};"; code = 0 }
!code { next }
!named {
    named = 1
    page = FILENAME; sub(/.*\//, "", page); sub(/\.md$/, "", page)
    split($2, part, /[\/.]/)
    rows = rows sprintf("    { \"%s\", \"%s\", \"%s\", template_%d },\n", page, part[1], part[2], ++count)
    printf "static const char *const template_%d[] = {\n", count
    sub(part[1] "/", "")
}
{ gsub(/["\\]/, "\\\\&"); print "    \"" $0 "\"," }
END { printf "static const plugin_template templates[] = {\n%s    { NULL, NULL, NULL, NULL }\n};\n", rows }
