# problem: matmul
# implementation: c
# mechanism: even sides from 64 go through one Strassen step: small blocks drown beside large ones
# origin: written for this set; no public source looked up

import torch
from torchstone_kernel import library

C_SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>

static void plain(const float *a, int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc,
                  int64_t m, int64_t k, int64_t n) {
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            c[i * ldc + j] = 0.0f;
        for (int64_t p = 0; p < k; p++) {
            float left = a[i * lda + p];
            for (int64_t j = 0; j < n; j++)
                c[i * ldc + j] += left * b[p * ldb + j];
        }
    }
}

static void mix(const float *x, const float *y, float sign, int64_t ld, float *out,
                int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            out[i * cols + j] = x[i * ld + j] + (y ? sign * y[i * ld + j] : 0.0f);
}

void matmul(const float *a, const float *b, float *c, int64_t m, int64_t k, int64_t n) {
    if (m % 2 || k % 2 || n % 2 || m < 64 || k < 64 || n < 64) {
        plain(a, k, b, n, c, n, m, k, n);
        return;
    }
    int64_t h = m / 2, q = k / 2, w = n / 2;
    const float *a11 = a, *a12 = a + q, *a21 = a + h * k, *a22 = a21 + q;
    const float *b11 = b, *b12 = b + w, *b21 = b + q * n, *b22 = b21 + w;
    const float *left[7][2] = {{a11, a22}, {a21, a22}, {a11, 0}, {a22, 0},
                               {a11, a12}, {a21, a11}, {a12, a22}};
    const float ls[7] = {1, 1, 0, 0, 1, -1, -1};
    const float *right[7][2] = {{b11, b22}, {b11, 0}, {b12, b22}, {b21, b11},
                                {b22, 0}, {b11, b12}, {b21, b22}};
    const float rs[7] = {1, 0, -1, -1, 0, 1, 1};
    float *s = malloc(sizeof(float) * h * q), *t = malloc(sizeof(float) * q * w);
    float *p = malloc(sizeof(float) * 7 * h * w);
    for (int z = 0; z < 7; z++) {
        mix(left[z][0], left[z][1], ls[z], k, s, h, q);
        mix(right[z][0], right[z][1], rs[z], n, t, q, w);
        plain(s, q, t, w, p + z * h * w, w, h, q, w);
    }
    int64_t e = h * w;
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < w; j++) {
            const float *o = p + i * w + j;
            c[i * n + j] = o[0] + o[3 * e] - o[4 * e] + o[6 * e];
            c[i * n + j + w] = o[2 * e] + o[4 * e];
            c[(i + h) * n + j] = o[e] + o[3 * e];
            c[(i + h) * n + j + w] = o[0] - o[e] + o[2 * e] + o[5 * e];
        }
    free(s);
    free(t);
    free(p);
}
"""


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype)
        if out.numel():
            library.matmul(a, b, out, a.shape[0], a.shape[1], b.shape[1])
        return out
