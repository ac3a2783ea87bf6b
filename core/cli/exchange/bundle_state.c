/*
 * bundle_state.c - second names of DynUNet's tensors, and constants of SwinUNETR.
 *
 * A skip layer of DynUNet holds the layers of one level and the next skip layer; the bottleneck
 * ends the chain. So "downsamples.0" is "skip_layers.next_layer.downsample", too.
 */
#include "cli/exchange/bundle_state.h"

#include <stdlib.h>
#include <string.h>

#include "cli/exchange/export_folder.h"

static const char *name_of(const torch_value *state, int i)
{
    return torch_value_text(torch_value_key(state, i));
}

/* ---- DynUNet --------------------------------------------------------------------------------- */

/* The layers of a level under their own name, and in its skip layer. */
static const struct { const char *name, *second; bool numbered; } layers[] = {
    { "input_block.", "downsample.", false }, { "downsamples.", "downsample.", true },
    { "upsamples.", "upsample.", true }, { "deep_supervision_heads.", "super_head.", true },
    { "bottleneck.", "", false }
};

enum { INPUT, DOWN, UP, HEAD, BOTTLENECK, LAYERS };

/* Skip layers above that of a layer; 'levels' counts all of them. */
static int skip_depth(int layer, int number, int levels)
{
    switch (layer) {
    case DOWN: case HEAD: return number + 1;
    case UP: return levels - 1 - number;
    case BOTTLENECK: return levels;
    default: return 0;
    }
}

static const char *second_name(const char *name, int layer, int levels, arena *memory)
{
    const char *rest = name + strlen(layers[layer].name), *path = "skip_layers.";
    char *end = NULL;
    int number = layers[layer].numbered ? (int)strtol(rest, &end, 10) : 0;

    if (end != NULL)
        rest = end + 1;
    for (int i = skip_depth(layer, number, levels); i > 0; i--)
        path = arena_format(memory, "%snext_layer.", path);
    return arena_format(memory, "%s%s%s", path, layers[layer].second, rest);
}

static int count_levels(const torch_value *state)
{
    size_t size = strlen(layers[UP].name);
    int levels = 0;

    for (int i = 0; i < torch_value_count(state); i++)
        if (strncmp(name_of(state, i), layers[UP].name, size) == 0
            && atoi(name_of(state, i) + size) >= levels)
            levels = atoi(name_of(state, i) + size) + 1;
    return levels;
}

static void complete_dynunet(torch_value *state, const json_t *network, arena *memory)
{
    int count = torch_value_count(state), levels = count_levels(state);

    (void)network;
    for (int i = 0; i < count; i++)
        for (int l = 0; l < LAYERS; l++)
            if (strncmp(name_of(state, i), layers[l].name, strlen(layers[l].name)) == 0)
                export_put(state, second_name(name_of(state, i), l, levels, memory),
                           state->list.item[2 * i + 1], memory);
}

/* ---- SwinUNETR ------------------------------------------------------------------------------- */

/* Tokens p and q of a window have row rel(p - q) of the table of biases. */
static int64_t bias_row(const int window[3], int p, int q)
{
    int64_t row = 0;

    for (int a = 0, step = window[1] * window[2]; a < 3; a++) {
        int distance = p / step % window[a] - q / step % window[a];
        row = row * (2 * window[a] - 1) + distance + window[a] - 1;
        step /= a < 2 ? window[a + 1] : 1;
    }
    return row;
}

static torch_value *bias_rows(const int window[3], arena *memory)
{
    int tokens = window[0] * window[1] * window[2];
    safetensor t = { .type = SAFETENSORS_I64, .rank = 2, .extent = { tokens, tokens } };
    int64_t *row = arena_alloc(memory, (size_t)tokens * (size_t)tokens * sizeof *row);

    for (int p = 0; p < tokens; p++)
        for (int q = 0; q < tokens; q++)
            row[(int64_t)p * tokens + q] = bias_row(window, p, q);
    return export_tensor(&t, row, memory);
}

static void complete_swin_unetr(torch_value *state, const json_t *network, arena *memory)
{
    static const char table[] = ".relative_position_bias_table";
    const json_t *extent = json_object_get(network, "window_size");
    int count = torch_value_count(state), window[3];
    torch_value *index;

    for (int a = 0; a < 3; a++)
        window[a] = (int)json_integer_value(json_is_array(extent)
                                            ? json_array_get(extent, (size_t)a) : extent);
    index = bias_rows(window, memory);
    for (int i = 0; i < count; i++) {
        const char *name = name_of(state, i), *at = strstr(name, table);
        if (at != NULL)
            export_put(state, arena_format(memory, "%.*s.relative_position_index",
                                           (int)(at - name), name), index, memory);
    }
}

/* ---- all classes ----------------------------------------------------------------------------- */

void bundle_state_complete(torch_value *state, const json_t *network, arena *memory)
{
    static const struct {
        const char *target;
        void (*complete)(torch_value *state, const json_t *network, arena *memory);
    } classes[] = { { "DynUNet", complete_dynunet }, { "SwinUNETR", complete_swin_unetr } };
    const char *target = json_string_value(json_object_get(network, "_target_"));

    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (strcmp(classes[i].target, target) == 0)
            classes[i].complete(state, network, memory);
}
