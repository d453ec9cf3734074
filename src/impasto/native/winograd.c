/* Winograd's convolution with a kernel of 3 x 3 (Lavin and Gray 2016), of maps that lie position by
 * position, and its gradient in the input.
 *
 * A tile of SIDE x SIDE positions of the input gives (SIDE - 2) x (SIDE - 2) of the output: its
 * values at SIDE^2 points of an interpolation are multiplied by those of the kernel there, which is
 * a matrix product per point, and interpolated. The points 0, 1, -1, 2, 1/2, infinity, and of larger
 * tiles -2 and -1/2 as well, are closed under inversion: the flipped kernel, which the gradient needs,
 * has at p the value of the kernel at 1/p, so the same transformed kernel serves both ways.
 */
#include "halving.h"
#include "product.h"

#define SOON 64 /* numbers on: fetched already, as so many streams are not foreseen */

struct convolution {
    const float *input; /* (rows, width, in) */
    const float *kernel; /* (points, out / PANEL, in, PANEL), or of the flipped one (points, in / PANEL, out, PANEL) */
    const float *bias;  /* (out), or none */
    const float *sign;  /* (height, width, out): where it is not positive, the output is 0; or none */
    const uint8_t *passes; /* the same as bools; or none */
    const uint8_t *origin; /* (rows / 2, width / 2, in): the input is the gradient in the maxima of
                              four, and these are where they came from; or none */
    uint8_t *which; /* (height / 2, width / 2, out): the output is halved, and these tell so; or none */
    float *output;      /* (height, width, out) */
    long rows, width, in, out, height;
    long above;   /* rows of zeros above the input */
    long side;    /* of the tiles: 6 or 8 */
    long block;   /* tiles worked on at a time */
    long rectify; /* whether the input is to be rectified */
    long flipped; /* whether it is the gradient */
};

/* The values of SIDE numbers, a stride apart, at the points. */
INLINE void values_8(const vec *d, int s, vec *r, int t) {
    vec a, b;
    r[0] = d[0] - d[6 * s] + 5.25f * (d[4 * s] - d[2 * s]);
    r[7 * t] = d[7 * s] - d[s] + 5.25f * (d[3 * s] - d[5 * s]);
    a = d[2 * s] + d[6 * s] - 4.25f * d[4 * s];
    b = d[s] + d[5 * s] - 4.25f * d[3 * s];
    r[t] = a + b;
    r[2 * t] = a - b;
    a = d[6 * s] + 0.25f * d[2 * s] - 1.25f * d[4 * s];
    b = 0.5f * d[s] - 2.5f * d[3 * s] + 2.f * d[5 * s];
    r[3 * t] = a + b;
    r[4 * t] = a - b;
    a = d[6 * s] + 4.f * d[2 * s] - 5.f * d[4 * s];
    b = 2.f * d[s] - 2.5f * d[3 * s] + 0.5f * d[5 * s];
    r[5 * t] = a + b;
    r[6 * t] = a - b;
}

INLINE void values_6(const vec *d, int s, vec *r, int t) {
    vec a = d[s] - d[3 * s], b = d[4 * s] - d[2 * s];
    r[0] = d[0] - d[4 * s] - 2.5f * a;
    r[t] = 1.5f * (d[2 * s] + d[3 * s]) - (d[s] + d[4 * s]);
    r[2 * t] = 2.f * (d[4 * s] - d[s]) + 7.f * (d[2 * s] - d[3 * s]);
    r[3 * t] = a + 2.f * b;
    r[4 * t] = 2.f * a + b;
    r[5 * t] = d[5 * s] - d[s] - 2.5f * b;
}

