/*
 * gallery_files.c - writes the galleries of broken files for check_gallery.sh. Each case is a
 * folder with the file, its valid twin, and the command and its result:
 *
 *     FOLDER/KIND-NNN/run     a shell command in that folder; $keep is the user's folder
 *     FOLDER/KIND-NNN/code    the exit code
 *     FOLDER/KIND-NNN/phrase  a part of the standard error
 *     FOLDER/KIND-NNN/twin    the same command for the twin, which exits with 0
 */
#include "integration/gallery/gallery_ini.h"
#include "integration/gallery/gallery_json.h"
#include "integration/gallery/gallery_nifti.h"
#include "integration/gallery/gallery_list.h"
#include "integration/gallery/gallery_nnunet.h"
#include "integration/gallery/gallery_plugin.h"
#include "integration/gallery/gallery_safetensors.h"
#include "integration/gallery/gallery_trees.h"
#include "support/suite.h"
#include "support/tree_maker.h"

#include "base/file/file.h"

#include <stdarg.h>
#include <sys/stat.h>

#define LENGTH(TABLE) (int)(sizeof(TABLE) / sizeof(TABLE)[0])

static const char *root;
static char here[512];

static void write_file(const char *name, const void *bytes, size_t size)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", here, name);
    maker_write(path, bytes, size);
}

__attribute__((format(printf, 2, 3))) static void write_line(const char *name, const char *format,
                                                             ...)
{
    char text[4096];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    write_file(name, text, strlen(text));
}

static void begin_case(const char *kind, int number, int code, const char *phrase)
{
    pons_error err = PONS_ERROR_INIT;

    snprintf(here, sizeof here, "%s/%s-%03d", root, kind, number);
    ck_assert_msg(folder_make(here, &err) == PONS_OK, "%s", err.text);
    write_line("code", "%d\n", code);
    write_line("phrase", "%s\n", phrase);
}

/* ---- volumes --------------------------------------------------------------------------------- */

static void ask_volume(const char *extension, bool label)
{
    if (label) {
        write_line("run",
                   "pons evaluate --prediction good%s --label bad%s --overlay $keep/out.png\n",
                   extension, extension);
        write_line("twin", "pons evaluate --prediction good%s --label good%s\n", extension,
                   extension);
    } else {
        write_line("run", "pons data crop bad%s -o $keep/out.nii.gz --start 0,0,0 --extent 2,2,2\n",
                   extension);
        write_line("twin", "pons data crop good%s -o out.nii.gz --start 0,0,0 --extent 2,2,2\n",
                   extension);
    }
}

static void put_volume(const char *name, const maker *m, bool compressed)
{
    unsigned char packed[8192];
    char file[64];

    snprintf(file, sizeof file, "%s.nii%s", name, compressed ? ".gz" : "");
    if (compressed)
        write_file(file, packed, maker_gzip(m->bytes, m->size, packed, sizeof packed));
    else
        write_file(file, m->bytes, m->size);
}

static void write_nifti(void)
{
    for (int n = 0; n < LENGTH(nifti_gallery); n++) {
        const exhibit *x = &nifti_gallery[n];
        bool compressed = x->flags & MAKE_GZIP;
        maker m;

        begin_case("nifti", n, PONS_DATA, x->phrase);
        maker_base(&m, x->flags);
        put_volume("good", &m, compressed);
        maker_put_all(&m, x->change, LENGTH(x->change));
        m.size = (size_t)((int)m.size + x->longer);
        put_volume("bad", &m, compressed);
        ask_volume(compressed ? ".nii.gz" : ".nii", x->flags & MAKE_LABEL);
    }
}

static void put_gzip(int number, const char *phrase, const unsigned char *bad, size_t size)
{
    maker m;

    begin_case("gzip", number, PONS_DATA, phrase);
    maker_base(&m, 0);
    put_volume("good", &m, true);
    write_file("bad.nii.gz", bad, size);
    ask_volume(".nii.gz", false);
}

static void write_gzip(void)
{
    unsigned char packed[8192];
    maker m;
    int n = 0;

    maker_base(&m, 0);
    size_t size = maker_gzip(m.bytes, m.size, packed, sizeof packed);
    for (size_t cut = 3; cut < size; cut += size / 12)
        put_gzip(n++, "expected", packed, cut);
    for (size_t back = 1; back <= 8; back++) {
        packed[size - back] ^= 0x10;
        put_gzip(n++, back > 4 ? "incorrect data check" : "incorrect length", packed, size);
        packed[size - back] ^= 0x10;
    }
    memcpy(packed + size, "garbage garbage", 15);
    put_gzip(n++, "gzip", packed, size + 15);
    put_gzip(n++, "expected 1f 8b", m.bytes, m.size);
}

/* ---- configuration and datasets -------------------------------------------------------------- */

