/*
 * block.c - threads of a block as coroutines: each runs to a barrier or a shuffle, then the next of
 * its warp, and each warp runs to a barrier.
 *
 * The first thread of a block decides. If it meets no barrier, no other thread may, and all run one
 * after the other on its stack. Otherwise every other block runs its warps and threads from the
 * last to the first. A barrier missing after a write changes the result in one order; one missing
 * before an overwrite changes it in the other.
 */
#include "block.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 256, WARP = 32, STACK = 256 << 10 };
typedef enum stop { STOP_END = 0, STOP_BARRIER, STOP_SHUFFLE } stop;

/* ---- coroutines ------------------------------------------------------------------------------ */

#if defined(__x86_64__)

typedef struct place {
    void *stack;
} place;

void fake_block_switch(void **from, void *to);
__asm__(".text\n"
        ".type fake_block_switch, @function\n"
        "fake_block_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size fake_block_switch, .-fake_block_switch\n");

static void place_switch(place *from, place *to) { fake_block_switch(&from->stack, to->stack); }

static void place_make(place *p, char *stack, size_t size, void (*enter)(void))
{
    uintptr_t *top = (uintptr_t *)(stack + size);

    *--top = 0; /* return address of 'enter'; 16 bytes divide the stack above it, as in a call */
    *--top = (uintptr_t)enter;
    for (int i = 0; i < 6; i++)
        *--top = 0;
    p->stack = top;
}

#else

#include <ucontext.h>

typedef struct place {
    ucontext_t context;
} place;

static void place_switch(place *from, place *to) { swapcontext(&from->context, &to->context); }

static void place_make(place *p, char *stack, size_t size, void (*enter)(void))
{
    getcontext(&p->context);
    p->context.uc_stack.ss_sp = stack;
    p->context.uc_stack.ss_size = size;
    makecontext(&p->context, enter, 0);
}

#endif

/* ---- a block --------------------------------------------------------------------------------- */

typedef struct fiber {
    place at;
    char *stack;
    stop stopped;
    unsigned turn;         /* of shuffles: its values stay until the next is read                 */
} fiber;

struct block_runner {
    place home;
    fiber fiber[THREADS];
    float value[2][THREADS];
    struct shim_state *shim;
    void (*kernel)(void **);
    void **parameters;
    int current, threads;
    bool backwards;        /* runs from the last warp and thread to the first                     */
    struct shim_place block;
};

static _Thread_local block_runner *running;

static void leave(stop why)
{
    fiber *f = &running->fiber[running->current];

    f->stopped = why;
    place_switch(&f->at, &running->home);
}

static void enter(void)
{
    for (;;) {
        running->kernel(running->parameters);
        leave(STOP_END);
    }
}

static void barrier(void) { leave(STOP_BARRIER); }

static float shuffle_down(float x, unsigned offset)
{
    block_runner *r = running;
    int thread = r->current, from = thread % 32 + (int)offset < 32 ? thread + (int)offset : thread;
    unsigned turn = r->fiber[thread].turn++ % 2;

    r->value[turn][thread] = x;
    leave(STOP_SHUFFLE);
    return running->value[turn][from];
}

static void resume(block_runner *r, int thread)
{
    r->current = thread;
    r->shim->thread = (struct shim_place){ (unsigned)thread, 0, 0 };
    place_switch(&r->home, &r->fiber[thread].at);
}

static void prepare(block_runner *r, int thread)
{
    fiber *f = &r->fiber[thread];

    f->turn = 0;
    if (f->stack == NULL) {
        f->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (f->stack == MAP_FAILED)
            abort();
        place_make(&f->at, f->stack, STACK, enter);
    }
}

static void diverged(const block_runner *r, int thread, int other)
{
    static const char *const names[] = { "its end", "a barrier", "a shuffle" };

    fprintf(stderr, "fake cuda: block %u: thread %d is at %s, thread %d at %s\n", r->block.x,
            thread, names[r->fiber[thread].stopped], other, names[r->fiber[other].stopped]);
    abort();
}

/* Run a warp from thread 'first' on, to a barrier or its end; all its threads meet at a shuffle. */
static void run_warp(block_runner *r, int warp, int first)
{
    int begin = WARP * warp;

    do {
        for (int i = first; i < WARP; i++)
            resume(r, begin + (r->backwards ? WARP - 1 - (i - first) : i));
        for (int i = 1; i < WARP; i++)
            if (r->fiber[begin + i].stopped != r->fiber[begin].stopped)
                diverged(r, begin + i, begin);
        first = 0;
    } while (r->fiber[begin].stopped == STOP_SHUFFLE);
}

/* Run all warps; 'begun': thread 0 has run to its first stop. */
static stop run_warps(block_runner *r, bool begun)
{
    int warps = r->threads / WARP;

    for (int i = 0; i < warps; i++) {
        int warp = r->backwards ? warps - 1 - i : i;
        run_warp(r, warp, begun && warp == 0 ? 1 : 0);
    }
    for (int i = 1; i < warps; i++)
        if (r->fiber[WARP * i].stopped != r->fiber[0].stopped)
            diverged(r, WARP * i, 0);
    return r->fiber[0].stopped;
}

void block_run(block_runner *r, struct shim_state *shim, void (*kernel)(void **), void **parameters,
               unsigned block, int threads)
{
    running = r;
    r->shim = shim;
    r->kernel = kernel;
    r->parameters = parameters;
    r->threads = threads;
    r->block = (struct shim_place){ block, 0, 0 };
    shim->block = r->block;
    shim->barrier = barrier;
    shim->shuffle_down = shuffle_down;
    prepare(r, 0);
    resume(r, 0);
    if (r->fiber[0].stopped == STOP_END) {
        for (int i = 1; i < threads; i++) {
            shim->thread = (struct shim_place){ (unsigned)i, 0, 0 };
            r->current = 0;
            kernel(parameters);
        }
        return;
    }
    for (int i = 1; i < threads; i++)
        prepare(r, i);
    r->backwards = !r->backwards;
    for (bool begun = true; run_warps(r, begun) != STOP_END;)
        begun = false;
}

block_runner *block_runner_new(void) { return calloc(1, sizeof(block_runner)); }

void block_runner_free(block_runner *r)
{
    for (int i = 0; i < THREADS; i++)
        if (r->fiber[i].stack != NULL)
            munmap(r->fiber[i].stack, STACK);
    free(r);
}
