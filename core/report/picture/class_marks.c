/*
 * class_marks.c - see class_marks.h.
 */
#include "report/picture/class_marks.h"

static const uint8_t error_color[MARK_ERROR_COUNT][3] = {
    [MARK_MISSED] = { 255, 90, 60 }, [MARK_FALSE_ALARM] = { 70, 150, 255 },
    [MARK_OTHER_CLASS] = { 250, 220, 60 }
};

static const char *const error_name[MARK_ERROR_COUNT] = {
    [MARK_MISSED] = "missed", [MARK_FALSE_ALARM] = "false alarm",
    [MARK_OTHER_CLASS] = "another class"
};

static const struct { const char *name; uint8_t rgb[3]; } class_color[MARK_COLORS] = {
    { "green", { 60, 220, 90 } },   { "magenta", { 240, 90, 220 } }, { "cyan", { 100, 240, 210 } },
    { "violet", { 165, 115, 255 } }, { "pink", { 255, 175, 190 } },  { "brown", { 170, 120, 80 } },
    { "teal", { 0, 140, 130 } },    { "purple", { 150, 40, 150 } },  { "olive", { 140, 150, 50 } },
    { "mint", { 190, 255, 200 } }
};

const uint8_t *mark_class_color(int index)
{
    return class_color[index % MARK_COLORS].rgb;
}

const char *mark_class_color_name(int index)
{
    return class_color[index % MARK_COLORS].name;
}

const uint8_t *mark_error_color(mark_error error)
{
    return error_color[error];
}

const char *mark_error_name(mark_error error)
{
    return error_name[error];
}

int mark_value(const volume *v, int64_t voxel, int channel)
{
    int64_t n = voxel * v->channels + channel;

    return v->type == PONS_U8 ? ((const uint8_t *)v->voxels)[n] : ((const int32_t *)v->voxels)[n];
}

int mark_class_of(const volume *v, int64_t voxel)
{
    int found = 0;

    if (v->channels == 1)
        return mark_value(v, voxel, 0);
    for (int c = 0; c < v->channels; c++)
        if (mark_value(v, voxel, c) != 0)
            found = c + 1;
    return found;
}

int mark_error_of(const volume *label, const volume *prediction, int64_t voxel)
{
    bool missed = false, wrong = false;

    for (int c = 0; c < label->channels; c++) {
        int expected = mark_value(label, voxel, c);
        int found = mark_value(prediction, voxel, c);

        missed = missed || (expected != found && expected != 0);
        wrong = wrong || (expected != found && found != 0);
    }
    return missed && wrong ? MARK_OTHER_CLASS : missed ? MARK_MISSED
                                              : wrong ? MARK_FALSE_ALARM : 0;
}
