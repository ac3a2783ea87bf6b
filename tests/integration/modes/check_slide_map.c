/*
 * check_slide_map.c - the map of a slide from train to evaluate: it finds the lesion, has the same
 * bits in every mode, takes little memory, and bad input ends with one line and no file.
 */
#include <config.h>

#include "base/build_feature.h"
#include "base/file/file.h"
#include "data/slide/map_file.h"

#include "support/data/golden_arrays.h"
#include "support/data/slide_maker.h"
#include "support/run/run_pons.h"
#include "support/root.h"
#include "support/suite.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool memory_is_ours = false;
#else
static const bool memory_is_ours = true;
#endif

/* Tissue of 320 x 480 pixels with two lesions; the map has 20 x 30 points of 16 pixels. */
enum { ROWS = 480, COLUMNS = 640, PATCH = 16 };
static const slide_box tissue[] = {
    { 64, 80, 320, 480, { 224, 160, 192 } },
    { 128, 160, 64, 96, { 112, 48, 144 } },
    { 256, 400, 96, 64, { 112, 48, 144 } },
};
static const slide_plan plan = { ROWS, COLUMNS, 64, 2, tissue, 3 };

/* Whether the pixel lies in a box, 'margin' pixels within its border; negative: around it. */
static bool is_within(const slide_box *b, int row, int column, int margin)
{
    return row >= b->row + margin && row < b->row + b->rows - margin
           && column >= b->column + margin && column < b->column + b->columns - margin;
}

static bool is_lesion(int row, int column, int margin)
{
    return is_within(&tissue[1], row, column, margin) || is_within(&tissue[2], row, column, margin);
}

/* Patches whose class is certain, each seventh point of a grid. */
static void write_list(void)
{
    char text[16384] = "slide,x,y,label\n";
    size_t end = strlen(text);

    for (int row = 72, n = 0; row < 384; row += 8)
        for (int column = 88; column < 560; column += 8, n++) {
            bool inside = is_lesion(row, column, PATCH / 2);
            if (n % (inside ? 3 : 17) != 0 || (!inside && is_lesion(row, column, -PATCH / 2)))
                continue;
            end += (size_t)snprintf(text + end, sizeof text - end, "s.tif,%d,%d,%s\n", column, row,
                                    inside ? "tumour" : "normal");
        }
    ck_assert_uint_lt(end, sizeof text - 1);
    write_text("list.csv", text);
}

static const char experiment_text[] =
    "[experiment]\nname = t\ntask = classification\noutput = runs\n"
    "[data]\nsource = list.csv\nlayout = slides\nslide_patch = 16\n"
    "labels = normal:0 tumour:1\nvalidation = none\n"
    "[preprocess]\nsteps = scale_range\n"
    "[preprocess.scale_range]\nfrom = 0 255\nto = -1 1\n"
    "[patch]\nextent = 1 16 16\n"
    "[model]\nplugin = mlp\nhidden = 8\n"
    "[loss]\nplugin = cross_entropy\n"
    "[optimizer]\nplugin = adam\nlr = 1e-2\n"
    "[train]\nepochs = 6\nbatch = 16\nprecision = fp32\n"
    "[window]\nbatch = 8\n"
    "[distribute]\ndevices = cpu\nthreads = 1\n";

/* A slide, its trained network 'runs/t' and its map 't.tiff'. */
static void make_map(void)
{
    make_root();
    slide_make(in_root("s.tif"), &plan);
    write_list();
    write_text("t.ini", experiment_text);
    EXPECT(0, NULL, "train", in_root("t.ini"), "-q");
    EXPECT(0, "patches of tissue", "predict", in_root("runs/t"), in_root("s.tif"), "-o",
           in_root("t.tiff"));
}

static void read_map(const char *name, map_file *m)
{
    MUST(map_file_read(in_root(name), m, &error));
}

static void expect_same_map(const char *name)
{
    map_file a, b;

    read_map("t.tiff", &a);
    read_map(name, &b);
    ck_assert_int_eq(a.facts.rows, b.facts.rows);
    ck_assert_int_eq(a.facts.columns, b.facts.columns);
    ck_assert_mem_eq(a.values, b.values,
                     (size_t)(a.facts.rows * a.facts.columns) * sizeof *a.values);
    map_file_clear(&a);
    map_file_clear(&b);
}

