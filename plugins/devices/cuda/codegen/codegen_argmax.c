/*
 * codegen_argmax.c - the index of the first largest element along an axis, and the gradient of a
 * minimum or maximum, which goes to its first element.
 *
 * Each element of the reduced tensor has a window in the argument. A small window has one thread. A
 * large window has one block, whose threads visit every 256th element. NaN wins only if it is the
 * first element, as with a sequential `>`.
 */
#include "cuda/codegen/codegen.h"

enum { WINDOW_SMALL = 64 };

typedef struct argmax_plan {
    pons_shape x;
    unsigned axes;
    bool minimum, gradient;
    int64_t windows, window;
} argmax_plan;

/*
 * Write "const int base = ...;", the offset of window 'from', or "const int here = ...;", that of
 * an element within it.
 */
static void write_offset(const argmax_plan *p, const char *name, const char *from, bool window,
                         text *t)
{
    int64_t stride = 1, below = 1;

    text_add(t, "const %s %s = 0", text_index(codegen_count(p->x)), name);
    for (int a = p->x.rank - 1; a >= 0; a--) {
        int64_t n = p->x.extent[a];
        if (((p->axes & PONS_AXIS(a)) != 0) == window && n > 1) {
            text_add(t, " + %s / %lld %% %lld * %lld", from, (long long)below, (long long)n,
                     (long long)stride);
            below *= n;
        }
        stride *= n;
    }
    text_add(t, ";\n");
}

/* The first extreme over the threads of a block, broadcast to all. */
static const char join_threads[] =
"    __shared__ float key[256];\n"
"    __shared__ int place[256];\n"
"    key[threadIdx.x] = most;\n"
"    place[threadIdx.x] = best;\n"
"    for (int half = 128; half > 0; half /= 2) {\n"
"        __syncthreads();\n"
"        if ((int)threadIdx.x < half) {\n"
"            const float other = key[threadIdx.x + half];\n"
"            const int where = place[threadIdx.x + half];\n"
"            if (where >= 0 && (place[threadIdx.x] < 0 || other > key[threadIdx.x]\n"
"                || (other == key[threadIdx.x] && where < place[threadIdx.x]))) {\n"
"                key[threadIdx.x] = other;\n"
"                place[threadIdx.x] = where;\n"
"            }\n"
"        }\n"
"    }\n"
"    __syncthreads();\n"
"    best = place[0];\n";

static void write_search(const argmax_plan *p, const pons_request *r, bool block, text *t)
{
    text_add(t, "    float most = 0.0f;\n    int best = -1;\n"
             "    for (int i = %s; i < %lld; i += %d) {\n        ",
             block ? "(int)threadIdx.x" : "0", (long long)p->window, block ? CUDA_THREADS : 1);
    write_offset(p, "here", "i", true, t);
    text_add(t, "        float v = %snumber_%s(in0[base + here]);\n", p->minimum ? "-" : "",
             text_word(r->input[0].type));
    text_add(t, "        if (v != v && i > 0)\n            continue;\n"
             "        v = v != v ? __int_as_float(0x7f800000) : v;\n"
             "        if (best < 0 || v > most) {\n            best = i;\n            most = v;\n"
             "        }\n    }\n");
    if (block)
        text_add(t, "%s", join_threads);
    text_add(t, "    best = best < 0 ? 0 : best;\n");
}

static void write_result(const argmax_plan *p, const pons_request *r, bool block, text *t)
{
    const char *word = text_word(r->output[0].type);

    if (!p->gradient) {
        text_add(t, "%s    out0[number] = stored_%s((float)best);\n",
                 block ? "    if (threadIdx.x == 0)\n    " : "", word);
        return;
    }
    text_add(t, "    const float dy = number_%s(in1[number]);\n"
             "    for (int i = %s; i < %lld; i += %d) {\n        ", text_word(r->input[1].type),
             block ? "(int)threadIdx.x" : "0", (long long)p->window, block ? CUDA_THREADS : 1);
    write_offset(p, "here", "i", true, t);
    text_add(t, "        out0[base + here] = stored_%s(i == best ? dy : 0.0f);\n    }\n", word);
}

bool codegen_argmax(codegen *s)
{
    const pons_request *r = s->request;
    argmax_plan p = { .x = r->input[0].shape, .gradient = r->kind != PONS_KERNEL_ARG_MAX };
    bool block;
    text *t;

    if (p.gradient) {
        const pons_minmax_attributes *e = r->attributes;
        p.axes = e->axes;
        p.minimum = e->minimum;
    } else {
        p.axes = PONS_AXIS(((const pons_axis_attributes *)r->attributes)->axis);
    }
    p.window = p.windows = 1;
    for (int a = 0; a < p.x.rank; a++)
        *((p.axes & PONS_AXIS(a)) != 0 ? &p.window : &p.windows) *= p.x.extent[a];
    if (p.window > INT32_MAX / 2)
        return false;
    block = p.window > WINDOW_SMALL;
    t = codegen_begin(s, block ? p.windows : codegen_blocks(p.windows));
    if (block)
        text_add(t, "    const int number = (int)blockIdx.x;\n");
    else
        codegen_point(t, "number", p.windows, codegen_count(p.x));
    text_add(t, "    ");
    write_offset(&p, "base", "number", false, t);
    write_search(&p, r, block, t);
    write_result(&p, r, block, t);
    codegen_end(s);
    return true;
}
