/*
 * shuffle.h - a vector of lanes chosen by index from two vectors; lanes of b follow those of a.
 */
#ifndef PLUGINS_DEVICES_CPU_SIMD_SHUFFLE_H
#define PLUGINS_DEVICES_CPU_SIMD_SHUFFLE_H

/* clang, and gcc from 12 on. Older gcc takes the indices as a vector of integers of type MASK. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE(MASK, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef SHUFFLE
#define SHUFFLE(MASK, a, b, ...) __builtin_shuffle(a, b, (MASK){ __VA_ARGS__ })
#endif

#endif