/* ---- maps ------------------------------------------------------------------------------------ */

START_TEST(a_map_shows_the_lesions_and_leaves_the_background_out)
{
    map_file m;

    read_map("t.tiff", &m);
    ck_assert_int_eq(m.facts.rows, ROWS / PATCH);
    ck_assert_int_eq(m.facts.columns, COLUMNS / PATCH);
    ck_assert_int_eq(m.facts.class_count, 1);
    ck_assert_str_eq(m.facts.name[0], "tumour");
    ck_assert_double_eq(m.facts.step[0], PATCH);
    for (int i = 0; i < ROWS / PATCH; i++)
        for (int k = 0; k < COLUMNS / PATCH; k++) {
            int row = i * PATCH + PATCH / 2, column = k * PATCH + PATCH / 2;
            float p = m.values[i * (COLUMNS / PATCH) + k];
            if (!is_within(&tissue[0], row, column, -PATCH))
                ck_assert_float_eq(p, 0);
            else if (is_within(&tissue[0], row, column, PATCH / 2))
                ck_assert_msg((p > 0.5f) == is_lesion(row, column, 0), "row %d, column %d: %g", row,
                              column, p);
        }
    map_file_clear(&m);
    ck_assert_int_eq(access(in_root("t_overlay.png"), F_OK) == 0,
                     build_feature_missing("", "libpng") == NULL);
}
END_TEST

static const char *const rank_variables[] = { "RANK", "LOCAL_RANK", "WORLD_SIZE",
                                              "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT" };

static void set_rank(const char *number)
{
    setenv("RANK", number, 1);
    setenv("LOCAL_RANK", number, 1);
}

