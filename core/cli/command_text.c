/*
 * command_text.c - descriptions, arguments and examples of the commands.
 */
#include "cli/command_text.h"

#include <string.h>

#define INI_FILE { "FILE.ini", "The file of the training, pons.ini(5)." }
#define RUN_FOLDER { "RUN", "The folder of a run, such as runs/liver." }

static const command_text texts[] = {
    { "init",
      "Reads every case of a dataset, plans spacing, patch, batch and network by the rules of "
      "nnU-Net or MONAI and by the memory of the device, and writes a file that trains as it "
      "stands. The run gets the name of the file. Values of --set win over the plan and are "
      "written.",
      { { "DATASET", "A folder or a list of cases: nnU-Net, Medical Segmentation Decathlon, BIDS, "
                     "BraTS, a list in JSON or CSV. Loose files are named by patterns instead, "
                     "with --set data.image and data.label." } },
      { { "pons init Task03_Liver -o liver.ini", "Plan as nnU-Net does." },
        { "pons init Task03_Liver -o liver.ini --memory 8GiB", "Plan for a smaller device." },
        { "pons init -o ct.ini --set data.image='ct/*.nii.gz' \\\n"
          "    --set data.label='seg/*.nii.gz' --set data.labels='background:0 liver:1'",
          "Name loose files." } } },
    { "train",
      "Trains into the folder runs/NAME: checkpoints, metrics.jsonl, log.txt, resolved.ini, a "
      "report. A run that was stopped goes on where it was when the same command is given again. "
      "All lines, also those of progress, go to the standard error and with their time to "
      "log.txt; the standard output stays empty. The first Ctrl-C saves and ends with status 75.",
      { INI_FILE },
      { { "pons train liver.ini", "Train, or go on." },
        { "pons train liver.ini --set train.epochs=50 --set experiment.name=short",
          "Change values for one run." },
        { "pons train liver.ini --folds 5", "Cross-validate." },
        { "pons train other.ini --resume runs/liver", "Begin with the state of another run." } } },
    { "launch",
      "Starts ranks of a training on this node and ends all of them when one fails. Each node of "
      "several runs the same command with its own --node-rank.",
      { { "-- train FILE.ini", "The command of each rank, with its flags." } },
      { { "pons launch -n 2 -- train liver.ini", "Two ranks on this machine." },
        { "pons launch -n 4 --nodes 2 --node-rank 0 --master node0:29500 \\\n"
          "    -- train liver.ini",
          "The first of two nodes with four ranks each." } } },
    { "predict",
      "Reads images, applies the preprocessing of the training, and writes labels on the grid of "
      "the images. Several runs, or the folds of one, are an ensemble: their probabilities are "
      "averaged.",
      { { "RUN[,RUN...]", "Folders of runs, a bare weights file with --config, or a trained folder "
                          "of nnU-Net." },
        { "IMAGE[,CHANNEL...]", "The files of one case, one for each channel, in the order of "
                                "training; or a dataset, an INI file, a folder or a pattern of "
                                "volumes in quotes. It may repeat." } },
      { { "pons predict runs/liver ct.nii.gz -o liver.nii.gz", "One scan." },
        { "pons predict runs/tumour t1.nii.gz,t2.nii.gz -o tumour.nii.gz",
          "A case of two channels." },
        { "pons predict runs/liver scans -o labels", "All volumes of a folder." },
        { "pons predict runs/a,runs/b ct.nii.gz -o liver.nii.gz", "An ensemble." } } },
    { "import",
      "Writes the weights of a file of PyTorch, a MONAI bundle or a checkpoint of nnU-Net as "
      "safetensors with the names of the network in FILE.ini. A training begins with them by "
      "'[train] pretrained'.",
      { { "WEIGHTS", "A .pt, .pth or .safetensors file, or the folder of a bundle or a run." } },
      { { "pons import model.pt -o model.safetensors --config liver.ini",
          "Take the weights of PyTorch." } } },
    { "evaluate",
      "Computes metrics by case and class: of files of predictions and labels, of the validation "
      "cases of a run, or of two methods A and B on the same labels with a paired test of their "
      "difference.",
      { { "A", "A predicted file or a folder of them: the first of two methods." },
        { "B", "The same of the second method. Without A and B, --prediction names one." } },
      { { "pons evaluate --prediction labels --label truth", "One method." },
        { "pons evaluate --run runs/liver --csv cases.csv", "The validation cases of a run." },
        { "pons evaluate ours theirs --label truth", "Two methods beside each other." } } },
    { "config",
      "Prints every value that a training would have, with the line, flag or rule that it comes "
      "from. The output is an INI file itself.",
      { INI_FILE },
      { { "pons config liver.ini", "All values." },
        { "pons config liver.ini --set train.batch=4 > other.ini", "A file of one's own." } } },
    { "report",
      "Writes a page of a run, also of one that is training: curves of losses, learning rate and "
      "metrics; the validation cases, worst first, with pictures; the network by levels; time, "
      "memory and devices; plugins and versions; all settings and the command that repeats the "
      "run. Several runs are compared: settings that differ, curves over each other, a paired "
      "test of their cases. The page is one file without scripts.",
      { { "RUN", "The folder of a run, such as runs/liver. Up to 16 are compared." } },
      { { "pons report runs/liver", "Write runs/liver/report.html." },
        { "pons report runs/liver runs/other -o both.html", "Compare two runs." },
        { "pons report runs/liver -o curves.csv", "The numbers as a table." } } },
    { "explain",
      "Prints the layers of the network, operations and bytes of a step, and the peak of memory, "
      "of a training or of a prediction, and runs neither.",
      { { "FILE.ini | RUN", "A training, or a run that predicts." },
        { "IMAGE", "The image that the run would predict." } },
      { { "pons explain liver.ini", "A step of the training." },
        { "pons explain runs/liver ct.nii.gz", "The prediction of a scan." } } },
    { "export",
      "Writes the network of a run for other programs.",
      { { "RUN", "The folder of a run, or a bare weights file with --config." } },
      { { "pons export runs/liver -o liver.onnx", "For ONNX Runtime." },
        { "pons export runs/liver --nnunet exported", "For nnUNetv2_predict." } } },
    { "bench",
      "Measures the seconds of an optimizer step on this machine, with data made for it.",
      { INI_FILE },
      { { "pons bench liver.ini", "Seconds per step." },
        { "pons bench liver.ini --json > before.json", "Keep them for --baseline." } } },
    { "find-rate",
      "Trains some steps with a rising learning rate, draws the losses and suggests a rate. No run "
      "is begun.",
      { INI_FILE },
      { { "pons find-rate liver.ini", "Write liver_rate.png." } } },
    { "data show",
      "Draws cases before and after [preprocess], or patches after [augment].",
      { INI_FILE, { "CASE", "Names of cases; not given: the first ones." } },
      { { "pons data show liver.ini -o pictures", "Draw the first cases." } } },
    { "data preprocess",
      "Writes each case after the transforms of [preprocess], as files or into the cache of "
      "[data] cache = disk.",
      { INI_FILE },
      { { "pons data preprocess liver.ini --cache", "Fill the cache before a training." },
        { "pons data preprocess liver.ini -o seen", "Write what the network sees." } } },
    { "data phantom",
      "Writes a synthetic dataset of heads with labels, to try the program without data.",
      { { NULL, NULL } },
      { { "pons data phantom -o heads --cases 4", "Four cases." } } },
    { "data crop",
      "Cuts a box out of a volume. Its affine moves with it, so that voxels keep their places.",
      { { "IMAGE", "A volume of NIfTI." } },
      { { "pons data crop ct.nii.gz -o box.nii.gz --start 10,20,0 --extent 64,64,32",
          "Keep 64 x 64 x 32 voxels." } } },
    { "data check",
      "Reads every case and lists all problems: files that cannot be read, grids that differ, "
      "labels without a class. Status 4: there are errors.",
      { { "FILE.ini | DATASET", "A training, or a dataset as for pons-init(1)." } },
      { { "pons data check liver.ini", "Check the cases of a training." } } },
    { "plugin list",
      "Lists each plugin with its kind, version and folder, and files that are none.",
      { { NULL, NULL } },
      { { "pons plugin list", "All plugins." } } },
    { "plugin show",
      "Prints the file of a plugin, its versions, and its options.",
      { { "KIND", "model, loss, optimizer, schedule, transform, sink, op, device or comm; needed "
                  "where several plugins have the name." },
        { "NAME", "The name of the plugin." } },
      { { "pons plugin show loss dice_ce", "A loss." } } },
    { "plugin check",
      "Loads a plugin in a process of its own and tests what its kind promises, such as gradients "
      "against finite differences. Options that the test needs are given by --set KIND.OPTION.",
      { { "FILE.so", "The file of the plugin, whose name is that of the plugin." } },
      { { "pons plugin check own/loss/squared.so", "Check a loss." } } },
    { "plugin new",
      "Writes a folder with the source of a plugin, a Makefile and an INI file. It compiles, "
      "passes 'pons plugin check' and trains as it is.",
      { { "KIND", "model, loss, optimizer, schedule, transform, sink or op." },
        { "NAME", "The name of the plugin: lower-case letters, digits and '_'." } },
      { { "pons plugin new loss squared && make -C squared check", "Write, build and test." } } },
    { "devices",
      "Lists the devices that [distribute] devices may name, with their memory.",
      { { NULL, NULL } }, { { "pons devices", "All devices." } } },
    { "doctor",
      "Prints what was found on this machine, its limits, and what to install.",
      { { NULL, NULL } }, { { "pons doctor", "All findings." } } },
    { "help",
      "Shows commands, sections and keys of the INI file, and plugins with their options. A word "
      "that is none of them is looked for in all texts.",
      { { "TOPIC", "A command, a section, a key such as train.epochs, a kind or a plugin." },
        { "PLUGIN", "A plugin of the kind or section TOPIC." } },
      { { "pons help train.epochs", "A key." }, { "pons help loss dice_ce", "A plugin." } } },
};

