/* Vectors of floats, as wide as the processor that this is compiled for has them. */
#ifndef IMPASTO_VECTORS_H
#define IMPASTO_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LAYOUT 2 /* of what the jobs are made of, as in native/__init__.py */

#ifndef LANES
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#endif

typedef float vec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

#if defined(__SSE__)
#include <immintrin.h>
#endif

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const float *from) { return *(const vec *)from; }
INLINE void store(float *to, vec x) { *(vec *)to = x; }
INLINE vec all(float x) { return x - (vec){0}; }
INLINE vec chosen(ivec where, vec x, vec y) { return (vec)((where & (ivec)x) | (~where & (ivec)y)); }

/* Compilers see no maximum in a comparison and a choice. The second one where one is not a number. */
#if LANES == 16 && defined(__AVX512F__)
INLINE vec larger(vec x, vec y) { return (vec)_mm512_max_ps((__m512)x, (__m512)y); }
INLINE vec smaller(vec x, vec y) { return (vec)_mm512_min_ps((__m512)x, (__m512)y); }
#elif LANES == 8 && defined(__AVX__)
INLINE vec larger(vec x, vec y) { return (vec)_mm256_max_ps((__m256)x, (__m256)y); }
INLINE vec smaller(vec x, vec y) { return (vec)_mm256_min_ps((__m256)x, (__m256)y); }
#else
INLINE vec larger(vec x, vec y) { return chosen(x > y, x, y); }
INLINE vec smaller(vec x, vec y) { return chosen(x < y, x, y); }
#endif

INLINE ivec widened(const uint8_t *from) {
    typedef uint8_t bytes __attribute__((vector_size(LANES), aligned(1), may_alias));
    return __builtin_convertvector(*(const bytes *)from, ivec);
}

/* The numbers of the lower or upper halves of two vectors, by turns. */
#if LANES == 16
#define LOWER(x, y) __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define UPPER(x, y) \
    __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif LANES == 8
#define LOWER(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define LOWER(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define UPPER(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#endif

/* Workers share a counter and take what comes next, so that a slow one does less. */
INLINE long next(long *counter) { return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

#endif