/* Predict slides in two processes, which both end with 'code'. */
static void predict_in_ranks(int code, const char *output, const char *slide, const char *other)
{
    pid_t rank[2];
    char port[16];

    snprintf(port, sizeof port, "%d", 20000 + (int)getpid() % 20000);
    setenv("WORLD_SIZE", "2", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", port, 1);
    for (int n = 1; n >= 0; n--) {
        set_rank(n == 0 ? "0" : "1");
        rank[n] = process_start_to(n == 0 ? "first" : "second", (const char *const[]){
            "predict", in_root("runs/t"), "-o", output, slide, other, NULL });
    }
    for (int n = 0; n < 2; n++)
        ck_assert_msg(process_finish(rank[n]) == code, "%s",
                      root_text(n == 0 ? "first" : "second"));
    for (size_t i = 0; i < sizeof rank_variables / sizeof *rank_variables; i++)
        unsetenv(rank_variables[i]);
}

START_TEST(devices_ranks_and_ensembles_make_the_same_map)
{
    char both[256];

    snprintf(both, sizeof both, "%s,%s", in_root("runs/t"), in_root("runs/t"));
    EXPECT(0, NULL, "predict", in_root("runs/t"), in_root("s.tif"), "-o", in_root("two.tiff"),
           "--set", "distribute.devices=cpu:0,cpu:1");
    expect_same_map("two.tiff");
    EXPECT(0, NULL, "predict", both, in_root("s.tif"), "-o", in_root("both.tiff"));
    expect_same_map("both.tiff");
    EXPECT(0, NULL, "predict", in_root("runs/t"), in_root("s.tif"), "-o", in_root("maps/"));
    expect_same_map("maps/s.tiff");
    if (!suite_has("ranks make the same map", suite_has_plugin("comm/gloo"), "gloo"))
        return;
    predict_in_ranks(0, in_root("ranks.tiff"), in_root("s.tif"), NULL);
    expect_same_map("ranks.tiff");
}
END_TEST

/* Points at half the distance: each fourth one has the patch of another. */
START_TEST(a_stride_makes_a_finer_map)
{
    map_file m;

    EXPECT(0, NULL, "predict", in_root("runs/t"), in_root("s.tif"), "-o", in_root("fine.tiff"),
           "--stride", "8");
    read_map("fine.tiff", &m);
    ck_assert_int_eq(m.facts.rows, ROWS / 8);
    ck_assert_int_eq(m.facts.columns, COLUMNS / 8);
    ck_assert_float_gt(m.values[160 / 8 * (COLUMNS / 8) + 208 / 8], 0.5f);
    map_file_clear(&m);
}
END_TEST

#define MAP(CODE, PHRASE, SLIDE, ...)                                                             \
    EXPECT(CODE, PHRASE, "predict", in_root("runs/t"), in_root(SLIDE), "-o", __VA_ARGS__)

/* A list without labels; patches of 16 pixels have their centres at multiples of 16 and 8 more. */
START_TEST(a_list_of_patches_has_the_probabilities_of_the_map)
{
    char expected[512];
    map_file m;

    write_text("places.csv", "slide,x,y\ns.tif,200,152\ns.tif,520,88\n");
    MAP(0, "layout: slides, as given, of", "places.csv", in_root("places_out.csv"));
    read_map("t.tiff", &m);
    for (int i = 0; i < 2; i++) {
        int x = i == 0 ? 200 : 520, y = i == 0 ? 152 : 88;
        float p = m.values[y / PATCH * (COLUMNS / PATCH) + x / PATCH];

        snprintf(expected, sizeof expected, "#%d,%d,16@0\",%s,", x - PATCH / 2, y - PATCH / 2,
                 i == 0 ? "tumour" : "normal");
        const char *row = strstr(root_text("places_out.csv"), expected);
        ck_assert_msg(row != NULL, "%s: %s", expected, root_text("places_out.csv"));
        ck_assert_float_eq(strtof(strchr(row + strlen(expected), ',') + 1, NULL), p);
    }
    map_file_clear(&m);
}
END_TEST

START_TEST(slides_of_a_folder_are_found_by_their_endings)
{
    ck_assert_int_eq(mkdir(in_root("slides"), 0700), 0);
    ck_assert_int_eq(link(in_root("s.tif"), in_root("slides/a.svs")), 0);
    ck_assert_int_eq(link(in_root("s.tif"), in_root("slides/b_0001.NDPI")), 0);
    write_text("slides/notes.txt", "none");
    MAP(0, NULL, "slides", in_root("listed/"));
    expect_same_map("listed/a.tiff");
    expect_same_map("listed/b_0001.tiff");
}
END_TEST

/* The next map of that name removes what a killed process has left of it and of its picture. */
START_TEST(files_of_a_killed_prediction_are_removed)
{
    const char *const name[] = { "killed.tiff", "killed_overlay.png" };
    char left[2][64];
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    for (int i = 0; i < 2; i++) {
        snprintf(left[i], sizeof left[i], "%s.part-%ld-0", name[i], (long)child);
        write_text(left[i], "half");
    }
    MAP(0, NULL, "s.tif", in_root("killed.tiff"));
    ck_assert_int_ne(access(in_root(left[0]), F_OK), 0);
    if (build_feature_missing("", "libpng") == NULL)
        ck_assert_int_ne(access(in_root(left[1]), F_OK), 0);
}
END_TEST

/* ---- FROC ------------------------------------------------------------------------------------ */

/* Lesions are white, and the id 255; the rest is darker. */
static void make_mask(const char *name)
{
    static const slide_box rest[] = {
        { 0, 0, 128, COLUMNS, { 16, 16, 16 } }, { 128, 0, 64, 160, { 16, 16, 16 } },
        { 128, 256, 64, 384, { 16, 16, 16 } }, { 192, 0, 64, COLUMNS, { 16, 16, 16 } },
        { 256, 0, 96, 400, { 16, 16, 16 } }, { 256, 464, 96, 176, { 16, 16, 16 } },
        { 352, 0, 128, COLUMNS, { 16, 16, 16 } },
    };

    slide_make(in_root(name), &(slide_plan){ ROWS, COLUMNS, 64, 2, rest, 7 });
}

/* The same mask as a TIFF file of grey values in one strip, which OpenSlide refuses. */
static void make_mask_of_strips(const char *name)
{
    static unsigned char pixels[ROWS][COLUMNS];
    static const uint16_t tag[][2] = { { 256, COLUMNS }, { 257, ROWS }, { 258, 8 }, { 259, 1 },
                                       { 262, 1 }, { 273, 256 }, { 277, 1 }, { 278, ROWS } };
    unsigned char head[256] = "II*\0\10\0\0\0\11";
    FILE *file = fopen(in_root(name), "wb");

    for (int i = 0; i < 8; i++)
        memcpy(head + 10 + 12 * i, (const uint16_t[]){ tag[i][0], 4, 1, 0, tag[i][1], 0 }, 12);
    memcpy(head + 10 + 12 * 8, (const uint32_t[]){ 279 | 4 << 16, 1, ROWS * COLUMNS }, 12);
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            pixels[row][column] = is_lesion(row, column, 0) ? 255 : 16;
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(head, 1, 256, file) + fwrite(pixels, 1, sizeof pixels, file),
                      256 + sizeof pixels);
    ck_assert_int_eq(fclose(file), 0);
}

