/*
 * check_config_gallery.c - every way we know to get an INI file wrong: the code, the phrase, and a
 * twin that differs in the mistake only and is accepted.
 */
#include "suite.h"

#include "config/sections.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEN(x) x x x x x x x x x x
#define LONG_900 TEN(TEN("123456789"))

typedef struct broken {
    const char *text, *phrase, *twin;
} broken;

static const broken gallery[] = {
    { "[train]\n batch = 2\n", "a.ini:2: line is indented: 'batch = 2'", "[train]\nbatch = 2\n" },
    { "[train]\nkeep = 1\n\tbatch = 2\n", "a.ini:3: line is indented", "[train]\nkeep = 1\n\t\n" },
    { " [train]\n", "a.ini:1: line is indented", "[train]\n" },
    { "  ; comment\n", "a.ini:1: line is indented", "; comment\n" },
    { "[experiment]\nname = " LONG_900 LONG_900 "\n", "a.ini:2: line has 1807 characters, at most 1000",
      "[experiment]\nname = " LONG_900 "\n" },
    { "; " LONG_900 LONG_900 "\n", "a.ini:1: line has", "; " LONG_900 "\n" },
    { "[train]\nbatch = 2\nbatch = 2\n", "a.ini:3: duplicate key 'batch' in [train], first on line 2",
      "[train]\nbatch = 2\nkeep = 2\n" },
    { "[train]\nbatch = 2\n[log]\n[train]\nbatch = 2\n", "a.ini:5: duplicate key 'batch'",
      "[train]\nbatch = 2\n[log]\n[train]\nkeep = 2\n" },
    { "[train]\nbatch 2\n", "a.ini:2: no '=' in line", "[train]\nbatch=2\n" },
    { "[train\nbatch = 2\n", "a.ini:1: section has no ']'", "[train]\nbatch = 2\n" },
    { "[]\nbatch = 2\n", "a.ini:1: section has no name", "[train]\nbatch = 2\n" },
    { "[train] batch = 2\n", "a.ini:1: text after ']': 'batch = 2'", "[train] ; batch = 2\n" },
    { "[a123456789b123456789c123456789d123456789e123456789]\n",
      "a.ini:1: section name has 50 characters, at most 49", "[log]\n" },
    { "[train]\n= 2\n", "a.ini:2: no key before '='", "[train]\nkeep = 2\n" },
    { "batch = 2\n[train]\n", "a.ini:1: key 'batch' stands before any section", "[train]\nbatch = 2\n" },
    { "[trian]\nbatch = 2\n", "a.ini:1: unknown section 'trian'; did you mean 'train'?",
      "[train]\nbatch = 2\n" },
    { "[trian]\n", "a.ini:1: unknown section 'trian'; did you mean 'train'?", "[train]\n" },
    { "[Train]\nbatch = 2\n", "unknown section 'Train'; did you mean 'train'?", "[train]\nbatch = 2\n" },
    { "[train]\nbach = 2\n", "a.ini:2: unknown key 'bach' in [train]; did you mean 'batch'?",
      "[train]\nbatch = 2\n" },
    { "[train]\nchekpoint_every = 2\n", "did you mean 'checkpoint_every'?",
      "[train]\ncheckpoint_every = 2\n" },
    { "[window]\nbatch_size = 2\n", "a.ini:2: unknown key 'batch_size' in [window]",
      "[window]\nbatch = 2\n" },
    { "[train]\nbatch = two\n", "a.ini:2: [train] batch = 'two': expected an integer",
      "[train]\nbatch = 2\n" },
    { "[train]\nbatch = 0\n", "[train] batch = '0': expected an integer from 1 to 65536",
      "[train]\nbatch = 1\n" },
    { "[train]\nbatch = -1\n", "batch = '-1': expected", "[train]\nbatch = 1\n" },
    { "[train]\nbatch = 65537\n", "batch = '65537': expected", "[train]\nbatch = 65536\n" },
    { "[train]\nbatch = 2.5\n", "batch = '2.5': expected an integer", "[train]\nbatch = 2\n" },
    { "[train]\nbatch = 2 3\n", "batch = '2 3': expected an integer", "[train]\nbatch = 2\n" },
    { "[train]\nbatch = 0x10\n", "batch = '0x10': expected an integer", "[train]\nbatch = 16\n" },
    { "[train]\nbatch = 99999999999999999999\n", "batch = '99999999999999999999': expected",
      "[train]\nbatch = 9\n" },
    { "[train]\nbatch =\n", "a.ini:2: [train] batch = '': expected an integer", "[train]\nbatch = 1\n" },
    { "[optimizer]\nlr = 0\n", "lr = '0': expected a number above 0", "[optimizer]\nlr = 1e-4\n" },
    { "[optimizer]\nlr = nan\n", "lr = 'nan': expected a number", "[optimizer]\nlr = 1\n" },
    { "[optimizer]\nlr = inf\n", "lr = 'inf': expected a number", "[optimizer]\nlr = 1\n" },
    { "[optimizer]\nlr = 1,5\n", "lr = '1,5': expected a number", "[optimizer]\nlr = 1.5\n" },
    { "[optimizer]\nlr = 1e999\n", "lr = '1e999': expected a number", "[optimizer]\nlr = 1e9\n" },
    { "[train]\nclip_norm = -1\n", "clip_norm = '-1': expected a number, at least 0",
      "[train]\nclip_norm = 1\n" },
    { "[train]\nema_decay = 1.1\n", "ema_decay = '1.1': expected a number from 0 to 1",
      "[train]\nema_decay = 0.999\n" },
    { "[train]\nrecompute = true\n", "recompute = 'true': expected yes or no",
      "[train]\nrecompute = yes\n" },
    { "[train]\nprecision = fp23\n",
      "precision = 'fp23': expected one of auto, fp32, tf32, bf16, fp16; did you mean 'fp32'?",
      "[train]\nprecision = fp32\n" },
    { "[patch]\nextent = 96 96\n", "extent = '96 96': expected one or three integers",
      "[patch]\nextent = 96 96 96\n" },
    { "[patch]\nextent = 96,96,96\n", "extent = '96,96,96': expected one or three integers",
      "[patch]\nextent = 96\n" },
    { "[patch]\nextent = 96 96 0\n", "extent = '96 96 0': found '0', expected",
      "[patch]\nextent = 96 96 1\n" },
    { "[patch]\nbackground_above = 0 1\n", "background_above: found 2 numbers",
      "[patch]\nbackground_above = 0\n" },
    { "[window]\nmirror = 0 3\n", "mirror = '0 3': found '3', expected integers from 0 to 2",
      "[window]\nmirror = 0 2\n" },
    { "[window]\noverlap = 1\n", "overlap = '1': expected a number from 0 to 0.99",
      "[window]\noverlap = 0.5\n" },
    { "[distribute]\nbucket = 4MB\n", "bucket = '4MB': expected a size such as 4096 or 4MiB",
      "[distribute]\nbucket = 4MiB\n" },
    { "[data]\ncache_limit = -4MiB\n", "cache_limit = '-4MiB': expected a size",
      "[data]\ncache_limit = 4\n" },
    { "[distribute]\nthreads = all\n",
      "threads = 'all': expected an integer from 1 to 4096 or auto", "[distribute]\nthreads = auto\n" },
    { "[train]\nepochs = 2\nsteps = 2\n", "epochs and steps are both given", "[train]\nsteps = 2\n" },
    { "[experiment]\nname = a/b\n", "name = 'a/b': expected a folder name", "[experiment]\nname = a_b\n" },
    { "[experiment]\nname = ..\n", "name = '..': expected a folder name", "[experiment]\nname = a..\n" },
    { "[experiment]\nseed = -1\n", "seed = '-1': expected an integer", "[experiment]\nseed = 7\n" },
    { "[data]\ncache = disk\n", "a.ini:2: [data] cache = 'disk': 'disk' is not in this build",
      "[data]\ncache = memory\n" },
    { "[data]\ncache = disc\n", "cache = 'disc': expected one of none, memory, disk",
      "[data]\ncache = none\n" },
    { "[distribute]\nmode = ddp\n", "'ddp' is not in this build", "[distribute]\nmode = single\n" },
    { "[distribute]\ndevices = cuda:0\n", "'cuda:0' is not in this build",
      "[distribute]\ndevices = cpu\n" },
    { "[log]\nsinks = csv mlflow\n", "'mlflow' is not in this build", "[log]\nsinks = csv\n" },
    { "[schedule]\nplugin = one_cycle\n", "'one_cycle' is not in this build",
      "[schedule]\nplugin = poly\n" },
    { "include = missing.ini\n", "a.ini:1: cannot open '", "[log]\n" },
    { "include = a.ini\n", "is a cycle", "[log]\n" },
    { "include = loop.ini\n", "is a cycle", "include = good.ini\n" },
    { "include = bad.ini\n", "bad.ini:2: [train] batch = 'x'", "include = good.ini\n" },
    { "include = good.ini\ninclude = good.ini\n", "a.ini:2: duplicate key 'include'",
      "include = good.ini\n" },
    { "include =\n", "a.ini:1: include names no file", "include = good.ini\n" },
    { "include = .\n", "it is a folder, expected a regular file", "include = good.ini\n" },
    { "[train]\ninclude = good.ini\n", "unknown key 'include' in [train]", "include = good.ini\n" },
    { "[train]\nbatch = 2\001\n", "a.ini:2: control character 0x01 at column 10", "[train]\nbatch = 2\n" },
    { "[train]\rbatch = 2\n", "a.ini:1: control character 0x0d", "[train]\r\nbatch = 2\r\n" },
    { "[train]\nbatch = 2 # two\n", "batch = '2 # two': expected", "[train]\nbatch = 2 ; two\n" },
    { "[train]\nbatch = \"2\"\n", "batch = '\"2\"': expected", "[train]\nbatch = 2\n" },
};
enum { COUNT = sizeof gallery / sizeof *gallery };