const command_text *command_text_of(const command *c)
{
    size_t i = 0;

    while (i + 1 < sizeof texts / sizeof *texts && strcmp(texts[i].command, c->name) != 0)
        i++;
    return &texts[i];
}

/* Values of texts by the name of the flag; "COMMAND FLAG" stands before the flag alone. */
static const struct { const char *flag, *value; } values[] = {
    { "init output", "FILE.ini" }, { "predict output", "OUT" },
    { "import output", "OUT.safetensors" }, { "export output", "MODEL.onnx" },
    { "data crop output", "OUT" }, { "report output", "FILE" },
    { "find-rate output", "FILE.png" }, { "output", "DIR" }, { "resume", "RUN" }, { "run", "RUN" },
    { "config", "FILE.ini" }, { "previous", "PATH" }, { "prediction", "PATH" },
    { "label", "PATH" }, { "labels", "\"NAME:ID...\"" }, { "metrics", "\"METRIC...\"" },
    { "csv", "FILE.csv" }, { "overlay", "FILE.png" }, { "image", "IMAGE" },
    { "master", "HOST:PORT" }, { "prefix", "TEXT" }, { "bundle", "DIR" }, { "nnunet", "DIR" },
    { "folds", "N,..." }, { "target", "MODALITY" }, { "baseline", "FILE.json" },
    { "manual", "DIR" }
};

