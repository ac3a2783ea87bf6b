/*
 * fuzz_picture.c - arbitrary bytes as a picture. The reader refuses them with a line that names the
 * file, or returns values of a whole number of bits.
 */
#include "fuzz/fuzz_file.h"

#include "data/picture/picture_read.h"

static void require_sound(const volume *v)
{
    int64_t count = pons_volume_count(v) * v->channels;

    require(count > 0 && (v->channels == 1 || v->channels == 3), "a picture has 1 or 3 channels");
    for (int64_t n = 0; v->type == PONS_F32 && n < count; n++) {
        float value = ((const float *)v->voxels)[n];
        require(value >= 0 && value <= 65535 && value == (float)(int)value, "values are 16 bits");
    }
}

static void read_as(const char *path, pons_status (*read)(const char *, volume *, volume_facts *,
                                                          pons_error *))
{
    pons_error err = PONS_ERROR_INIT;
    volume v = { .voxels = NULL };
    volume_facts facts;
    pons_status status = read(path, &v, &facts, &err);

    if (status == PONS_OK) {
        require_sound(&v);
        require(facts.channels == v.channels && facts.grid.extent[2] == v.extent[2],
                "the facts are those of the picture");
        pons_volume_clear(&v);
        return;
    }
    require(err.status == status && strstr(err.text, path), "a refusal names the file");
    require(v.voxels == NULL, "nothing is returned with a refusal");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];

    snprintf(path, sizeof path, "/tmp/pons-fuzz-%d.png", (int)getpid());
    fuzz_write(path, data, size);
    read_as(path, picture_read_image);
    read_as(path, picture_read_label_compact);
    unlink(path);
    return 0;
}