static char folder[64], before[4096];

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const char *text, size_t size)
{
    FILE *f = fopen(path_of(name), "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, size, f), size);
    fclose(f);
}

static void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

/* Names, sizes and times of everything in the folder: reading must leave it as it was. */
static void describe_folder(char *text, size_t size)
{
    char command[256];
    FILE *pipe;

    snprintf(command, sizeof command, "cd '%s' && stat -c '%%n %%s %%Y %%Z %%i' . * | sort", folder);
    pipe = popen(command, "r");
    memset(text, 0, size);
    ck_assert_uint_gt(fread(text, 1, size - 1, pipe), 0);
    pclose(pipe);
}

static void make_folder(void)
{
    strcpy(folder, "/tmp/pons-check-gallery-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_text("good.ini", "[train]\nbatch = 2\n");
    write_text("bad.ini", "[train]\nbatch = x\n");
    write_text("loop.ini", "include = a.ini\n");
}

static void remove_folder(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static pons_status read_all(const char *name, int set_count, const char *const *set, pons_error *err)
{
    config *c = NULL;
    pons_status status = config_open(name != NULL ? path_of(name) : NULL, set_count, set, &c, err);
    sections s;

    if (status == PONS_OK)
        status = sections_fill(c, &s, err);
    if (status == PONS_OK)
        status = config_refuse_unknown(c, err);
    config_close(c);
    return status;
}

START_TEST(broken_file_is_refused_and_its_twin_is_accepted)
{
    const broken *b = &gallery[_i];
    pons_error err = PONS_ERROR_INIT, none = PONS_ERROR_INIT;
    char after[4096];

    write_text("a.ini", b->text);
    describe_folder(before, sizeof before);
    ck_assert_msg(read_all("a.ini", 0, NULL, &err) == PONS_CONFIG, "accepted: %s", b->text);
    ck_assert_msg(strstr(err.text, b->phrase) != NULL, "'%s' is not in '%s'", b->phrase, err.text);
    describe_folder(after, sizeof after);
    ck_assert_str_eq(before, after);
    write_text("a.ini", b->twin);
    ck_assert_msg(read_all("a.ini", 0, NULL, &none) == PONS_OK, "%s", none.text);
}
END_TEST

START_TEST(a_nul_byte_is_found_on_its_line)
{
    pons_error err = PONS_ERROR_INIT;

    write_bytes("a.ini", "[train]\nbatch = 2\0\n", 19);
    ck_assert_int_eq(read_all("a.ini", 0, NULL, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "a.ini:2: NUL byte") != NULL, "%s", err.text);
}
END_TEST

START_TEST(folders_pipes_missing_and_huge_files_are_refused)
{
    static char large[(1 << 20) + 1];
    pons_error err = PONS_ERROR_INIT, folder_err = PONS_ERROR_INIT, pipe_err = PONS_ERROR_INIT,
               missing = PONS_ERROR_INIT;

    memset(large, '\n', sizeof large);
    write_bytes("large.ini", large, sizeof large);
    ck_assert_int_eq(read_all("large.ini", 0, NULL, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "at most 1048576") != NULL, "%s", err.text);
    write_bytes("large.ini", large, sizeof large - 1);
    err = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(read_all("large.ini", 0, NULL, &err), PONS_OK);
    ck_assert_int_eq(read_all(".", 0, NULL, &folder_err), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(folder_err.text, "a folder"));
    ck_assert_int_eq(mkfifo(path_of("pipe"), 0600), 0);
    ck_assert_int_eq(read_all("pipe", 0, NULL, &pipe_err), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(pipe_err.text, "a special file"));
    ck_assert_int_eq(read_all("none.ini", 0, NULL, &missing), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(missing.text, "No such file"));
}
END_TEST

static const struct { const char *set; pons_status status; const char *phrase; } sets[] = {
    { "batch=2", PONS_USAGE, "expected section.key=value" },
    { "train.batch", PONS_USAGE, "expected section.key=value" },
    { ".batch=2", PONS_USAGE, "expected section.key=value" },
    { "train.=2", PONS_USAGE, "expected section.key=value" },
    { "train.batch=2 ; two", PONS_USAGE, "holds a comment" },
    { "train.batch=2\n3", PONS_USAGE, "control character 0x0a" },
    { "train.bach=2", PONS_CONFIG, "--set: unknown key 'bach' in [train]; did you mean 'batch'?" },
    { "trian.batch=2", PONS_CONFIG, "--set: unknown section 'trian'; did you mean 'train'?" },
    { "train.batch=x", PONS_CONFIG, "--set: [train] batch = 'x': expected an integer" },
    { "data.cache=lmdb", PONS_CONFIG, "'lmdb' is not in this build" },
};

START_TEST(broken_set_is_refused)
{
    pons_error err = PONS_ERROR_INIT, none = PONS_ERROR_INIT;
    const char *good = "train.batch=2";

    ck_assert_int_eq(read_all("good.ini", 1, &sets[_i].set, &err), sets[_i].status);
    ck_assert_msg(strstr(err.text, sets[_i].phrase) != NULL, "%s", err.text);
    ck_assert_int_eq(read_all("good.ini", 1, &good, &none), PONS_OK);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("config_gallery");
    tcase_add_checked_fixture(c, make_folder, remove_folder);
    tcase_add_loop_test(c, broken_file_is_refused_and_its_twin_is_accepted, 0, COUNT);
    tcase_add_test(c, a_nul_byte_is_found_on_its_line);
    tcase_add_test(c, folders_pipes_missing_and_huge_files_are_refused);
    tcase_add_loop_test(c, broken_set_is_refused, 0, (int)(sizeof sets / sizeof *sets));
    return suite_run();
}
