/*
 * range_kind.c - the names and colours of kinds of work.
 */
#include "base/profile/range_kind.h"

static const struct { const char *name; uint32_t color; } kinds[RANGE_KIND_COUNT] = {
    [RANGE_START] = { "start", 0xff8c564b },
    [RANGE_LOADING] = { "loading", 0xffd62728 },
    [RANGE_FORWARD] = { "forward", 0xff2ca02c },
    [RANGE_BACKWARD] = { "backward", 0xff1f77b4 },
    [RANGE_UPDATE] = { "update", 0xff9467bd },
    [RANGE_VALIDATION] = { "validation", 0xff17becf },
    [RANGE_CHECKPOINT] = { "checkpoint", 0xff7f7f7f },
    [RANGE_REPORT] = { "report", 0xffbcbd22 },
    [RANGE_TRANSFORM] = { "transform", 0xffff9896 },
    [RANGE_MODEL] = { "model", 0xff98df8a },
    [RANGE_LOSS] = { "loss", 0xffffbb78 },
    [RANGE_OPTIMIZER] = { "optimizer", 0xffc5b0d5 },
    [RANGE_KERNEL] = { "kernel", 0xffaec7e8 },
    [RANGE_OTHER] = { "other", 0xffc7c7c7 }
};

const char *range_kind_name(range_kind kind)
{
    return kinds[kind].name;
}

uint32_t range_kind_color(range_kind kind)
{
    return kinds[kind].color;
}