/* A complete file includes the broken one, so that 'explain' accepts its twin. */
static void write_ini(void)
{
    static const char complete[] = "[patch]\nextent = 16\n[model]\nplugin = unet\nchannels = 2 4\n"
                                   "strides = 2\n[loss]\nplugin = dice\n[optimizer]\n"
                                   "plugin = adam\n";

    for (int n = 0; n < INI_GALLERY_COUNT; n++) {
        const broken_ini *b = &ini_gallery[n];
        bool patch = strstr(b->text, "[patch]") != NULL, named = strstr(b->text, "name =") != NULL;

        begin_case("ini", n, PONS_CONFIG, b->phrase);
        write_line("good.ini", "[train]\nbatch = 2\n");
        write_line("bad.ini", "[train]\nbatch = x\n");
        write_line("loop.ini", "include = a.ini\n");
        write_line("a.ini", "%s", b->text);
        write_line("b.ini", "%s", b->twin);
        for (int twin = 0; twin < 2; twin++)
            write_line(twin ? "twin.ini" : "main.ini", "include = %s.ini\n%s%s%s", twin ? "b" : "a",
                       patch ? strchr(complete + 1, '[') : complete,
                       "[data]\nsource = ../../keep/ph\nvalidation = none\n[train]\nsteps = 2\n",
                       named ? "" : "[experiment]\nname = new\n");
        write_line("run", "pons train main.ini\n");
        write_line("twin", "pons explain twin.ini\n");
    }
}

static void put_image(const char *folder, const char *name)
{
    char file[64];
    maker m;

    maker_base(&m, 0);
    snprintf(file, sizeof file, "%s/%s", folder, name);
    put_volume(file, &m, true);
}

static void put_label(const char *folder, const char *name)
{
    char file[64];
    maker m;

    maker_base(&m, MAKE_LABEL);
    for (int at = 352; at < (int)m.size; at += 2)
        m.bytes[at] &= 1;
    snprintf(file, sizeof file, "%s/%s", folder, name);
    put_volume(file, &m, true);
}

static void make_folder(const char *name)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", here, name);
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

/* Write an INI file with more lines of [data], and the command that fails. */
static void ask_training(const char *source, const char *more)
{
    write_line("a.ini", "[experiment]\nname = a\n[data]\nsource = %s\nvalidation = none\n%s"
               "[patch]\nextent = 4\n[model]\nplugin = unet\nchannels = 2 4\nstrides = 2\n"
               "[loss]\nplugin = dice\n[optimizer]\nplugin = adam\nlr = 1\n[train]\nsteps = 1\n",
               source, more);
    write_line("run", "pons train a.ini\n");
}

/* Make two folders of images and labels, and put two cases into them. */
static void make_pairs(const char *images, const char *labels, const char *const name[2])
{
    make_folder(images);
    make_folder(labels);
    for (int n = 0; n < 2; n++) {
        put_image(images, name[n]);
        put_label(labels, name[n]);
    }
}

/* The broken lists of a layout; 'good' is the valid twin of all. */
static void write_lists(const char *layout, const char *file, const broken_list *list, int count,
                        const char *good)
{
    static const char *const names[2] = { "a", "b" };
    char options[128];

    snprintf(options, sizeof options, "layout = %s\nlabels = background:0 spleen:1\n", layout);
    for (int n = 0; n < count; n++) {
        begin_case(layout, n, list[n].status, list[n].phrase);
        make_pairs("img", "lab", names);
        write_line(file, "%s", list[n].text);
        write_line("twin", "cp good %s; pons data check a.ini\n", file);
        write_line("good", "%s", good);
        ask_training(file, options);
    }
}

static void write_json(void)
{
    static const char *const names[2] = { "s_10", "s_2" };

    for (int n = 0; n < LENGTH(json_gallery); n++) {
        begin_case("json", n, json_gallery[n].status, json_gallery[n].phrase);
        make_pairs("imagesTr", "labelsTr", names);
        write_line("dataset.json", "%s", json_gallery[n].text);
        write_line("twin.json", "%s", GOOD);
        ask_training(".", "");
        write_line("twin", "cp twin.json dataset.json; pons data check a.ini\n");
    }
}

/* A raw nnU-Net folder with two cases of two channels. */
static void write_nnunet_folder(void)
{
    static const char *const cases[] = { "s_10", "s_2" };

    make_folder("imagesTr");
    make_folder("labelsTr");
    for (int c = 0; c < LENGTH(cases); c++) {
        for (int channel = 0; channel < 2; channel++) {
            char name[32];
            snprintf(name, sizeof name, "%s_%04d", cases[c], channel);
            put_image("imagesTr", name);
        }
        put_label("labelsTr", cases[c]);
    }
}

static void write_nnunet(void)
{
    for (int n = 0; n < LENGTH(nnunet_gallery); n++) {
        const broken_nnunet *b = &nnunet_gallery[n];
        char path[1024];

        begin_case("nnunet", n, PONS_DATA, b->phrase);
        write_nnunet_folder();
        write_line("dataset.json", "%s", b->text);
        write_line("twin.json", "%s", nnunet_good);
        if (b->added != NULL)
            write_line(b->added, "a file too many");
        if (b->removed != NULL) {
            snprintf(path, sizeof path, "%s/%s", here, b->removed);
            ck_assert_int_eq(remove(path), 0);
        }
        ask_training(".", "");
        write_line("twin", "mkdir sound && cp -r ../nnunet-000/*Tr sound && "
                   "cp twin.json sound/dataset.json && pons data check a.ini --set "
                   "data.source=sound\n");
    }
}

