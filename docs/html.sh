#!/bin/sh
# The manual as HTML: README.md and docs/*.md, the man pages, and the interface of plugins.
#
#   docs/html.sh SOURCE MANUAL OUT     SOURCE: root of the sources; MANUAL: folder of man pages; OUT is replaced
set -eu
source=$(cd "$1" && pwd) manual=$2 out=$3
for tool in cmark-gfm mandoc doxygen; do
    command -v $tool >/dev/null || {
        echo "make html needs cmark-gfm, mandoc and doxygen (Debian packages of these names): no $tool is here" >&2
        exit 1
    }
done
rm -rf "$out"
mkdir -p "$out/man" "$out/docs/kinds"

style='body{max-width:52em;margin:2em auto;padding:0 1em;font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff}
pre{overflow-x:auto;padding:.6em;background:#f3f3f3}code{font-size:.92em}table{border-collapse:collapse;display:block;
overflow-x:auto}th,td{border:1px solid #bbb;padding:.2em .5em;text-align:left}nav a{margin-right:.8em}
img{max-width:100%}@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#262626}a{color:#8bf}
th,td{border-color:#555}}'

# page TITLE ROOT: the page around the body that comes from the standard input. ROOT leads to the first page.
page() {
    printf '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>%s</title>\n' "$1"
    printf '<meta name="viewport" content="width=device-width, initial-scale=1">'
    printf '<style>%s</style></head><body>\n' "$style"
    printf '<nav><a href="%sindex.html">pons</a><a href="%sman/pons.1.html">commands</a>' "$2" "$2"
    printf '<a href="%sman/pons.ini.5.html">pons.ini</a><a href="%sapi/index.html">interface</a></nav>\n' "$2" "$2"
    cat
    printf '</body></html>\n'
}

# markdown FILE: its body, with links to pages of the manual.
markdown() {
    cmark-gfm -e table "$1" |
        sed 's/\(href="[^":]*\)README\.md/\1index.html/g; s/\(href="[^":]*\)\.md/\1.html/g'
}

pages=$(cd "$source/docs" && ls -- *.md kinds/*.md)
{
    markdown "$source/README.md"
    echo '<h2>Pages</h2><ul>'
    for name in $pages; do
        echo "<li><a href=\"docs/${name%.md}.html\">$(sed -n '1s/^# //p' "$source/docs/$name")</a></li>"
    done
    for path in "$manual"/*.[157]; do
        name=${path##*/}
        echo "<li><a href=\"man/$name.html\">${name%.*}(${name##*.})</a></li>"
    done
    echo '</ul>'
} | page pons "" >"$out/index.html"
markdown "$source/CONTRIBUTING.md" | page CONTRIBUTING "" >"$out/CONTRIBUTING.html"
for name in $pages; do
    case $name in */*) root=../../ ;; *) root=../ ;; esac
    markdown "$source/docs/$name" | page "${name%.md}" $root >"$out/docs/${name%.md}.html"
done
for path in "$manual"/*.[157]; do
    name=${path##*/}
    mandoc -T html -O fragment,man=%N.%S.html "$path" | page "${name%.*}" ../ >"$out/man/$name.html"
done

# Files that pages point at, in the folders where the links look for them.
for name in README.md $(echo "$pages" | sed 's,^,docs/,'); do
    grep -o ']([A-Za-z.][^):#]*)' "$source/$name" | sed "s,^](\(.*\))$,$(dirname "$name")/\1,"
done | sort -u | while read -r link; do
    path=$(realpath -m --relative-to="$source" "$source/$link")
    [ -f "$source/$path" ] || continue
    case $path in *.md) continue ;; esac
    mkdir -p "$out/$(dirname "$path")"
    cp "$source/$path" "$out/$path"
done

# Comments of the headers stand above what they describe, or behind a member.
{
    echo 'PROJECT_NAME = pons' && echo "INPUT = $source/core/pons" && echo "OUTPUT_DIRECTORY = $out"
    echo 'HTML_OUTPUT = api' && echo 'GENERATE_LATEX = NO' && echo 'OPTIMIZE_OUTPUT_FOR_C = YES'
    echo 'EXTRACT_ALL = YES' && echo 'QUIET = YES' && echo 'WARN_IF_UNDOCUMENTED = NO'
    echo 'WARN_AS_ERROR = FAIL_ON_WARNINGS' && echo 'HTML_TIMESTAMP = NO'
    echo 'HAVE_DOT = NO' && echo 'MACRO_EXPANSION = NO' && echo "STRIP_FROM_PATH = $source/core"
    echo "INPUT_FILTER = \"sed -e 's|\\([;,{]\\) */\\* |\\1 /**< |' -e 's|^\\( *\\)/\\*\$|\\1/**|' -e 's|^\\( *\\)/\\* |\\1/** |'\""
} >"$out/Doxyfile"
doxygen "$out/Doxyfile"
rm "$out/Doxyfile"