#define FROC(CODE, PHRASE, ...)                                                                   \
    EXPECT(CODE, PHRASE, "evaluate", "--metrics", "froc", "--prediction", in_root("t.tiff"),      \
           "--label", in_root("m.tif"), __VA_ARGS__)

#define FOLDERS(CODE, PHRASE, ...)                                                                \
    EXPECT(CODE, PHRASE, "evaluate", "--metrics", "froc", "--prediction", in_root("found"),       \
           "--label", in_root("masks"), "--labels", "tumour:255", "--spacing", "1,0.1,0.1",       \
           __VA_ARGS__)

static void expect_output(const char *phrase)
{
    ck_assert_msg(strstr(root_text("out"), phrase) != NULL, "'%s' is not in: %s", phrase,
                  root_text("out"));
}

START_TEST(froc_of_the_map_finds_both_lesions)
{
    make_mask("m.tif");
    FROC(0, NULL, "--labels", "tumour:255", "--spacing", "1,0.1,0.1", "--nms-box", "4", "--json",
         "--nms-threshold", "0", "--csv", in_root("found.csv"));
    expect_output("\"targets\":2,\"excluded\":0,");
    expect_output("\"score\":1,");
    ck_assert_ptr_nonnull(strstr(root_text("found.csv"), "case,probability,x,y,target,verdict\n"));
    ck_assert_ptr_nonnull(strstr(root_text("found.csv"), ",1,hit\n"));
    FROC(0, NULL, "--labels", "tumour:255", "--spacing", "1,0.1,0.1", "--nms-box", "4");
    expect_output("2 targets (0 more are too small to count)");
    FROC(4, "none of 2 lesions counts", "--labels", "tumour:255", "--spacing", "1,0.01,0.01",
         "--grow-distance", "0");
    FROC(4, "does not say the distance", "--labels", "tumour:255");
    FROC(2, "expected no other metric", "--metrics", "froc dice");
    FROC(2, "expected that of the lesions", "--labels", "a:1 b:2");
    EXPECT(2, "are for --metrics froc", "evaluate", "--nms-box", "3", "--prediction", in_root("a"),
           "--label", in_root("b"));
}
END_TEST

START_TEST(a_mask_in_strips_is_that_of_tiles)
{
    char *tiled;

    make_mask("m.tif");
    FROC(0, NULL, "--labels", "tumour:255", "--spacing", "1,0.1,0.1", "--json");
    tiled = strdup(root_text("out"));
    make_mask_of_strips("m.tif");
    FROC(0, NULL, "--labels", "tumour:255", "--spacing", "1,0.1,0.1", "--json");
    ck_assert_str_eq(root_text("out"), tiled);
    expect_output("\"targets\":2,");
    free(tiled);
    write_text("m.tif", "none");
    FROC(4, "hint: a mask of the slide's extent is a tiled TIFF, or a picture of at most",
         "--labels", "tumour:255", "--spacing", "1,0.1,0.1");
}
END_TEST

START_TEST(folders_pair_maps_and_masks_by_name)
{
    ck_assert_int_eq(mkdir(in_root("found"), 0700) | mkdir(in_root("masks"), 0700), 0);
    EXPECT(0, NULL, "predict", in_root("runs/t"), in_root("s.tif"), "-o", in_root("found/"));
    make_mask("masks/s_mask.tif");
    FOLDERS(0, NULL, "--json");
    expect_output("\"case\":\"s\",\"targets\":2");
    ck_assert_int_eq(rename(in_root("masks/s_mask.tif"), in_root("masks/other.tif")), 0);
    FOLDERS(4, "other.tif' has no map of that name", "--json");
    ck_assert_int_eq(link(in_root("found/s.tiff"), in_root("found/other.tiff")), 0);
    FOLDERS(4, "s.tiff' has no mask of that name", "--json");
    FOLDERS(0, NULL, "--json", "--normal");
    expect_output("\"case\":\"s\",\"targets\":0");
    slide_make(in_root("masks/other.tif"), &(slide_plan){ ROWS / 2, COLUMNS, 64, 1, NULL, 0 });
    FOLDERS(4, "has 640 x 240 pixels, expected 40 x 30 as the map, or the slide's 640 x 480",
            "--json", "--normal");
}
END_TEST

