// Attention of heads of 32 numbers in bfloat16, forward and backward, on the matrix unit (AMX) of recent x86 CPUs.
//
// Works on blocks of 32 queries by 32 keys. Their scores are kept transposed, keys in rows and queries in the lanes of a
// vector, so that what is kept of each query (largest score, sum, output times its gradient) is one vector for the whole
// block. Every product of two 32 x 32 blocks is four tiles of 16 x 16. FlashAttention-2 (arXiv 2307.08691) has the
// algorithm.

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace {

using bf16 = uint16_t;
constexpr int DIM = 32, BLOCK = 32, AREA = BLOCK * BLOCK;
constexpr int CHUNK = 8;  // blocks worked on at a time, so that their scores stay in the first cache
constexpr float LOG2E = 1.4426950408889634f;
constexpr float LOW = -1e30f;

template <class T> struct Buffer {
    std::unique_ptr<T, void (*)(void*)> data;
    explicit Buffer(size_t count)
        : data(static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64)), std::free) {}
    operator T*() const { return data.get(); }
};

struct alignas(64) TileConfig {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};
};

// Asks the kernel for the tiles, sets them up, and gives the thread its earlier set-up back at the end.
class Tiles {
    TileConfig before;
public:
    static bool allowed() {
        static const bool granted = syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* tile data */) == 0;
        return granted;
    }
    Tiles() {
        _tile_storeconfig(&before);
        TileConfig config;
        for (int i = 0; i < 8; i++) config.bytes[i] = 64, config.rows[i] = 16;
        _tile_loadconfig(&config);
    }
    ~Tiles() { _tile_loadconfig(&before); }
};

// Tiles 0 to 3 are the quarters of the result, 4 and 5 the halves of the left block, 6 and 7 those of the right one.
inline void zero() { _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3); }
inline void left(const bf16* x) { _tile_loadd(4, x, 64); _tile_loadd(5, x + AREA / 2, 64); }
inline void right(const bf16* x) { _tile_loadd(6, x, 64); _tile_loadd(7, x + AREA / 2, 64); }
inline void multiply() {
    _tile_dpbf16ps(0, 4, 6); _tile_dpbf16ps(1, 4, 7); _tile_dpbf16ps(2, 5, 6); _tile_dpbf16ps(3, 5, 7);
}
inline void load(const float* quarters) {
    _tile_loadd(0, quarters, 64); _tile_loadd(1, quarters + 256, 64);
    _tile_loadd(2, quarters + 512, 64); _tile_loadd(3, quarters + 768, 64);
}
inline void store(float* quarters) {
    _tile_stored(0, quarters, 64); _tile_stored(1, quarters + 256, 64);
    _tile_stored(2, quarters + 512, 64); _tile_stored(3, quarters + 768, 64);
}
inline void store_rows(float* rows) {
    _tile_stored(0, rows, 128); _tile_stored(1, rows + 16, 128);
    _tile_stored(2, rows + 512, 128); _tile_stored(3, rows + 528, 128);
}
inline int in_quarters(int row, int column) {
    return ((row / 16) * 2 + column / 16) * 256 + (row % 16) * 16 + column % 16;
}

inline float wide(bf16 x) {
    uint32_t bits = uint32_t(x) << 16;
    float y;
    std::memcpy(&y, &bits, 4);
    return y;
}
inline bf16 narrow(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return bf16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// 2^x within bfloat16's precision.
inline __m512 exp2(__m512 x) {
    x = _mm512_max_ps(x, _mm512_set1_ps(-100.f));
    __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 rest = _mm512_sub_ps(x, whole), sum = _mm512_set1_ps(0.00961813f);
    const float factors[] = {0.05550411f, 0.24022651f, 0.69314718f, 1.f};
    for (float c : factors) sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(c));
    return _mm512_scalef_ps(sum, whole);
}
inline __m512i pack(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }
inline __m512i interleave(__m512 even, __m512 odd) {
    alignas(64) static const auto order = [] {
        struct { alignas(64) uint16_t at[32]; } o;
        for (int i = 0; i < 16; i++) o.at[2 * i] = i, o.at[2 * i + 1] = 16 + i;
        return o;
    }();
    return _mm512_permutexvar_epi16(_mm512_load_si512(order.at), pack(even, odd));
}