/* SIDE - 2 numbers from the products at the points. */
INLINE void between_8(const vec *m, int s, vec *o, int t) {
    vec s1 = m[s] + m[2 * s], d1 = m[s] - m[2 * s];
    vec s2 = m[3 * s] + m[4 * s], d2 = m[3 * s] - m[4 * s];
    vec s3 = m[5 * s] + m[6 * s], d3 = m[5 * s] - m[6 * s];
    o[0] = m[0] + s1 + s2 + 16.f * s3;
    o[t] = d1 + 2.f * d2 + 8.f * d3;
    o[2 * t] = s1 + 4.f * (s2 + s3);
    o[3 * t] = d1 + 8.f * d2 + 2.f * d3;
    o[4 * t] = s1 + 16.f * s2 + s3;
    o[5 * t] = d1 + 32.f * d2 + 0.5f * d3 + m[7 * s];
}

INLINE void between_6(const vec *m, int s, vec *o, int t) {
    vec sum = m[s] + m[2 * s], difference = m[s] - m[2 * s];
    o[0] = m[0] + sum + m[3 * s] + 8.f * m[4 * s];
    o[t] = difference + 2.f * m[3 * s] + 4.f * m[4 * s];
    o[2 * t] = sum + 4.f * m[3 * s] + 2.f * m[4 * s];
    o[3 * t] = difference + 8.f * m[3 * s] + m[4 * s] + m[5 * s];
}

static const int INVERSE_6[] = {5, 1, 2, 4, 3, 0}, INVERSE_8[] = {7, 1, 2, 5, 6, 3, 4, 0};

enum way { AS_IT_IS, RECTIFIED, SPREAD }; /* how the input is read */

/* Where the positions of a tile are, or zeros beyond the border; of what was halved, where those of
 * its maxima are that reach into the tile, which begins in the middle of one. */
INLINE void find(const struct convolution *job, const int side, const int way, long top, long left,
                 const float *zeros, const float **places, const uint8_t **origins) {
    const int half = way == SPREAD, count = half ? side / 2 + 1 : side;
    const long rows = job->rows >> half, width = job->width >> half;
    for (int y = 0; y < count; y++)
        for (int x = 0; x < count; x++) {
            const long row = (top >> half) + y, column = (left >> half) + x;
            const int inside = row >= 0 && row < rows && column >= 0 && column < width;
            const long at = (row * width + column) * job->in;
            places[y * count + x] = inside ? job->input + at : zeros;
            if (half)
                origins[y * count + x] = inside ? job->origin + at : (const uint8_t *)zeros;
        }
}

/* Some channels of a tile; those of the next one, so many numbers on, are fetched meanwhile. */
INLINE void read(const int side, const int way, const float *const *places,
                 const uint8_t *const *origins, long c, long ahead, vec *d) {
    if (way != SPREAD)
        for (int k = 0; k < side * side; k++) {
            d[k] = load(places[k] + c);
            __builtin_prefetch(places[k] + c + ahead, 0, 3);
            if (way == RECTIFIED)
                d[k] = larger((vec){0}, d[k]); /* what is not a number stays so */
        }
    else
        for (int y = -1; y <= side; y += 2)
            for (int x = -1; x <= side; x += 2) {
                const int k = (y + 1) / 2 * (side / 2 + 1) + (x + 1) / 2;
                const vec gradient = load(places[k] + c);
                const ivec origin = widened(origins[k] + c);
                __builtin_prefetch(places[k] + c + ahead, 0, 3);
                __builtin_prefetch(origins[k] + c + ahead, 0, 3);
                for (int q = 0; q < 4; q++)
                    if (y + q / 2 >= 0 && y + q / 2 < side && x + q % 2 >= 0 && x + q % 2 < side)
                        d[(y + q / 2) * side + x + q % 2] = chosen(origin == q, gradient, (vec){0});
            }
}

/* The values of one tile. */
INLINE void transform_tile(const struct convolution *job, const int side, const int way, long top,
                           long left, const float *zeros, float *to, long apart) {
    const float *places[64];
    const uint8_t *origins[64];
    vec d[64], r[64];
    find(job, side, way, top, left, zeros, places, origins);
    const long ahead = (side - 2) / (way == SPREAD ? 2 : 1) * job->in;
    for (long c = 0; c < job->in; c += LANES) {
        read(side, way, places, origins, c, ahead, d);
        for (int row = 0; row < side; row++)
            if (side == 8)
                values_8(d + row * 8, 1, r + row * 8, 1);
            else
                values_6(d + row * 6, 1, r + row * 6, 1);
        for (int column = 0; column < side; column++)
            if (side == 8)
                values_8(r + column, 8, d + column, 8);
            else
                values_6(r + column, 6, d + column, 6);
        for (int k = 0; k < side * side; k++) {
            store(to + k * apart + c, d[k]);
            __builtin_prefetch(to + k * apart + c + SOON, 1, 3);
        }
    }
}

