/*
 * gallery_files.c - the galleries of broken files, written out for check_gallery.sh: a folder per
 * case with the file, its valid twin, and what the program is to be asked and to answer:
 *
 *     FOLDER/KIND-NNN/run     a line for a shell in that folder; $keep is the user's folder
 *     FOLDER/KIND-NNN/code    the exit code
 *     FOLDER/KIND-NNN/phrase  what the standard error holds
 *     FOLDER/KIND-NNN/twin    the same question about the twin, which ends with 0
 */
#include "gallery_ini.h"
#include "gallery_json.h"
#include "gallery_nifti.h"
#include "gallery_plugin.h"
#include "gallery_safetensors.h"
#include "suite.h"

#include "base/file/file.h"

#include <stdarg.h>
#include <sys/stat.h>

#define LENGTH(TABLE) (int)(sizeof(TABLE) / sizeof(TABLE)[0])

static const char *root;
static char here[512];

static void put(const char *name, const void *bytes, size_t size)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", here, name);
    maker_write(path, bytes, size);
}

__attribute__((format(printf, 2, 3))) static void say(const char *name, const char *format, ...)
{
    char text[4096];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    put(name, text, strlen(text));
}

static void begin(const char *kind, int number, int code, const char *phrase)
{
    pons_error err = PONS_ERROR_INIT;

    snprintf(here, sizeof here, "%s/%s-%03d", root, kind, number);
    ck_assert_msg(folder_make(here, &err) == PONS_OK, "%s", err.text);
    say("code", "%d\n", code);
    say("phrase", "%s\n", phrase);
}

/* ---- volumes --------------------------------------------------------------------------------- */

static void ask_volume(const char *extension, bool label)
{
    if (label) {
        say("run", "pons evaluate --prediction good%s --label bad%s --overlay $keep/out.png\n",
            extension, extension);
        say("twin", "pons evaluate --prediction good%s --label good%s\n", extension, extension);
    } else {
        say("run", "pons data crop bad%s -o $keep/out.nii.gz --start 0,0,0 --extent 2,2,2\n",
            extension);
        say("twin", "pons data crop good%s -o out.nii.gz --start 0,0,0 --extent 2,2,2\n",
            extension);
    }
}

static void put_volume(const char *name, const maker *m, bool compressed)
{
    unsigned char packed[8192];
    char file[64];

    snprintf(file, sizeof file, "%s.nii%s", name, compressed ? ".gz" : "");
    if (compressed)
        put(file, packed, maker_gzip(m->bytes, m->size, packed, sizeof packed));
    else
        put(file, m->bytes, m->size);
}

