/*
 * run_modes.c - see run_modes.h.
 */
#include "support/run/run_modes.h"

const char modes_ini[] =
    "[experiment]\nname = run\n"
    "[data]\nsource = phantom\nvalidation = last:3\nloader_threads = 1\n"
    "[preprocess]\nsteps = normalize\n"
    "[patch]\nextent = 16 16 16\nsampling = balanced\n"
    "[augment]\nsteps = flip scale_intensity gaussian_noise\n"
    "[augment.flip]\naxes = 0 1 2\nprobability = 0.5\n"
    "[augment.scale_intensity]\nprobability = 0.5\nfactors = 0.1\n"
    "[augment.gaussian_noise]\nprobability = 0.5\n"
    "[model]\nplugin = unet\nchannels = 4 8 16\nstrides = 2 2\nnum_res_units = 2\nnorm = batch\n"
    "dropout = 0.2\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\nlr = 1e-2\n"
    "[train]\nsteps = 20\nbatch = 1\nprecision = fp32\nema_decay = 0.9\nclip_norm = 0.5\n"
    "validate_steps = 10\n"
    "[distribute]\nthreads = 1\nbucket = 4KiB\n";

void make_experiment(void)
{
    make_root();
    EXPECT(0, NULL, "data", "phantom", "-o", "phantom", "--cases", "7", "--extent", "28,24,20");
    write_text("e.ini", modes_ini);
}

int read_metrics(const char *run, const char *key, double *out, int room)
{
    char path[256], *text = NULL;
    size_t size = 0;
    int count = 0;
    pons_error err = PONS_ERROR_INIT;

    snprintf(path, sizeof path, "%s/runs/%s/metrics.jsonl", root, run);
    ck_assert_int_eq(file_read(path, 1 << 24, &text, &size, PONS_DATA, &err), PONS_OK);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *d = NULL;
        ck_assert_int_eq(json_parse(line, strlen(line), path, PONS_DATA, &d, &err), PONS_OK);
        const char *kind = json_string_value(json_object_get(d, "kind"));
        bool other = strcmp(key, "loss") == 0 && kind != NULL && strcmp(kind, "step") != 0;
        const json_t *v = other ? NULL : json_object_get(d, key);
        if (json_is_object(v))
            v = json_object_get(v, "mean");
        ck_assert_int_lt(count, room);
        if (v != NULL)
            out[count++] = json_number_value(v);
        json_decref(d);
    }
    free(text);
    return count;
}

void same_metric(const char *a, const char *b, const char *key, double tolerance)
{
    double x[64], y[64];
    int count = read_metrics(a, key, x, 64);

    ck_assert_int_gt(count, 0);
    ck_assert_int_eq(read_metrics(b, key, y, 64), count);
    for (int i = 0; i < count; i++)
        ck_assert_msg(fabs(x[i] - y[i]) <= tolerance * fabs(x[i]), "%s %d: %.17g and %.17g", key, i,
                      x[i], y[i]);
}

bool same_file(const char *a, const char *b, const char *file)
{
    char command[512];

    snprintf(command, sizeof command, "cd %s/runs && cmp -s %s/checkpoints/step-00000020/%s "
             "%s/checkpoints/step-00000020/%s", root, a, file, b, file);
    return system(command) == 0;
}

void same_run(const char *a, const char *b)
{
    static const char *const files[] = { "model", "optimizer", "ema" };

    for (int i = 0; i < 3; i++) {
        char file[64];
        snprintf(file, sizeof file, "%s.safetensors", files[i]);
        ck_assert_msg(same_file(a, b, file), "%s of %s and %s", file, a, b);
    }
    same_metric(a, b, "loss", 0);
    same_metric(a, b, "grad_norm", 0);
    same_metric(a, b, "dice", 0);
}