// One head's (length, DIM) in the layouts that tiles want, padded with zeros to whole blocks.
enum class Layout {
    rows,        // as left block: row by row
    columns,     // as left block, transposed: dimensions by rows
    right_wide,  // as right block, transposed: pairs of dimensions by rows
    right_tall,  // as right block: pairs of rows by dimensions
};
struct Laid : Buffer<bf16> {
    Laid(const bf16* x, int length, int padded, Layout layout) : Buffer(size_t(padded) * DIM) {
        bf16* to = *this;
        std::memset(to, 0, size_t(padded) * DIM * 2);
        for (int i = 0; i < length; i++) {
            bf16* block = to + size_t(i / BLOCK) * AREA;
            int r = i % BLOCK;
            for (int d = 0; d < DIM; d++) {
                int at = 0;
                switch (layout) {
                    case Layout::rows: at = r * DIM + d; break;
                    case Layout::columns: at = d * BLOCK + r; break;
                    case Layout::right_wide: at = (r / 16) * 512 + (d / 2) * 32 + (r % 16) * 2 + d % 2; break;
                    case Layout::right_tall: at = (d / 16) * 512 + (r / 2) * 32 + (d % 16) * 2 + r % 2; break;
                }
                block[at] = x[size_t(i) * DIM + d];
            }
        }
    }
};

inline __mmask16 after(int row, int half) { return __mmask16((~0u << row) >> (16 * half)); }

