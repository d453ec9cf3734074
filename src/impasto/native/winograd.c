/* Winograd's convolution with a kernel of 3 x 3 (Lavin and Gray 2016), of maps that lie position by
 * position, and its gradient in the input.
 *
 * A tile of SIDE x SIDE positions of the input gives (SIDE - 2) x (SIDE - 2) of the output: its
 * values at SIDE^2 points of an interpolation are multiplied by those of the kernel there, which is
 * a matrix product per point, and interpolated. The points 0, 1, -1, 2, 1/2, infinity, and of larger
 * tiles -2 and -1/2 as well, are closed under inversion: the flipped kernel, which the gradient needs,
 * has at p the value of the kernel at 1/p, so the same transformed kernel serves both ways.
 */
#include "vectors.h"

#define ROWS_AT_ONCE (LANES == 16 ? 14 : LANES == 8 ? 6 : 8) /* of a product, in registers */
#define PANEL (2 * LANES)                                   /* columns of a product at once */
#define DEPTH 256                                           /* terms summed up in registers */
#define LINE 16                                             /* floats of a line of the cache */

struct convolution {
    const float *input; /* (rows, width, in) */
    const float *kernel; /* (points, out / PANEL, in, PANEL), or of the flipped one (points, in / PANEL, out, PANEL) */
    const float *bias;  /* (out), or none */
    const float *sign;  /* (height, width, out): where it is not positive, the output is 0; or none */
    const uint8_t *passes; /* the same as bools; or none */
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

/* The values of one tile: `places` are its positions, or zeros beyond the border. */
INLINE void transform_tile(const int side, const float *const *places, long channels, int rectify,
                           float *to, long apart) {
    vec d[64], r[64];
    for (long c = 0; c < channels; c += LANES) {
        for (int k = 0; k < side * side; k++) {
            d[k] = load(places[k] + c);
            if (rectify)
                d[k] = larger(d[k], (vec){0});
        }
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
        for (int k = 0; k < side * side; k++)
            store(to + k * apart + c, d[k]);
    }
}

/* The output of one tile, as far as it lies within the map. */
INLINE void interpolate_tile(const struct convolution *job, const int side, const float *from,
                             long apart, long top, long left) {
    const int out = side - 2;
    const long down = job->height - top < out ? job->height - top : out;
    const long across = job->width - left < out ? job->width - left : out;
    vec m[64], r[64], o[36];
    for (long c = 0; c < job->out; c += LANES) {
        for (int k = 0; k < side * side; k++)
            m[k] = load(from + k * apart + c);
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
        for (long y = 0; y < down; y++)
            for (long x = 0; x < across; x++) {
                const long at = ((top + y) * job->width + left + x) * job->out + c;
                vec value = o[y * out + x] + bias;
                if (job->sign)
                    value = chosen(load(job->sign + at) > (vec){0}, value, (vec){0});
                if (job->passes)
                    value = chosen(widened(job->passes + at) != (ivec){0}, value, (vec){0});
                store(job->output + at, value);
            }
    }
}

/* Some rows (count <= ROWS_AT_ONCE) of a product a b, added to what is there or not. */
INLINE void product(const int count, const float *a, long apart, const float *b, long depth,
                    float *c, long width, int add) {
    vec sum[ROWS_AT_ONCE][2];
    for (int r = 0; r < count; r++)
        for (int k = 0; k < 2; k++)
            sum[r][k] = add ? load(c + r * width + k * LANES) : (vec){0};
    for (long d = 0; d < depth; d++) {
        const vec b0 = load(b + d * PANEL), b1 = load(b + d * PANEL + LANES);
#pragma GCC unroll 16
        for (int r = 0; r < count; r++) {
            const vec x = all(a[r * apart + d]);
            sum[r][0] += x * b0;
            sum[r][1] += x * b1;
        }
    }
    for (int r = 0; r < count; r++)
        for (int k = 0; k < 2; k++)
            store(c + r * width + k * LANES, sum[r][k]);
}

/* (tiles, in) times (in, out): the kernel comes in panels. */
static void multiply(const float *a, long tiles, long in, const float *panels, float *c, long out) {
    for (long first = 0; first < in; first += DEPTH) {
        const long depth = in - first < DEPTH ? in - first : DEPTH;
        for (long k = 0; k < out; k += PANEL) {
            const float *b = panels + k * in + first * PANEL;
            for (long t = 0; t < tiles; t += ROWS_AT_ONCE)
                product(ROWS_AT_ONCE, a + t * in + first, in, b, depth, c + t * out + k, out, first > 0);
        }
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

static void multiply_turned(const float *a, long tiles, long in, const float *panels, float *c, long out, float *panel) {
    for (long k = 0; k < out; k += PANEL) {
        turn(panels, in, out, k, panel);
        for (long first = 0; first < in; first += DEPTH) {
            const long depth = in - first < DEPTH ? in - first : DEPTH;
            for (long t = 0; t < tiles; t += ROWS_AT_ONCE)
                product(ROWS_AT_ONCE, a + t * in + first, in, panel + first * PANEL, depth, c + t * out + k, out, first > 0);
        }
    }
}

INLINE void work(const struct convolution *job, const int side, long *counter, float *values,
                 float *products, float *panel, const float *zeros) {
    const int out = side - 2;
    const long across = (job->width + out - 1) / out, down = (job->height + out - 1) / out;
    const long tiles = across * down;
    const long padded = (job->block + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE * ROWS_AT_ONCE;
    const long apart_in = padded * job->in + LINE, apart_out = padded * job->out + LINE;
    const int *inverse = side == 8 ? INVERSE_8 : INVERSE_6;
    for (long first = next(counter) * job->block; first < tiles; first = next(counter) * job->block) {
        const long count = tiles - first < job->block ? tiles - first : job->block;
        for (long t = 0; t < count; t++) {
            const long top = (first + t) / across * out - job->above, left = (first + t) % across * out - 1;
            const float *places[64];
            for (int y = 0; y < side; y++)
                for (int x = 0; x < side; x++) {
                    const long row = top + y, column = left + x;
                    const int inside = row >= 0 && row < job->rows && column >= 0 && column < job->width;
                    places[y * side + x] = inside ? job->input + (row * job->width + column) * job->in : zeros;
                }
            if (job->rectify)
                transform_tile(side, places, job->in, 1, values + t * job->in, apart_in);
            else
                transform_tile(side, places, job->in, 0, values + t * job->in, apart_in);
        }
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++) {
                const long point = y * side + x;
                const float *from = values + point * apart_in;
                float *to = products + point * apart_out;
                if (job->flipped) {
                    const float *kernel = job->kernel + (inverse[y] * side + inverse[x]) * job->in * job->out;
                    multiply_turned(from, count, job->in, kernel, to, job->out, panel);
                } else
                    multiply(from, count, job->in, job->kernel + point * job->in * job->out, to, job->out);
            }
        for (long t = 0; t < count; t++)
            interpolate_tile(job, side, products + t * job->out, apart_out,
                             (first + t) / across * out, (first + t) % across * out);
    }
}

/* What one worker does of a convolution; not 0 where there is no memory for it. */
EXPORT int convolve(const struct convolution *job, long *counter) {
    const long points = job->side * job->side;
    const long padded = (job->block + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE * ROWS_AT_ONCE;
    const long numbers = points * (padded * (job->in + job->out) + 2 * LINE);
    const long more = job->in * (PANEL + 1);
    float *memory = NULL;
    if (posix_memalign((void **)&memory, 64, (numbers + more) * sizeof(float)))
        return 1;
    float *products = memory + points * (padded * job->in + LINE), *panel = memory + numbers;
    float *zeros = panel + job->in * PANEL;
    memset(zeros, 0, job->in * sizeof(float));
    if (job->block < padded) /* rows that nobody reads, but numbers */
        memset(memory, 0, points * (padded * job->in + LINE) * sizeof(float));
    if (job->side == 8)
        work(job, 8, counter, memory, products, panel, zeros);
    else
        work(job, 6, counter, memory, products, panel, zeros);
    free(memory);
    return 0;
}

EXPORT long panel(void) { return PANEL; }