static void write_tree_settings(const char *name, const char *keys)
{
    char file[64];

    snprintf(file, sizeof file, "%s.ini", name);
    write_line("network.ini", "[patch]\nextent = 4\n[model]\nplugin = unet\nchannels = 2 4\n"
               "strides = 2\n[loss]\nplugin = dice\n[optimizer]\nplugin = adam\nlr = 0.01\n"
               "[train]\nsteps = 1\n");
    write_line(file, "include = network.ini\n[experiment]\nname = %s\n[data]\nsource = %s\n"
               "validation = none\n%s\n", name, name, keys);
}

/* The damaged tree is 'bad', its valid twin 'good'; the twin is trained on. */
static void write_trees(void)
{
    for (int n = 0; n < LENGTH(tree_gallery); n++) {
        char path[1024], command[2048];

        begin_case("tree", n, tree_gallery[n].status, tree_gallery[n].phrase);
        for (int twin = 0; twin < 2; twin++) {
            snprintf(path, sizeof path, "%s/%s", here, twin ? "good" : "bad");
            if (tree_gallery[n].tree != NULL)
                brats_tree_make(brats_tree_of(tree_gallery[n].tree), path);
            else
                bids_tree_make(path);
            write_tree_settings(twin ? "good" : "bad", twin ? "" : tree_gallery[n].keys);
        }
        snprintf(command, sizeof command, "cd '%s/bad' && { %s; }", here, tree_gallery[n].damage);
        ck_assert_msg(system(command) == 0, "%s", command);
        write_line("run", "pons train bad.ini\n");
        write_line("twin", "pons train good.ini\n");
    }
}

/* ---- weights and plugins --------------------------------------------------------------------- */

static void put_tensors(const char *name, const char *header, size_t data)
{
    size_t length = strlen(header);
    char bytes[8192] = "";

    ck_assert_uint_lt(8 + length + data, sizeof bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)((unsigned long long)length >> 8 * i);
    memcpy(bytes + 8, header, length);
    write_file(name, bytes, 8 + length + data);
}

/*
 * A twin is a valid file with other tensors: the network does not find its own, and exits with 3.
 */
static void write_safetensors(void)
{
    static const char ask[] = "pons predict %s.safetensors --config $keep/a.ini "
                              "$keep/ph/imagesTr/phantom_000.nii.gz -o $keep/out.nii.gz\n";

    for (int n = 0; n < LENGTH(safetensors_gallery); n++) {
        const broken_safetensors *b = &safetensors_gallery[n];

        begin_case("weights", n, PONS_DATA, b->phrase);
        put_tensors("bad.safetensors", b->header, b->data);
        put_tensors("good.safetensors", b->twin, b->twin_data);
        write_line("run", ask, "bad");
        write_line("twin", ask, "good");
        write_line("twin.code", "%d\n", PONS_CONFIG);
    }
}

static void write_plugins(const char *valid)
{
    for (int n = 0; n < LENGTH(plugin_gallery); n++) {
        pons_error err = PONS_ERROR_INIT;
        char path[1024];

        begin_case("plugin", n, PONS_PLUGIN, plugin_gallery[n].phrase);
        ck_assert_int_eq(file_read(valid, 1 << 26, &image, &image_size, PONS_DATA, &err), PONS_OK);
        for (int twin = 1; twin >= 0; twin--) {
            snprintf(path, sizeof path, "%s/%s/schedule", here, twin ? "good" : "bad");
            ck_assert_int_eq(folder_make(path, &err), PONS_OK);
            if (!twin)
                plugin_gallery[n].change();
            write_file(twin ? "good/schedule/effect.so" : "bad/schedule/effect.so", image,
                       image_size);
        }
        free(image);
        write_line("run", "PONS_PLUGIN_PATH=$PWD/bad:$PONS_PLUGIN_PATH pons train $keep/a.ini "
                   "--set schedule.plugin=effect\n");
        write_line("twin", "PONS_PLUGIN_PATH=$PWD/good:$PONS_PLUGIN_PATH pons explain $keep/a.ini "
                   "--set schedule.plugin=effect\n");
    }
}

static const char *valid_plugin;

START_TEST(galleries_are_written)
{
    write_nifti();
    write_gzip();
    write_ini();
    write_json();
    write_nnunet();
    write_lists("datalist", "datalist.json", datalist_gallery, LENGTH(datalist_gallery), LIST_GOOD);
    write_lists("csv", "train.csv", csv_gallery, LENGTH(csv_gallery), CSV_GOOD);
    write_trees();
    write_safetensors();
    write_plugins(valid_plugin);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: gallery_files FOLDER PLUGIN.so\n");
        return EXIT_FAILURE;
    }
    root = argv[1];
    valid_plugin = argv[2];
    tcase_add_test(suite_new("gallery_files"), galleries_are_written);
    return suite_run();
}