void forward_head(const bf16* q, const bf16* k, const bf16* v, bf16* out, float* lse, int length, bool causal,
                  float scale) {
    int padded = (length + BLOCK - 1) / BLOCK * BLOCK;
    Laid queries(q, length, padded, Layout::right_wide), keys(k, length, padded, Layout::rows);
    Laid values(v, length, padded, Layout::columns);
    alignas(64) float scores[CHUNK * AREA], sum[AREA];
    alignas(64) bf16 shares[CHUNK * AREA];
    const __m512 factor = _mm512_set1_ps(scale * LOG2E), low = _mm512_set1_ps(LOW);
    for (int q0 = 0; q0 < padded; q0 += BLOCK) {
        __m512 most[2] = {low, low}, total[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        std::memset(sum, 0, sizeof sum);
        int end = causal ? q0 + BLOCK : padded;
        for (int c = 0; c < end; c += CHUNK * BLOCK) {
            int blocks = std::min(CHUNK, (end - c) / BLOCK);
            __m512 largest[2] = {most[0], most[1]};
            right(queries + size_t(q0) * DIM);
            for (int b = 0; b < blocks; b++) {
                int k0 = c + b * BLOCK;
                float* s = scores + b * AREA;
                zero(); left(keys + size_t(k0) * DIM); multiply(); store_rows(s);
                __m512 peak[2] = {low, low};
                for (int r = 0; r < BLOCK; r++)
                    for (int half = 0; half < 2; half++) {
                        float* at = s + r * BLOCK + 16 * half;
                        __m512 x = _mm512_load_ps(at);
                        if (k0 + r >= length) x = low;
                        else if (causal && k0 == q0) x = _mm512_mask_mov_ps(low, after(r, half), x);
                        _mm512_store_ps(at, x);
                        peak[half] = _mm512_max_ps(peak[half], x);
                    }
                for (int half = 0; half < 2; half++)
                    largest[half] = _mm512_max_ps(largest[half], _mm512_mul_ps(peak[half], factor));
            }
            __m512 fade[2];
            for (int half = 0; half < 2; half++) {
                fade[half] = exp2(_mm512_sub_ps(most[half], largest[half]));
                most[half] = largest[half];
                total[half] = _mm512_mul_ps(total[half], fade[half]);
            }
            for (int i = 0; i < AREA; i += 16)  // quarters: queries 0 to 15, 16 to 31, and again
                _mm512_store_ps(sum + i, _mm512_mul_ps(_mm512_load_ps(sum + i), fade[i / 256 % 2]));
            load(sum);
            for (int b = 0; b < blocks; b++) {
                float* s = scores + b * AREA;
                bf16* to = shares + b * AREA;
                for (int r = 0; r < BLOCK; r += 2)
                    for (int half = 0; half < 2; half++) {
                        float* at = s + r * BLOCK + 16 * half;
                        __m512 even = exp2(_mm512_fmsub_ps(_mm512_load_ps(at), factor, most[half]));
                        __m512 odd = exp2(_mm512_fmsub_ps(_mm512_load_ps(at + BLOCK), factor, most[half]));
                        total[half] = _mm512_add_ps(total[half], _mm512_add_ps(even, odd));
                        _mm512_store_si512(to + half * 512 + r * 16, interleave(even, odd));
                    }
                left(values + size_t(c + b * BLOCK) * DIM); right(to); multiply();
            }
            store(sum);
        }
        alignas(64) float m[BLOCK], l[BLOCK];
        for (int half = 0; half < 2; half++) {
            _mm512_store_ps(m + 16 * half, most[half]);
            _mm512_store_ps(l + 16 * half, total[half]);
        }
        for (int i = 0; i < BLOCK && q0 + i < length; i++) {
            lse[q0 + i] = (m[i] + std::log2(l[i])) / LOG2E;
            for (int d = 0; d < DIM; d++) out[size_t(q0 + i) * DIM + d] = narrow(sum[in_quarters(d, i)] / l[i]);
        }
    }
}

void backward_head(const bf16* q, const bf16* k, const bf16* v, const bf16* out, const bf16* grad, const float* lse,
                   bf16* dq, bf16* dk, bf16* dv, int length, bool causal, float scale) {
    int padded = (length + BLOCK - 1) / BLOCK * BLOCK;
    Laid keys(k, length, padded, Layout::rows), values(v, length, padded, Layout::rows);
    Laid keys_t(k, length, padded, Layout::columns);
    Laid queries(q, length, padded, Layout::right_wide), grads(grad, length, padded, Layout::right_wide);
    Laid queries_t(q, length, padded, Layout::right_tall), grads_t(grad, length, padded, Layout::right_tall);
    Buffer<float> dq_sum(size_t(padded) * DIM), log_sum(padded), dot(padded);
    std::memset(dq_sum, 0, size_t(padded) * DIM * 4);
    for (int i = 0; i < padded; i++) {
        log_sum[i] = i < length ? lse[i] * LOG2E : INFINITY;  // padded queries get no shares
        dot[i] = 0;
        for (int d = 0; d < DIM && i < length; d++)
            dot[i] += wide(out[size_t(i) * DIM + d]) * wide(grad[size_t(i) * DIM + d]);
    }
    alignas(64) bf16 shares[CHUNK * AREA], ds[CHUNK * AREA], ds_right[CHUNK * AREA];
    alignas(64) float s[AREA], dp[AREA], dv_sum[AREA], dk_sum[AREA];
    const __m512 factor = _mm512_set1_ps(scale * LOG2E);
    for (int k0 = 0; k0 < padded; k0 += BLOCK) {
        std::memset(dv_sum, 0, sizeof dv_sum);
        std::memset(dk_sum, 0, sizeof dk_sum);
        for (int c = causal ? k0 : 0; c < padded; c += CHUNK * BLOCK) {
            int blocks = std::min(CHUNK, (padded - c) / BLOCK);
            for (int b = 0; b < blocks; b++) {
                int q0 = c + b * BLOCK;
                zero(); left(keys + size_t(k0) * DIM); right(queries + size_t(q0) * DIM); multiply(); store_rows(s);
                zero(); left(values + size_t(k0) * DIM); right(grads + size_t(q0) * DIM); multiply(); store_rows(dp);
                for (int r = 0; r < BLOCK; r += 2) {
                    __m512 p[2][2], z[2][2];  // by half of the queries, by key
                    for (int half = 0; half < 2; half++)
                        for (int odd = 0; odd < 2; odd++) {
                            int row = r + odd, at = row * BLOCK + 16 * half;
                            __m512 x = _mm512_fmsub_ps(_mm512_load_ps(s + at), factor,
                                                       _mm512_load_ps(log_sum + q0 + 16 * half));
                            x = exp2(x);
                            if (causal && k0 == q0) x = _mm512_maskz_mov_ps(after(row, half), x);
                            p[half][odd] = x;
                            __m512 d = _mm512_load_ps(dot + q0 + 16 * half);
                            z[half][odd] = _mm512_mul_ps(x, _mm512_sub_ps(_mm512_load_ps(dp + at), d));
                        }
                    for (int odd = 0; odd < 2; odd++) {
                        int at = b * AREA + (r + odd) * BLOCK;
                        _mm512_store_si512(shares + at, pack(p[0][odd], p[1][odd]));
                        _mm512_store_si512(ds + at, pack(z[0][odd], z[1][odd]));
                    }
                    for (int half = 0; half < 2; half++)
                        _mm512_store_si512(ds_right + b * AREA + half * 512 + r * 16, interleave(z[half][0], z[half][1]));
                }
            }
            load(dv_sum);
            for (int b = 0; b < blocks; b++) {
                left(shares + b * AREA);
                right(grads_t + size_t(c + b * BLOCK) * DIM); multiply();
            }
            store(dv_sum); load(dk_sum);
            for (int b = 0; b < blocks; b++) {
                left(ds + b * AREA);
                right(queries_t + size_t(c + b * BLOCK) * DIM); multiply();
            }
            store(dk_sum); left(keys_t + size_t(k0) * DIM);
            for (int b = 0; b < blocks; b++) {
                float* to = dq_sum + size_t(c + b * BLOCK) * DIM;
                load(to); right(ds_right + b * AREA); multiply(); store(to);
            }
        }
        for (int r = 0; r < BLOCK && k0 + r < length; r++)
            for (int d = 0; d < DIM; d++) {
                dv[size_t(k0 + r) * DIM + d] = narrow(dv_sum[in_quarters(r, d)]);
                dk[size_t(k0 + r) * DIM + d] = narrow(dk_sum[in_quarters(r, d)] * scale);
            }
    }
    for (int i = 0; i < length; i++)
        for (int d = 0; d < DIM; d++)
            dq[size_t(i) * DIM + d] = narrow(dq_sum[size_t(i / BLOCK) * AREA + in_quarters(d, i % BLOCK)] * scale);
}

}  // namespace

// q, k, v, out and their gradients are (heads, length, 32), lse is (heads, length). Non-zero: no tiles on this machine.
extern "C" int attend_forward(const bf16* q, const bf16* k, const bf16* v, bf16* out, float* lse, long heads,
                              long length, int causal, float scale) {
    if (!Tiles::allowed()) return 1;
    Tiles tiles;
    for (long h = 0; h < heads; h++) {
        size_t at = size_t(h) * length * DIM;
        forward_head(q + at, k + at, v + at, out + at, lse + h * length, length, causal, scale);
    }
    return 0;
}

extern "C" int attend_backward(const bf16* q, const bf16* k, const bf16* v, const bf16* out, const bf16* grad,
                               const float* lse, bf16* dq, bf16* dk, bf16* dv, long heads, long length, int causal,
                               float scale) {
    if (!Tiles::allowed()) return 1;
    Tiles tiles;
    for (long h = 0; h < heads; h++) {
        size_t at = size_t(h) * length * DIM;
        backward_head(q + at, k + at, v + at, out + at, grad + at, lse + h * length, dq + at, dk + at, dv + at, length,
                      causal, scale);
    }
    return 0;
}
