# Names of commands, flags, sections and keys that the program does not have, a line each.
#
#   pons help --list | awk -f words.awk - LINES       LINES: 'WHERE<tab>TEXT', TEXT as it stands on a page
#
# A TEXT is a command, or a key of the INI file such as '[train] steps = 4'. Behind '--' a launched command begins.
BEGIN { FS = "\t"; split("set verbose quiet color debug help version", common, " "); for (i in common) any[common[i]] }
FILENAME == "-" {
    name = $3
    gsub("_", "-", name)
    if ($1 ~ /^pons/) { command[$1]; flag[$1, name] }
    else { section = $1; sub(/\.NAME$/, "", section); key[section, $3]; part[section] }
    next
}
function wrong(what) { print $1 ": " what ": " $2 }
function key_check(place, name,    section) {
    section = place
    sub(/\..*/, "", section)
    if (!(section in part)) wrong("no section [" section "]")
    else if (!((section, name) in key) &&
             !(section ~ /^(augment|preprocess)$/ && name ~ /^(plugin|cases|channels)$/)) wrong("no key '" name "'")
}
function set_check(text,    dot, place, name) {
    sub(/=.*/, "", text)
    dot = match(text, /\.[a-z_0-9]+$/)
    if (dot > 0) key_check(substr(text, 1, dot - 1), substr(text, dot + 1))
}
# Commands of one or two words; those without flags are not in the list.
function command_of(i,    two) {
    two = "pons " word[i] " " word[i + 1]
    if (two in command || two ~ /^pons plugin (list|show)$/) return two
    two = "pons " word[i]
    if (two in command || two ~ /^pons (config|devices|doctor)$/) return two
    if (two ~ /^pons (data|plugin)$/ && word[i + 1] !~ /^[a-z]/) return two
    return ""
}
function line_check(text,    count, i, now, name) {
    sub(/ #.*/, "", text)
    gsub(/["'()]/, " ", text)
    count = split(text, word, /[ ,]+/)
    now = ""
    for (i = 1; i <= count; i++) {
        if (word[i] == "pons" || (word[i] == "--" && now != "")) {
            if (word[i + 1] ~ /^[a-z]/) {
                now = command_of(i + 1)
                if (now == "") wrong("no command '" word[i + 1] "'")
            }
        } else if (word[i] ~ /^(&&|\|\||\||;)$/)
            now = ""
        else if (now != "" && word[i] ~ /^--[a-z]/) {
            name = substr(word[i], 3)
            sub(/[=.:;].*/, "", name)
            if (!((now, name) in flag) && !(name in any)) wrong("'" now "' has no flag '--" name "'")
            if (name == "set") set_check(word[i + 1])
        }
    }
}
$2 ~ /^\[[a-z_.]+\] [a-z_0-9]+( = .*)?$/ {
    place = $2
    sub(/^\[/, "", place)
    sub(/\].*/, "", place)
    name = $2
    sub(/^\[[^]]*\] /, "", name)
    sub(/ = .*/, "", name)
    key_check(place, name)
    next
}
{ line_check($2) }