static const char *text_value_name(const command *c, const pons_option *o)
{
    char both[96];

    snprintf(both, sizeof both, "%s %s", c->name, o->name);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i].flag, both) == 0 || strcmp(values[i].flag, o->name) == 0)
            return values[i].value;
    return "TEXT";
}

static void put_choices(const pons_option *o, char *out, size_t size)
{
    size_t used = strlen(out);

    for (const char *const *word = o->choices; word != NULL && *word != NULL && used < size; word++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? "|" : "", *word);
}

const char *flag_value_name(const command *c, const pons_option *o, char *out, size_t size)
{
    static const char *const names[] = {
        [PONS_OPTION_REAL] = "X", [PONS_OPTION_INTEGER] = "N", [PONS_OPTION_FLAG] = "",
        [PONS_OPTION_CHOICE] = "", [PONS_OPTION_SIZE] = "SIZE", [PONS_OPTION_REALS] = "X,...",
        [PONS_OPTION_INTEGERS] = "N,...", [PONS_OPTION_AXES] = "I,J,K",
        [PONS_OPTION_REAL_AXES] = "X,Y,Z", [PONS_OPTION_TRIPLES] = "\"N...\""
    };
    bool text = (size_t)o->type >= sizeof names / sizeof *names || names[o->type] == NULL;

    snprintf(out, size, "%s", text ? text_value_name(c, o) : names[o->type]);
    put_choices(o, out, size);
    return out;
}