/* One position of the output. */
INLINE void put(const struct convolution *job, long row, long column, long c, vec value) {
    const long at = (row * job->width + column) * job->out + c;
    if (job->sign)
        value = chosen(load(job->sign + at) > (vec){0}, value, (vec){0});
    if (job->passes)
        value = chosen(widened(job->passes + at) != (ivec){0}, value, (vec){0});
    store(job->output + at, value);
}

/* The maximum of four. */
INLINE void put_halved(const struct convolution *job, long row, long column, long c, vec a, vec b,
                       vec d, vec e) {
    const long at = (row / 2 * (job->width / 2) + column / 2) * job->out + c;
    store(job->output + at, maximum(a, b, d, e, job->which + at));
}

/* The output of one tile, as far as it lies within the map. */
INLINE void interpolate_tile(const struct convolution *job, const int side, const float *from,
                             long apart, long top, long left) {
    const int out = side - 2;
    const long down = job->height - top < out ? job->height - top : out;
    const long across = job->width - left < out ? job->width - left : out;
    vec m[64], r[64], o[36];
    for (long c = 0; c < job->out; c += LANES) {
        for (int k = 0; k < side * side; k++) {
            m[k] = load(from + k * apart + c);
            __builtin_prefetch(from + k * apart + c + SOON, 0, 3);
        }
        for (int column = 0; column < side; column++)
            if (side == 8)
                between_8(m + column, 8, r + column, 8);
            else
                between_6(m + column, 6, r + column, 6);
        for (int row = 0; row < out; row++)
            if (side == 8)
                between_8(r + row * 8, 1, o + row * 6, 1);
            else
                between_6(r + row * 6, 1, o + row * 4, 1);
        const vec bias = job->bias ? load(job->bias + c) : (vec){0};
        for (int k = 0; k < out * out; k++)
            o[k] += bias;
        if (job->which) {
            for (long y = 0; y + 1 < down; y += 2)
                for (long x = 0; x + 1 < across; x += 2) {
                    const vec *of = o + y * out + x;
                    put_halved(job, top + y, left + x, c, of[0], of[1], of[out], of[out + 1]);
                }
        } else
            for (long y = 0; y < down; y++)
                for (long x = 0; x < across; x++)
                    put(job, top + y, left + x, c, o[y * out + x]);
    }
}

/* (tiles, in) times (in, out): the kernel comes in panels. */
static void multiply(const float *a, long tiles, long in, const float *panels, float *c, long out) {
    for (long first = 0; first < in; first += DEPTH)
        for (long k = 0; k < out; k += PANEL) {
            const float *b = panels + k * in + first * PANEL, *ahead = b + in * PANEL;
            if (k + PANEL == out) /* the next terms, or what comes behind this kernel */
                ahead = first + DEPTH < in ? panels + (first + DEPTH) * PANEL : panels + in * out;
            multiply_panel(a, tiles, in, first, b, c + k, out, ahead, PANEL * PANEL);
        }
}

/* LANES columns of LANES rows, as rows. */
INLINE void transpose(vec *x) {
    vec y[LANES];
    for (int stage = 1; stage < LANES; stage *= 2) {
        for (int k = 0; k < LANES / 2; k++) {
            y[2 * k] = LOWER(x[k], x[k + LANES / 2]);
            y[2 * k + 1] = UPPER(x[k], x[k + LANES / 2]);
        }
        for (int k = 0; k < LANES; k++)
            x[k] = y[k];
    }
}