/* ---- bad input ------------------------------------------------------------------------------- */

/* A slide whose tile 'number' of level 0 lies beyond the file's end. */
static void spoil_tile(const slide_plan *p, int number)
{
    static const unsigned char beyond[] = { 0, 0, 0, 0x7f };
    FILE *file;

    slide_make(in_root("damaged.tif"), p);
    file = fopen(in_root("damaged.tif"), "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 178 + 4 * number, SEEK_SET), 0);
    ck_assert_int_eq(fwrite(beyond, 1, 4, file), 4);
    fclose(file);
}

/* A network of volumes of one channel. */
static void train_on_volumes(void)
{
    EXPECT(0, NULL, "data", "phantom", "-o", in_root("heads"), "--cases", "2", "--extent", "8,8,8");
    write_text("volumes.csv", "image,label\nheads/imagesTr/phantom_000.nii.gz,a\n"
               "heads/imagesTr/phantom_001.nii.gz,b\n");
    write_text("volumes.ini", "[experiment]\nname = volumes\ntask = classification\n"
               "output = runs\n[data]\nsource = volumes.csv\nvalidation = none\n"
               "[patch]\nextent = 8 8 8\n[model]\nplugin = mlp\nhidden = 2\n"
               "[loss]\nplugin = cross_entropy\n[optimizer]\nplugin = adam\nlr = 1e-3\n"
               "[train]\nsteps = 1\n");
    EXPECT(0, NULL, "train", in_root("volumes.ini"), "-q");
}

START_TEST(bad_input_ends_with_one_line_and_no_map)
{
    char both[256];

    spoil_tile(&plan, 33);
    MAP(4, "expected a whole-slide image", "t.ini", in_root("x.tiff"));
    MAP(4, "No such file", "none.svs", in_root("x.tiff"));
    MAP(4, "damaged.tif", "damaged.tif", in_root("x.tiff"));
    MAP(2, "which is the map of a slide", "s.tif", in_root("x.txt"));
    MAP(2, "expected a folder for 2 slides", "s.tif", in_root("x.tiff"), in_root("damaged.tif"));
    MAP(2, "would replace an image", "s.tif", in_root("s.tif"));
    if (build_feature_missing("", "libpng") == NULL) {
        slide_make(in_root("zz_overlay.png"), &plan);
        MAP(2, "zz_overlay.png' would replace an image", "zz_overlay.png", in_root("zz.tiff"));
    }
    snprintf(both, sizeof both, "%s,%s", in_root("s.tif"), in_root("damaged.tif"));
    EXPECT(2, "s.tif' and 1 more: expected one file for each map", "predict", in_root("runs/t"),
           both, "-o", in_root("x.tiff"));
    MAP(2, "--no-mirror has no effect", "s.tif", in_root("x.tiff"), "--no-mirror");
    MAP(2, "--split has no effect", "s.tif", in_root("x.tiff"), "--split", "test");
    MAP(2, "--stride is for maps", "list.csv", in_root("x.csv"), "--stride", "4");
    MAP(2, "-o map.tiff writes the probability map", "s.tif", in_root("x.csv"));
    ck_assert_int_eq(mkdir(in_root("empty"), 0700), 0);
    MAP(4, "empty' holds no whole-slide image", "empty", in_root("x/"));
    MAP(2, "-o classes.csv writes a row for each patch", "list.csv", in_root("x/"));
    MAP(4, "but the network sees level 5", "s.tif", in_root("x.tiff"), "--set",
        "data.slide_level=5");
    train_on_volumes();
    EXPECT(3, "found one of 1 channel and 8 x 8 x 8 voxels", "predict", in_root("runs/volumes"),
           in_root("s.tif"), "-o", in_root("x.tiff"));
    ck_assert_int_ne(access(in_root("x.tiff"), F_OK), 0);
    ck_assert_int_ne(access(in_root("x_overlay.png"), F_OK), 0);
    MAP(4, "1 of 2 cases", "damaged.tif", in_root("some/"), in_root("s.tif"));
    expect_same_map("some/s.tiff");
}
END_TEST

/* Level 1 has the tissue, so only the process that reads a patch of level 0 meets the damage. */
START_TEST(ranks_name_a_damaged_slide_and_write_the_others)
{
    static const slide_plan wide = { ROWS, 4352, 64, 2, tissue, 3 };

    spoil_tile(&wide, 139);
    MAP(4, "damaged.tif", "damaged.tif", in_root("x.tiff"));
    if (!suite_has("ranks name a damaged slide", suite_has_plugin("comm/gloo"), "gloo"))
        return;
    predict_in_ranks(4, in_root("ranks/"), in_root("damaged.tif"), in_root("s.tif"));
    ck_assert_ptr_nonnull(strstr(root_text("first"), "damaged.tif"));
    ck_assert_ptr_nonnull(strstr(root_text("first"), "1 of 2 cases"));
    expect_same_map("ranks/s.tiff");
    ck_assert_int_ne(access(in_root("ranks/damaged.tiff"), F_OK), 0);
}
END_TEST

/* The first process alone writes: a folder stands in place of the map. */
START_TEST(ranks_end_together_where_the_map_cannot_be_written)
{
    if (!suite_has("ranks end together", suite_has_plugin("comm/gloo"), "gloo"))
        return;
    ck_assert_int_eq(mkdir(in_root("blocked"), 0700) | mkdir(in_root("blocked/s.tiff"), 0700), 0);
    predict_in_ranks(1, in_root("blocked/"), in_root("s.tif"), NULL);
    ck_assert_ptr_nonnull(strstr(root_text("first"), "s.tiff"));
    ck_assert_ptr_null(strstr(root_text("second"), "collectives"));
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* 100,000 x 100,000 pixels are 30 GB. The bound is twice the measured peak, mostly libraries. */
START_TEST(a_giant_slide_takes_little_memory)
{
    static const slide_box spot = { 60000, 40000, 800, 1200, { 224, 120, 192 } };
    struct rusage usage;
    map_file m;

    slide_make(in_root("giant.tif"), &(slide_plan){ 100000, 100000, 256, 8, &spot, 1 });
    MAP(0, "patches of tissue", "giant.tif", in_root("giant.tiff"), "--stride", "64");
    ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &usage), 0);
    ck_assert_int_lt(usage.ru_maxrss, 160 * 1024);
    read_map("giant.tiff", &m);
    ck_assert_int_eq(m.facts.rows, 1563);
    map_file_clear(&m);
}
END_TEST