static void write_nifti(void)
{
    for (int n = 0; n < LENGTH(nifti_gallery); n++) {
        const exhibit *x = &nifti_gallery[n];
        bool compressed = x->flags & MAKE_GZIP;
        maker m;

        begin("nifti", n, PONS_DATA, x->phrase);
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

    begin("gzip", number, PONS_DATA, phrase);
    maker_base(&m, 0);
    put_volume("good", &m, true);
    put("bad.nii.gz", bad, size);
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

/* The broken file is included on top of a complete one, so that its twin can be explained. */
static void write_ini(void)
{
    static const char complete[] = "[patch]\nextent = 16\n[model]\nplugin = unet\nchannels = 2 4\n"
                                   "strides = 2\n[loss]\nplugin = dice\n[optimizer]\n"
                                   "plugin = adam\n";

    for (int n = 0; n < INI_GALLERY_COUNT; n++) {
        const broken_ini *b = &ini_gallery[n];
        bool patch = strstr(b->text, "[patch]") != NULL, named = strstr(b->text, "name =") != NULL;

        begin("ini", n, PONS_CONFIG, b->phrase);
        say("good.ini", "[train]\nbatch = 2\n");
        say("bad.ini", "[train]\nbatch = x\n");
        say("loop.ini", "include = a.ini\n");
        say("a.ini", "%s", b->text);
        say("b.ini", "%s", b->twin);
        for (int twin = 0; twin < 2; twin++)
            say(twin ? "twin.ini" : "main.ini", "include = %s.ini\n%s%s%s", twin ? "b" : "a",
                patch ? strchr(complete + 1, '[') : complete,
                "[data]\nsource = ../../keep/ph\nvalidation = none\n[train]\nsteps = 2\n",
                named ? "" : "[experiment]\nname = new\n");
        say("run", "pons train main.ini\n");
        say("twin", "pons explain twin.ini\n");
    }
}

static void put_case(const char *name)
{
    char file[64];
    maker m;

    maker_base(&m, 0);
    snprintf(file, sizeof file, "imagesTr/%s", name);
    put_volume(file, &m, true);
    maker_base(&m, MAKE_LABEL);
    for (int at = 352; at < (int)m.size; at += 2)
        m.bytes[at] &= 1;
    snprintf(file, sizeof file, "labelsTr/%s", name);
    put_volume(file, &m, true);
}

static void write_json(void)
{
    for (int n = 0; n < LENGTH(json_gallery); n++) {
        const char *const folders[] = { "imagesTr", "labelsTr" };

        begin("json", n, json_gallery[n].status, json_gallery[n].phrase);
        for (int f = 0; f < LENGTH(folders); f++) {
            char path[1024];
            snprintf(path, sizeof path, "%s/%s", here, folders[f]);
            ck_assert_int_eq(mkdir(path, 0755), 0);
        }
        put_case("s_10");
        put_case("s_2");
        say("dataset.json", "%s", json_gallery[n].text);
        say("twin.json", "%s", GOOD);
        say("a.ini", "[experiment]\nname = a\n[data]\nsource = .\nvalidation = none\n"
            "[patch]\nextent = 4\n[model]\nplugin = unet\nchannels = 2 4\nstrides = 2\n"
            "[loss]\nplugin = dice\n[optimizer]\nplugin = adam\nlr = 1\n[train]\nsteps = 1\n");
        say("run", "pons train a.ini\n");
        say("twin", "cp twin.json dataset.json; pons data check a.ini\n");
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
    put(name, bytes, 8 + length + data);
}

/* A twin is a sound file of other tensors: the network asks for its own and ends with 3. */
static void write_safetensors(void)
{
    static const char ask[] = "pons predict %s.safetensors --config $keep/a.ini "
                              "$keep/ph/imagesTr/phantom_000.nii.gz -o $keep/out.nii.gz\n";

    for (int n = 0; n < LENGTH(safetensors_gallery); n++) {
        const broken_safetensors *b = &safetensors_gallery[n];

        begin("weights", n, PONS_DATA, b->phrase);
        put_tensors("bad.safetensors", b->header, b->data);
        put_tensors("good.safetensors", b->twin, b->twin_data);
        say("run", ask, "bad");
        say("twin", ask, "good");
        say("twin.code", "%d\n", PONS_CONFIG);
    }
}

static void write_plugins(const char *valid)
{
    for (int n = 0; n < LENGTH(plugin_gallery); n++) {
        pons_error err = PONS_ERROR_INIT;
        char path[1024];

        begin("plugin", n, PONS_PLUGIN, plugin_gallery[n].phrase);
        ck_assert_int_eq(file_read(valid, 1 << 26, &image, &image_size, PONS_DATA, &err), PONS_OK);
        for (int twin = 1; twin >= 0; twin--) {
            snprintf(path, sizeof path, "%s/%s/schedule", here, twin ? "good" : "bad");
            ck_assert_int_eq(folder_make(path, &err), PONS_OK);
            if (!twin)
                plugin_gallery[n].change();
            put(twin ? "good/schedule/effect.so" : "bad/schedule/effect.so", image, image_size);
        }
        free(image);
        say("run", "PONS_PLUGIN_PATH=$PWD/bad:$PONS_PLUGIN_PATH pons train $keep/a.ini "
            "--set schedule.plugin=effect\n");
        say("twin", "PONS_PLUGIN_PATH=$PWD/good:$PONS_PLUGIN_PATH pons explain $keep/a.ini "
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