/* PANEL columns of the kernel (out, in) from its panels (in / PANEL, out, PANEL): (in, PANEL). */
static void turn(const float *kernel, long in, long out, long first, float *to) {
    for (long k = 0; k < in; k += PANEL)
        for (int i = 0; i < PANEL; i += LANES)
            for (int j = 0; j < PANEL; j += LANES) {
                vec x[LANES];
                for (int r = 0; r < LANES; r++)
                    x[r] = load(kernel + k * out + (first + j + r) * PANEL + i);
                transpose(x);
                for (int r = 0; r < LANES; r++)
                    store(to + (k + i + r) * PANEL + j, x[r]);
            }
}

/* The same by a kernel (out, in) in panels; the next one is at another place. */
static void multiply_turned(const float *a, long tiles, long in, const float *panels, float *c,
                            long out, float *panel, const float *next) {
    for (long k = 0; k < out; k += PANEL) {
        const float *ahead = k + PANEL < out ? panels + (k + PANEL) * PANEL : next;
        turn(panels, in, out, k, panel);
        for (long first = 0; first < in; first += DEPTH)
            multiply_panel(a, tiles, in, first, panel + first * PANEL, c + k, out,
                           ahead + first * out, PANEL * out);
    }
}

/* The kernel at a point, the flipped one at the inverse of it. */
INLINE const float *kernel_at(const struct convolution *job, const int side, long point) {
    const int *inverse = side == 8 ? INVERSE_8 : INVERSE_6;
    if (job->flipped)
        point = inverse[point / side] * side + inverse[point % side];
    return job->kernel + point * job->in * job->out;
}

INLINE void work(const struct convolution *job, const int side, long *counter, float *values,
                 float *products, float *panel, const float *zeros) {
    const int out = side - 2, points = side * side;
    const long across = (job->width + out - 1) / out, down = (job->height + out - 1) / out;
    const long tiles = across * down;
    const long apart_in = job->block * job->in + LINE, apart_out = job->block * job->out + LINE;
    for (long first = next(counter) * job->block; first < tiles; first = next(counter) * job->block) {
        const long count = tiles - first < job->block ? tiles - first : job->block;
        for (long t = 0; t < count; t++) {
            const long top = (first + t) / across * out - job->above, left = (first + t) % across * out - 1;
            float *to = values + t * job->in;
            if (job->origin)
                transform_tile(job, side, SPREAD, top, left, zeros, to, apart_in);
            else if (job->rectify)
                transform_tile(job, side, RECTIFIED, top, left, zeros, to, apart_in);
            else
                transform_tile(job, side, AS_IT_IS, top, left, zeros, to, apart_in);
        }
        for (long point = 0; point < points; point++) {
            const float *from = values + point * apart_in, *kernel = kernel_at(job, side, point);
            float *to = products + point * apart_out;
            if (job->flipped) {
                const float *next = kernel_at(job, side, (point + 1) % points);
                multiply_turned(from, count, job->in, kernel, to, job->out, panel, next);
            } else
                multiply(from, count, job->in, kernel, to, job->out);
        }
        for (long t = 0; t < count; t++)
            interpolate_tile(job, side, products + t * job->out, apart_out,
                             (first + t) / across * out, (first + t) % across * out);
    }
}

/* What one worker does of a convolution; not 0 where there is no memory for it. */
EXPORT int convolve(const struct convolution *job, long *counter) {
    const long points = job->side * job->side;
    const long values = points * (job->block * job->in + LINE);
    const long products = points * (job->block * job->out + LINE), panel = job->in * PANEL;
    float *memory = NULL;
    if (posix_memalign((void **)&memory, 64, (values + products + panel + job->in) * sizeof(float)))
        return 1;
    float *zeros = memory + values + products + panel;
    memset(zeros, 0, job->in * sizeof(float));
    if (job->side == 8)
        work(job, 8, counter, memory, memory + values, memory + values + products, zeros);
    else
        work(job, 6, counter, memory, memory + values, memory + values + products, zeros);
    free(memory);
    return 0;
}

EXPORT long panel(void) { return PANEL; }
EXPORT long layout(void) { return LAYOUT; }
