# Follows the log of a run of the DeepSpeed script line by line, with the expressions that programs look for in it, as document
# 002 shows such a log: each line's words and fields, in this order.  Ends with 1 and a sentence where one is missing, misplaced,
# or contradicts another.  Lines of other forms are whatever else a run says.  Lines that the launcher writes (its hosts, its
# processes) are not among these: one process has no launcher.
# usage: awk -v cards=N -v saves="10 20" -f follow_log.awk LOG; or, to print the name of each line's form: awk -v forms=1 -f
# follow_log.awk LOG
BEGIN {
    number = "-?[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?"
    date = "^DLL [0-9]+-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]\\.[0-9]+ - "
    speed = "average_training_time_step : " number "  average_perf_per_step : " number " ?$"
    at_step = date "Training Epoch: [0-9]+ Training Iteration: [0-9]+  "
    n_saves = split(saves, save, " ")
    stage_of["command"] = 1; stage_of["ranks"] = 2; stage_of["backend"] = 3; stage_of["optimizer"] = 4; stage_of["schedule"] = 5
    stage_of["Config"] = 6; stage_of["SEED"] = 7; stage_of["train_start"] = 8; stage_of["batch_size_per_pu"] = 9
    stage_of["learning_rate"] = 10; stage_of["interval"] = 11; stage_of["progress"] = 11; stage_of["samples"] = 11
    stage_of["zero"] = 11; stage_of["ready"] = 11; stage_of["checkpoint_step"] = 11; stage_of["final"] = 12
    stage_of["summary"] = 13; stage_of["log_file"] = 14; stage_of["topology"] = 15; stage_of["results"] = 16
    stage_of["sentences"] = 17; stage_of["dps"] = 18
}

function bad(text)
{
    if (!wrong && !forms) print "line " NR ": " text
    wrong = 1
}

function found(name)
{
    if (forms) print name
    if (stage_of[name] < stage) bad("the line '" name "' is behind a later one")
    stage = stage_of[name]
    n[name]++
}

# What stands behind the words, up to a space or a comma.
function value(words,    rest)
{
    rest = substr($0, index($0, words) + length(words))
    sub(/[ ,].*/, "", rest)
    return rest
}

function near(a, b) { return a - b < 2e-4 && b - a < 2e-4 }

/ .*pretrain.*--optimizer=lans .*--deepspeed_config=/ { found("command") }
/^Distributed training with backend=[a-z]+, device=[a-z]+, local_rank=[0-9]+$/ { found("ranks"); backend = value("backend=") }
/^\[INFO\] \[[^]]*init_distributed\] Initializing .* with backend [a-z]+$/ {
    found("backend")
    if (value("backend ") != backend) bad("two backends")
}
/^Using LANS$/ { found("optimizer") }
/^Using PolyWarmUpScheduler with args={'warmup': 0\.05, 'total_steps': 155000\.0, 'degree': 1\.0, 'constant': 0\.25}$/ { found("schedule") }
$0 ~ date "PARAMETER Config : \\[\"Namespace\\(.*\\)\"\\] $" { found("Config") }
$0 ~ date "PARAMETER SEED : [0-9]+ ?$" { found("SEED") }
$0 ~ date "PARAMETER train_start : True ?$" { found("train_start") }
$0 ~ date "PARAMETER batch_size_per_pu : [0-9]+ ?$" { found("batch_size_per_pu") }
$0 ~ date "PARAMETER learning_rate : " number " ?$" { found("learning_rate") }
$0 ~ at_step "average_loss : " number "  step_loss : " number "  learning_rate : " number "  " speed {
    found("interval")
    if (value("Iteration: ") <= step + 0) bad("steps do not ascend")
    step = value("Iteration: ")
    sum += value("average_perf_per_step : ")
}
/^\[INFO\] \[[^]]*log_dist\] \[Rank 0\] step=[0-9]+, skipped=[0-9]+, lr=\[[-0-9.e, ]+\], mom=\[\([0-9.]+, [0-9.]+\), \([0-9.]+, [0-9.]+\)\]$/ { found("progress") }
$0 ~ "^\\[INFO\\] \\[[^]]*\\] epoch=[0-9]+/micro_step=[0-9]+/global_step=[0-9]+, RunningAvgSamplesPerSec=" number ", CurrSamplesPerSec=" number { found("samples") }
/^\[INFO\] \[[^]]*_save_zero_checkpoint\] zero checkpoint saved [^ ]+optim[^ ]*$/ {
    found("zero")
    shard = $NF
    if ((getline line < shard) < 0) bad("there is no " shard)
    close(shard)
    if (index(shard, "_" save[n["ready"] + 1] "/") == 0) bad("another checkpoint than is due: " shard)
}
/^\[INFO\] \[[^]]*commit\] (\[Torch\] )?Checkpoint [0-9]+ is ready now!$/ {
    found("ready")
    if (value("Checkpoint ") != save[n["ready"]]) bad("checkpoint " value("Checkpoint ") " is not the one that is due")
}
$0 ~ date "PARAMETER checkpoint_step : [0-9]+ ?$" { found("checkpoint_step") }
$0 ~ at_step "final_loss : " number "  " speed { found("final"); final = value("final_loss : ") }
$0 ~ date " e2e_train_time : " number "  training_sequences_per_second : " number "  final_loss : " number "  raw_train_time : " number " ?$" {
    found("summary")
    if (value("final_loss : ") != final) bad("two final losses")
    if (value("raw_train_time : ") + 0 > value("e2e_train_time : ") + 0) bad("training took longer than everything")
}
/^LOG_FILE   = [^ ]+\.log$/ { found("log_file") }
/^TOPOLOGY   = pretraining$/ { found("topology") }
/^Pretraining phase1 results$/ { found("results") }
/^[0-9]+ card\(s\) average sentences per second:[0-9]+\.[0-9]+$/ {
    found("sentences")
    if ($1 != cards) bad($1 " cards, not " cards)
    all = value("second:")
}
/^average dps: [0-9]+\.[0-9]+$/ {
    found("dps")
    if (!near($3 * cards, all)) bad("dps is not that of a card")
    if (!near($3, sum / n["interval"])) bad("dps is not the mean of average_perf_per_step")
}

END {
    if (forms) exit
    for (name in stage_of) {
        wanted = name ~ /^(zero|ready|checkpoint_step)$/ ? n_saves : 1
        several = name ~ /^(interval|progress|samples)$/
        if (n[name] + 0 < wanted || (!several && n[name] != wanted)) bad("the line '" name "' is there " n[name] + 0 " times")
        else lines += n[name]
    }
    if (!wrong) print lines " lines of " length_of(stage_of) " forms followed"
    exit wrong
}

function length_of(list,    k, i)
{
    for (k in list) i++
    return i
}
