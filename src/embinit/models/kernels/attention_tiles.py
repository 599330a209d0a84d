"""Attention in Triton for long sentences, a tile of queries and a tile of keys at a time, as in FlashAttention."""
# As in elementwise.py: pointers end in _ptr, constants are capitals.
# mypy: ignore-errors

import triton
import triton.language as tl

from embinit.models.kernels.attention import bend, clear, clear_grads, give_grad, listed, part, places
from embinit.models.kernels.elementwise import dropping, hashed_column, hashed_row, is_kept


@triton.jit
def _values(
    ptr, bias_ptr, first, length, STRIDE: tl.constexpr, member, head, i,
    BIAS: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Return one head's values of tokens i, (TILE, WIDTH). Loops cannot carry the places, because their shapes differ."""
    values, _, _ = part(ptr, bias_ptr, first, length, STRIDE, member, head, i, 0, BIAS, HEAD, WIDTH)
    return values


@triton.jit
def _scores(
    q, k, i, j, queries, keys, local, head, heads, own_ptr, member, curve_ptr, curve_stride, scale, threshold,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Return the scores of queries i with keys j, the allowed pairs, and the dropout factors."""
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
    distance = j[None, :] - i[:, None]
    allowed = (j < keys)[None, :] & (i < queries)[:, None]
    if CAUSAL:
        allowed = allowed & (distance <= 0)
    if CURVE:
        scores += tl.load(bend(curve_ptr, curve_stride, member, head, distance, CURVE), mask=allowed, other=0.0)
    kept = allowed
    if DROP:
        own, _, _ = dropping(own_ptr, member)
        row = hashed_row(own, (local + i) * heads + head)
        kept = is_kept(row[:, None], hashed_column(j)[None, :], threshold)
    return tl.where(allowed, scores, -1e38), allowed, kept


@triton.jit
def tiles_forward(
    out_ptr, total_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, list_ptr, count_ptr, q_first_ptr,
    q_length_ptr, k_first_ptr, k_length_ptr, q_bias_ptr, k_bias_ptr, v_bias_ptr, room, others_room, batch, heads,
    scale,
    Q_STRIDE: tl.constexpr, K_STRIDE: tl.constexpr, DIM: tl.constexpr,
    BIAS: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute attention for the listed sentences; programs take the heads in turn.

    `total_ptr` gets the log of each query's sum over keys.
    """
    count = tl.load(count_ptr) * heads
    for work in range(tl.program_id(0), count, tl.num_programs(0)):
        sentence, head, member, first, other, queries, keys = listed(
            work, list_ptr, q_first_ptr, q_length_ptr, k_first_ptr, k_length_ptr, heads, batch
        )
        _, threshold, keep = dropping(own_ptr, member)
        if sentence % batch == batch - 1:
            i, column = tl.arange(0, TILE), tl.arange(0, WIDTH)
            clear(out_ptr, first + queries, (member + 1) * room, DIM, head, i, column, HEAD, TILE)
        for start in range(0, queries, TILE):
            i = start + tl.arange(0, TILE)
            q = _values(q_ptr, q_bias_ptr, first, queries, Q_STRIDE, member, head, i, BIAS, HEAD, WIDTH)
            most = tl.full([TILE], -1e38, dtype=tl.float32)
            total = tl.zeros([TILE], dtype=tl.float32)
            mixed = tl.zeros([TILE, WIDTH], dtype=tl.float32)
            end = tl.minimum(keys, start + TILE) if CAUSAL else keys
            for there in range(0, end, TILE):
                j = there + tl.arange(0, TILE)
                k = _values(k_ptr, k_bias_ptr, other, keys, K_STRIDE, member, head, j, BIAS, HEAD, WIDTH)
                v = _values(v_ptr, v_bias_ptr, other, keys, K_STRIDE, member, head, j, BIAS, HEAD, WIDTH)
                scores, allowed, kept = _scores(
                    q, k, i, j, queries, keys, first - member * room, head, heads, own_ptr, member, curve_ptr,
                    curve_stride, scale, threshold, CAUSAL, DROP, CURVE, PRECISION,
                )  # fmt: skip
                highest = tl.maximum(most, tl.max(scores, axis=1))
                weights = tl.where(allowed, tl.exp(scores - highest[:, None]), 0.0)
                before = tl.exp(most - highest)
                total = total * before + tl.sum(weights, axis=1)
                if DROP:
                    weights = tl.where(kept, weights * keep, 0.0)
                mixed = tl.dot(weights, v, mixed * before[:, None], input_precision=PRECISION)
                most = highest
            total = tl.where(total == 0, 1.0, total)
            at, inside = places(first, queries, DIM, head, i, 0, HEAD, WIDTH)
            tl.store(out_ptr + at, mixed / total[:, None], mask=inside)
            tl.store(total_ptr + (first + i).to(tl.int64) * heads + head, most + tl.log(total), mask=i < queries)


@triton.jit
def _tile_grads(
    q, k, v, grad, out, total, i, j, queries, keys, local, head, heads, own_ptr, member, curve_ptr, curve_stride, scale,
    threshold, keep,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Return a tile's attention weights after dropout, the gradient of its scores, and the allowed pairs."""
    scores, allowed, kept = _scores(
        q, k, i, j, queries, keys, local, head, heads, own_ptr, member, curve_ptr, curve_stride, scale, threshold,
        CAUSAL, DROP, CURVE, PRECISION,
    )  # fmt: skip
    shares = tl.where(allowed, tl.exp(scores - total[:, None]), 0.0)
    given, shares_grad = shares, tl.dot(grad, tl.trans(v), input_precision=PRECISION)
    if DROP:
        given = tl.where(kept, shares * keep, 0.0)
        shares_grad = tl.where(kept, shares_grad * keep, 0.0)
    # The sum over keys of weights × their gradients equals the sum over columns of outputs × their gradients.
    inner = tl.sum(out * grad, axis=1)
    return given, shares * (shares_grad - inner[:, None]), allowed


@triton.jit
def tiles_backward(
    q_grad_ptr, k_grad_ptr, v_grad_ptr, q_bias_grad_ptr, k_bias_grad_ptr, v_bias_grad_ptr, curve_grad_ptr, grad_ptr,
    out_ptr, total_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, list_ptr, count_ptr, q_first_ptr,
    q_length_ptr, k_first_ptr, k_length_ptr, q_bias_ptr, k_bias_ptr, v_bias_ptr, room, others_room, batch, heads,
    scale,
    Q_STRIDE: tl.constexpr, K_STRIDE: tl.constexpr, DIM: tl.constexpr,
    BIAS: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, LEARNED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of tiles_forward: first of queries, then of keys and values. Each place has one writer."""
    count = tl.load(count_ptr) * heads
    for work in range(tl.program_id(0), count, tl.num_programs(0)):
        sentence, head, member, first, other, queries, keys = listed(
            work, list_ptr, q_first_ptr, q_length_ptr, k_first_ptr, k_length_ptr, heads, batch
        )
        _, threshold, keep = dropping(own_ptr, member)
        local = first - member * room
        if sentence % batch == batch - 1:
            clear_grads(
                q_grad_ptr, k_grad_ptr, v_grad_ptr, first + queries, other + keys, (member + 1) * room,
                (member + 1) * others_room, Q_STRIDE, K_STRIDE, head, HEAD, WIDTH, TILE,
            )  # fmt: skip
        for start in range(0, queries, TILE):
            i = start + tl.arange(0, TILE)
            q, q_at, inside = part(q_ptr, q_bias_ptr, first, queries, Q_STRIDE, member, head, i, 0, BIAS, HEAD, WIDTH)
            grad = _values(grad_ptr, grad_ptr, first, queries, DIM, member, head, i, False, HEAD, WIDTH)
            out = _values(out_ptr, out_ptr, first, queries, DIM, member, head, i, False, HEAD, WIDTH)
            total = tl.load(total_ptr + (first + i).to(tl.int64) * heads + head, mask=i < queries, other=0.0)
            q_grad = tl.zeros([TILE, WIDTH], dtype=tl.float32)
            end = tl.minimum(keys, start + TILE) if CAUSAL else keys
            for there in range(0, end, TILE):
                j = there + tl.arange(0, TILE)
                k = _values(k_ptr, k_bias_ptr, other, keys, K_STRIDE, member, head, j, BIAS, HEAD, WIDTH)
                v = _values(v_ptr, v_bias_ptr, other, keys, K_STRIDE, member, head, j, BIAS, HEAD, WIDTH)
                given, scores_grad, allowed = _tile_grads(
                    q, k, v, grad, out, total, i, j, queries, keys, local, head, heads, own_ptr, member, curve_ptr,
                    curve_stride, scale, threshold, keep, CAUSAL, DROP, CURVE, PRECISION,
                )  # fmt: skip
                if LEARNED:
                    bent = bend(curve_grad_ptr, curve_stride, member, head, j[None, :] - i[:, None], CURVE)
                    tl.atomic_add(bent, scores_grad, mask=allowed)
                q_grad = tl.dot(scores_grad, k, q_grad, input_precision=PRECISION)
            give_grad(
                q_grad_ptr, q_bias_grad_ptr, q_at, inside, q_grad * scale, member, Q_STRIDE, head, 0, BIAS, HEAD, WIDTH
            )
        for there in range(0, keys, TILE):
            j = there + tl.arange(0, TILE)
            k, k_at, inside = part(k_ptr, k_bias_ptr, other, keys, K_STRIDE, member, head, j, 0, BIAS, HEAD, WIDTH)
            v = _values(v_ptr, v_bias_ptr, other, keys, K_STRIDE, member, head, j, BIAS, HEAD, WIDTH)
            k_grad = tl.zeros([TILE, WIDTH], dtype=tl.float32)
            v_grad = tl.zeros([TILE, WIDTH], dtype=tl.float32)
            begin = there if CAUSAL else 0
            for start in range(begin, queries, TILE):
                i = start + tl.arange(0, TILE)
                q = _values(q_ptr, q_bias_ptr, first, queries, Q_STRIDE, member, head, i, BIAS, HEAD, WIDTH)
                grad = _values(grad_ptr, grad_ptr, first, queries, DIM, member, head, i, False, HEAD, WIDTH)
                out = _values(out_ptr, out_ptr, first, queries, DIM, member, head, i, False, HEAD, WIDTH)
                total = tl.load(total_ptr + (first + i).to(tl.int64) * heads + head, mask=i < queries, other=0.0)
                given, scores_grad, allowed = _tile_grads(
                    q, k, v, grad, out, total, i, j, queries, keys, local, head, heads, own_ptr, member, curve_ptr,
                    curve_stride, scale, threshold, keep, CAUSAL, DROP, CURVE, PRECISION,
                )  # fmt: skip
                v_grad = tl.dot(tl.trans(given), grad, v_grad, input_precision=PRECISION)
                k_grad = tl.dot(tl.trans(scores_grad), q, k_grad, input_precision=PRECISION)
            give_grad(v_grad_ptr, v_bias_grad_ptr, k_at, inside, v_grad, member, K_STRIDE, head, 0, BIAS, HEAD, WIDTH)
            give_grad(
                k_grad_ptr, k_bias_grad_ptr, k_at, inside, k_grad * scale, member, K_STRIDE, head, 0, BIAS, HEAD, WIDTH
            )
