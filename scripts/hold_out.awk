# Cuts documents, lines of JSON of `kiln prepare --format text`, into parts of at most 50 lines of text, and holds out every tenth part.
#
#   awk -v OUT=DIR -f hold_out.awk documents.jsonl       writes DIR/train.jsonl and DIR/heldout.jsonl

function write_part()
{
    if (part == "") return
    n_kept = split(part, kept, "\001")
    for (k = 2; k <= n_kept; k++) kept[1] = kept[1] "\\\\" kept[k]
    print "{\"text\": \"" kept[1] "\"}" > (OUT (++n_parts % 10 == 0 ? "/heldout.jsonl" : "/train.jsonl"))
    part = ""
}

{
    sub(/^.*"text": "/, "")
    sub(/"}$/, "")
    gsub(/\\\\/, "\001") # so that what is left of "\n" ends a line
    n_lines = split($0, lines, /\\n/)
    for (i = 1; i <= n_lines; i++) {
        part = part (part == "" ? "" : "\\n") lines[i]
        if (i % 50 == 0) write_part()
    }
    write_part()
}
