/* The gradient in an image from the one in its first convolution, of 3 x 3 positions.
 *
 * A matrix product gives what each position sends to the nine around it, and rows of that are added
 * up while they are in the cache.
 */
#include "product.h"

#define COLORS 3
#define ROW (3 * COLORS)                              /* what a position sends to one row */
#define SENT ((3 * ROW + PANEL - 1) / PANEL * PANEL) /* what it sends, in whole panels */

struct colors {
    const float *gradient; /* (rows, width, in) */
    const float *kernel;   /* (SENT / PANEL, in, PANEL): columns by row, column and color */
    float *output;         /* (COLORS, height, width) */
    long rows, width, in, height;
    long above;   /* rows of zeros above the gradient */
    long stretch; /* rows of the output at a time */
};

/* What all positions of a row send: (width, SENT). */
static void send(const struct colors *job, long row, float *sent) {
    const long positions = job->width, in = job->in;
    if (row < 0 || row >= job->rows) {
        memset(sent, 0, positions * SENT * sizeof(float));
        return;
    }
    for (long k = 0; k < SENT; k += PANEL)
        for (long first = 0; first < in; first += DEPTH)
            multiply_panel(job->gradient + row * positions * in, positions, in, first,
                           job->kernel + k * in + first * PANEL, sent + k, SENT, job->kernel, 0);
}

/* A row of the output from what the rows below, at and above it send: added up down, then across. */
static void gather(const struct colors *job, long row, const float *below, const float *at,
                   const float *above, float *sums) {
    const long width = job->width;
    for (long x = 0; x < width; x++)
        for (int k = 0; k < ROW; k += LANES) /* the next position writes over what is too much */
            store(sums + (x + 1) * ROW + k, load(below + x * SENT + k) + load(at + x * SENT + ROW + k) +
                                                load(above + x * SENT + 2 * ROW + k));
    memset(sums + (width + 1) * ROW, 0, ROW * sizeof(float));
    for (int color = 0; color < COLORS; color++) {
        float *to = job->output + (color * job->height + row) * width;
        const float *from = sums + color;
        for (long x = 0; x < width; x++, from += ROW)
            to[x] = from[2 * ROW] + from[ROW + COLORS] + from[2 * COLORS];
    }
}

/* What one worker does; not 0 where there is no memory for it. */
EXPORT int gradient_in_colors(const struct colors *job, long *counter) {
    const long count = job->width * SENT, more = (job->width + 2) * ROW + 2 * LANES;
    float *memory = NULL;
    if (posix_memalign((void **)&memory, 64, (3 * count + more) * sizeof(float)))
        return 1;
    float *sums = memory + 3 * count;
    memset(sums, 0, more * sizeof(float));
    for (long first = next(counter) * job->stretch; first < job->height; first = next(counter) * job->stretch) {
        const long last = first + job->stretch < job->height ? first + job->stretch : job->height;
        for (long row = first - 1; row <= last; row++) {
            send(job, row - job->above, memory + (row + 3) % 3 * count);
            if (row > first)
                gather(job, row - 1, memory + (row + 3) % 3 * count, memory + (row + 2) % 3 * count,
                       memory + (row + 1) % 3 * count, sums);
        }
    }
    free(memory);
    return 0;
}
