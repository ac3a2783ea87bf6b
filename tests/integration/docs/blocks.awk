# The examples of Markdown pages, one file each: OUT/PAGE.LINE.KIND, where PAGE has '+' for '/', LINE is the line of
# the block's first line, and KIND is the word behind the fence. Blocks that are indented by four spaces are sorted by
# their text: 'ini' begins with a section or a key, 'sh' has a command in front of a line, 'text' is anything else. A
# line of a file has the spaces of its indentation removed.
#
#   awk -v out=OUT -f blocks.awk PAGE...       in the root of the sources
function kind_of(text) {
    if (text ~ /^(\[[a-z_.]+\]|[a-z_]+ = )/) return "ini"
    if (("\n" text) ~ /\n(pons|cc|make|pip|tensorboard|sbatch|wandb|tests\/|examples\/|\.\/)/ ||
        ("\n" text) ~ /\n[A-Z_]+=[^ ]* /) return "sh"
    return "text"
}
function finish_block() {
    if (begin == 0) return
    name = page
    gsub("/", "+", name)
    file = out "/" name "." begin "." (kind == "" ? kind_of(text) : kind)
    printf "%s", text >file
    close(file)
    begin = 0
    text = ""
}
FNR == 1 { finish_block(); page = FILENAME; fence = 0; before = "" }
/^```/ {
    if (fence) finish_block()
    else { begin = FNR + 1; kind = substr($0, 4); if (kind == "") kind = "text" }
    fence = !fence
    before = $0
    next
}
fence { text = text $0 "\n"; next }
begin == 0 && /^    [^ ]/ && before == "" { begin = FNR; kind = "" }
begin > 0 && /^    / { text = text substr($0, 5) "\n"; before = $0; next }
begin > 0 && /^$/ { text = text "\n"; before = ""; next }
{ finish_block(); before = $0 }
END { finish_block() }