int main(void)
{
    static const char *const library[] = { "openslide", "libtiff" };
    TCase *c = suite_new("slide map");

    tcase_add_unchecked_fixture(c, make_map, remove_root);
    for (size_t i = 0; i < sizeof library / sizeof *library; i++)
        if (build_feature_missing("", library[i]) != NULL)
            return suite_skip("check_slide_map", library[i]);
    tcase_add_test(c, a_map_shows_the_lesions_and_leaves_the_background_out);
    tcase_add_test(c, devices_ranks_and_ensembles_make_the_same_map);
    tcase_add_test(c, a_stride_makes_a_finer_map);
    tcase_add_test(c, a_list_of_patches_has_the_probabilities_of_the_map);
    tcase_add_test(c, slides_of_a_folder_are_found_by_their_endings);
    tcase_add_test(c, files_of_a_killed_prediction_are_removed);
    tcase_add_test(c, froc_of_the_map_finds_both_lesions);
    tcase_add_test(c, a_mask_in_strips_is_that_of_tiles);
    tcase_add_test(c, folders_pair_maps_and_masks_by_name);
    tcase_add_test(c, bad_input_ends_with_one_line_and_no_map);
    tcase_add_test(c, ranks_name_a_damaged_slide_and_write_the_others);
    tcase_add_test(c, ranks_end_together_where_the_map_cannot_be_written);
    suite_add_test_if(c, memory_is_ours, "no sanitizer", a_giant_slide_takes_little_memory);
    return suite_run();
}
