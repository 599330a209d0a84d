"""Attention in Triton for short sentences: a program takes a whole sentence of one head. `attention_tiles` has long ones."""
# As in elementwise.py: pointers end in _ptr, constants are capitals.
# mypy: ignore-errors

import triton
import triton.language as tl

from embinit.models.kernels.elementwise import dropping, hashed_column, hashed_row, is_kept


@triton.jit
def bend(curve_ptr, curve_stride, member, head, distance, CURVE: tl.constexpr):
    """Return the places of a head's distance bias in memory; CURVE is the longest distance in both directions."""
    return curve_ptr + member * curve_stride + head * (2 * CURVE + 1) + distance + CURVE


@triton.jit
def _shares(
    scores, queries, keys, local, head, heads, own_ptr, member, curve_ptr, curve_stride, threshold, i,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr,
):  # fmt: skip
    """Return the softmax of a sentence's scores, (BLOCK, BLOCK), and its dropout factors."""
    distance = i[None, :] - i[:, None]
    if CURVE:
        scores += tl.load(bend(curve_ptr, curve_stride, member, head, distance, CURVE))
    allowed = (i < keys)[None, :] & (i < queries)[:, None]
    if CAUSAL:
        allowed = allowed & (distance <= 0)
    scores = tl.where(allowed, scores, -1e38)
    scores = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    scores = tl.where(allowed, scores, 0.0)
    total = tl.sum(scores, axis=1)
    shares = scores / tl.where(total == 0, 1.0, total)[:, None]
    kept = allowed
    if DROP:
        own, _, _ = dropping(own_ptr, member)
        row = hashed_row(own, (local + i) * heads + head)
        kept = is_kept(row[:, None], hashed_column(i)[None, :], threshold)
    return shares, kept


@triton.jit
def places(first, length, STRIDE: tl.constexpr, head, i, start, HEAD: tl.constexpr, PART: tl.constexpr):
    """Return the places of columns `start` to `start` + PART of a head for each token of a sentence, and which exist."""
    column = start + tl.arange(0, PART)
    at = (first + i).to(tl.int64)[:, None] * STRIDE + head * HEAD + column[None, :]
    return at, (i < length)[:, None] & (column < HEAD)[None, :]


@triton.jit
def part(
    ptr, bias_ptr, first, length, STRIDE: tl.constexpr, member, head, i, start,
    BIAS: tl.constexpr, HEAD: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """Return some columns of a sentence's queries, keys or values, (BLOCK, PART), and their places in memory."""
    at, there = places(first, length, STRIDE, head, i, start, HEAD, PART)
    values = tl.load(ptr + at, mask=there, other=0.0).to(tl.float32)
    if BIAS:
        column = start + tl.arange(0, PART)
        bias = tl.load(bias_ptr + member * STRIDE + head * HEAD + column, mask=column < HEAD, other=0.0)
        values += bias[None, :]
    return values, at, there


@triton.jit
def _forward(
    out_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, q_bias_ptr, k_bias_ptr, v_bias_ptr, first, other,
    queries, keys, Q_STRIDE: tl.constexpr, K_STRIDE: tl.constexpr, DIM: tl.constexpr, room, member, head, heads, scale,
    threshold, keep,
    BIAS: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, BLOCK)
    scores = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    for start in tl.static_range(0, WIDTH, PART):
        q, _, _ = part(q_ptr, q_bias_ptr, first, queries, Q_STRIDE, member, head, i, start, BIAS, HEAD, PART)
        k, _, _ = part(k_ptr, k_bias_ptr, other, keys, K_STRIDE, member, head, i, start, BIAS, HEAD, PART)
        scores = tl.dot(q, tl.trans(k), scores, input_precision=PRECISION)
    shares, kept = _shares(
        scores * scale, queries, keys, first - member * room, head, heads, own_ptr, member, curve_ptr, curve_stride,
        threshold, i, CAUSAL, DROP, CURVE,
    )  # fmt: skip
    if DROP:
        shares = tl.where(kept, shares * keep, 0.0)
    for start in tl.static_range(0, WIDTH, PART):
        v, _, _ = part(v_ptr, v_bias_ptr, other, keys, K_STRIDE, member, head, i, start, BIAS, HEAD, PART)
        out_at, there = places(first, queries, DIM, head, i, start, HEAD, PART)
        tl.store(out_ptr + out_at, tl.dot(shares, v, input_precision=PRECISION), mask=there)


@triton.jit
def give_grad(
    grad_ptr, bias_grad_ptr, at, there, values, member, STRIDE: tl.constexpr, head, start,
    BIAS: tl.constexpr, HEAD: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """Store the gradient of queries, keys or values, and add its sum over tokens to the gradient of their bias."""
    tl.store(grad_ptr + at, values, mask=there)
    if BIAS:
        column = start + tl.arange(0, PART)
        own = bias_grad_ptr + member * STRIDE + head * HEAD + column
        tl.atomic_add(own, tl.sum(values, axis=0), mask=column < HEAD)


@triton.jit
def _backward(
    q_grad_ptr, k_grad_ptr, v_grad_ptr, q_bias_grad_ptr, k_bias_grad_ptr, v_bias_grad_ptr, curve_grad_ptr, grad_ptr,
    q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, q_bias_ptr, k_bias_ptr, v_bias_ptr, first, other, queries,
    keys, Q_STRIDE: tl.constexpr, K_STRIDE: tl.constexpr, DIM: tl.constexpr, room, member, head, heads, scale, threshold,
    keep,
    BIAS: tl.constexpr, HEAD: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, LEARNED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, BLOCK)
    q, q_at, there = part(q_ptr, q_bias_ptr, first, queries, Q_STRIDE, member, head, i, 0, BIAS, HEAD, PART)
    k, k_at, those = part(k_ptr, k_bias_ptr, other, keys, K_STRIDE, member, head, i, 0, BIAS, HEAD, PART)
    v, _, _ = part(v_ptr, v_bias_ptr, other, keys, K_STRIDE, member, head, i, 0, BIAS, HEAD, PART)
    grad, _, _ = part(grad_ptr, grad_ptr, first, queries, DIM, member, head, i, 0, False, HEAD, PART)
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION)
    shares_grad = tl.dot(grad, tl.trans(v), input_precision=PRECISION)
    given, scores_grad = _score_grads(
        scores * scale, shares_grad, first, queries, keys, room, member, head, heads, own_ptr, curve_grad_ptr,
        curve_ptr, curve_stride, scale, threshold, keep, i, CAUSAL, DROP, CURVE, LEARNED,
    )  # fmt: skip
    v_grad = tl.dot(tl.trans(given), grad, input_precision=PRECISION)
    give_grad(v_grad_ptr, v_bias_grad_ptr, k_at, those, v_grad, member, K_STRIDE, head, 0, BIAS, HEAD, PART)
    q_grad = tl.dot(scores_grad, k, input_precision=PRECISION)
    give_grad(q_grad_ptr, q_bias_grad_ptr, q_at, there, q_grad, member, Q_STRIDE, head, 0, BIAS, HEAD, PART)
    k_grad = tl.dot(tl.trans(scores_grad), q, input_precision=PRECISION)
    give_grad(k_grad_ptr, k_bias_grad_ptr, k_at, those, k_grad, member, K_STRIDE, head, 0, BIAS, HEAD, PART)


@triton.jit
def _backward_in_parts(
    q_grad_ptr, k_grad_ptr, v_grad_ptr, q_bias_grad_ptr, k_bias_grad_ptr, v_bias_grad_ptr, curve_grad_ptr, grad_ptr,
    q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, q_bias_ptr, k_bias_ptr, v_bias_ptr, first, other, queries,
    keys, Q_STRIDE: tl.constexpr, K_STRIDE: tl.constexpr, DIM: tl.constexpr, room, member, head, heads, scale, threshold,
    keep,
    BIAS: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, LEARNED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Do what _backward does if a sentence does not fit into shared memory: read it twice, part by part."""
    i = tl.arange(0, BLOCK)
    scores = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    shares_grad = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    for start in tl.static_range(0, WIDTH, PART):
        q, _, _ = part(q_ptr, q_bias_ptr, first, queries, Q_STRIDE, member, head, i, start, BIAS, HEAD, PART)
        k, _, _ = part(k_ptr, k_bias_ptr, other, keys, K_STRIDE, member, head, i, start, BIAS, HEAD, PART)
        scores = tl.dot(q, tl.trans(k), scores, input_precision=PRECISION)
        v, _, _ = part(v_ptr, v_bias_ptr, other, keys, K_STRIDE, member, head, i, start, BIAS, HEAD, PART)
        grad, _, _ = part(grad_ptr, grad_ptr, first, queries, DIM, member, head, i, start, False, HEAD, PART)
        shares_grad = tl.dot(grad, tl.trans(v), shares_grad, input_precision=PRECISION)
    given, scores_grad = _score_grads(
        scores * scale, shares_grad, first, queries, keys, room, member, head, heads, own_ptr, curve_grad_ptr,
        curve_ptr, curve_stride, scale, threshold, keep, i, CAUSAL, DROP, CURVE, LEARNED,
    )  # fmt: skip
    for start in tl.static_range(0, WIDTH, PART):
        q, q_at, there = part(q_ptr, q_bias_ptr, first, queries, Q_STRIDE, member, head, i, start, BIAS, HEAD, PART)
        k, k_at, those = part(k_ptr, k_bias_ptr, other, keys, K_STRIDE, member, head, i, start, BIAS, HEAD, PART)
        grad, _, _ = part(grad_ptr, grad_ptr, first, queries, DIM, member, head, i, start, False, HEAD, PART)
        v_grad = tl.dot(tl.trans(given), grad, input_precision=PRECISION)
        give_grad(v_grad_ptr, v_bias_grad_ptr, k_at, those, v_grad, member, K_STRIDE, head, start, BIAS, HEAD, PART)
        q_grad = tl.dot(scores_grad, k, input_precision=PRECISION)
        give_grad(q_grad_ptr, q_bias_grad_ptr, q_at, there, q_grad, member, Q_STRIDE, head, start, BIAS, HEAD, PART)
        k_grad = tl.dot(tl.trans(scores_grad), q, input_precision=PRECISION)
        give_grad(k_grad_ptr, k_bias_grad_ptr, k_at, those, k_grad, member, K_STRIDE, head, start, BIAS, HEAD, PART)


@triton.jit
def _score_grads(
    scores, shares_grad, first, queries, keys, room, member, head, heads, own_ptr, curve_grad_ptr, curve_ptr,
    curve_stride, scale, threshold, keep, i,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, LEARNED: tl.constexpr,
):  # fmt: skip
    """Return the attention weights after dropout, and the gradient of the scores before their scale."""
    shares, kept = _shares(
        scores, queries, keys, first - member * room, head, heads, own_ptr, member, curve_ptr, curve_stride,
        threshold, i, CAUSAL, DROP, CURVE,
    )  # fmt: skip
    if DROP:
        shares_grad = tl.where(kept, shares_grad * keep, 0.0)
        given = tl.where(kept, shares * keep, 0.0)
    else:
        given = shares
    inner = tl.sum(shares * shares_grad, axis=1)
    scores_grad = shares * (shares_grad - inner[:, None])
    if LEARNED:
        both = (i < queries)[:, None] & (i < keys)[None, :]
        distance = i[None, :] - i[:, None]
        tl.atomic_add(bend(curve_grad_ptr, curve_stride, member, head, distance, CURVE), scores_grad, mask=both)
    return given, scores_grad * scale


@triton.jit
def clear(out_ptr, end, room, STRIDE: tl.constexpr, head, i, column, HEAD: tl.constexpr, BLOCK: tl.constexpr):
    """Write zeros after a member's last token, because sums run over all places."""
    for start in range(end, room, BLOCK):
        at = (start + i).to(tl.int64)[:, None] * STRIDE + head * HEAD + column[None, :]
        zeros = tl.zeros([BLOCK, column.shape[0]], dtype=tl.float32)
        tl.store(out_ptr + at, zeros, mask=(start + i < room)[:, None] & (column < HEAD)[None, :])


@triton.jit
def clear_grads(
    q_grad_ptr, k_grad_ptr, v_grad_ptr, q_end, k_end, room, others_room, Q_STRIDE: tl.constexpr, K_STRIDE: tl.constexpr,
    head, HEAD: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write zeros after a member's last query, key and value."""
    i, column = tl.arange(0, BLOCK), tl.arange(0, WIDTH)
    clear(q_grad_ptr, q_end, room, Q_STRIDE, head, i, column, HEAD, BLOCK)
    clear(k_grad_ptr, k_end, others_room, K_STRIDE, head, i, column, HEAD, BLOCK)
    clear(v_grad_ptr, k_end, others_room, K_STRIDE, head, i, column, HEAD, BLOCK)


@triton.jit
def sort_work(
    list_ptr, count_ptr, q_length_ptr, k_length_ptr, sentences,
    SMALLEST: tl.constexpr, SIZES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """List the sentences of each size, (SIZES, sentences), and count them, in one program.

    Sizes double from SMALLEST on; the last has whatever is longer.
    """
    for size in tl.static_range(SIZES):
        above = -1 if size == 0 else SMALLEST << (size - 1)
        found = 0
        for start in range(0, sentences, BLOCK):
            i = start + tl.arange(0, BLOCK)
            inside = i < sentences
            queries = tl.load(q_length_ptr + i, mask=inside, other=0)
            longest = tl.maximum(queries, tl.load(k_length_ptr + i, mask=inside, other=0))
            mine = inside & (longest > above)
            if size < SIZES - 1:
                mine = mine & (longest <= SMALLEST << size)
            mine = mine.to(tl.int32)
            place = found + tl.cumsum(mine, axis=0) - 1
            tl.store(list_ptr + size * sentences + place, i, mask=mine == 1)
            found += tl.sum(mine, axis=0)
        tl.store(count_ptr + size, found)


@triton.jit
def listed(work, list_ptr, q_first_ptr, q_length_ptr, k_first_ptr, k_length_ptr, heads, batch):
    """Return the sentence, head and member of one listed item, and the first places and counts of its queries and keys."""
    sentence = tl.load(list_ptr + work // heads)
    first, other = tl.load(q_first_ptr + sentence), tl.load(k_first_ptr + sentence)
    queries, keys = tl.load(q_length_ptr + sentence), tl.load(k_length_ptr + sentence)
    return sentence, work % heads, sentence // batch, first, other, queries, keys


@triton.jit
def attend_forward(
    out_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, list_ptr, count_ptr, q_first_ptr, q_length_ptr,
    k_first_ptr, k_length_ptr, q_bias_ptr, k_bias_ptr, v_bias_ptr, room, others_room, batch, heads, scale,
    Q_STRIDE: tl.constexpr, K_STRIDE: tl.constexpr, DIM: tl.constexpr,
    BIAS: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute attention for the listed sentences of at most BLOCK tokens; programs take the heads in turn."""
    count = tl.load(count_ptr) * heads
    for work in range(tl.program_id(0), count, tl.num_programs(0)):
        sentence, head, member, first, other, queries, keys = listed(
            work, list_ptr, q_first_ptr, q_length_ptr, k_first_ptr, k_length_ptr, heads, batch
        )
        _, threshold, keep = dropping(own_ptr, member)
        if sentence % batch == batch - 1:
            i, column = tl.arange(0, BLOCK), tl.arange(0, WIDTH)
            clear(out_ptr, first + queries, (member + 1) * room, DIM, head, i, column, HEAD, BLOCK)
        if tl.maximum(queries, keys) > 0:
            _forward(
                out_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, q_bias_ptr, k_bias_ptr, v_bias_ptr,
                first, other, queries, keys, Q_STRIDE, K_STRIDE, DIM, room, member, head, heads, scale,
                threshold, keep, BIAS, HEAD, WIDTH, PART, BLOCK, CAUSAL, DROP, CURVE, PRECISION,
            )  # fmt: skip


@triton.jit
def attend_backward(
    q_grad_ptr, k_grad_ptr, v_grad_ptr, q_bias_grad_ptr, k_bias_grad_ptr, v_bias_grad_ptr, curve_grad_ptr, grad_ptr,
    q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, list_ptr, count_ptr, q_first_ptr, q_length_ptr, k_first_ptr,
    k_length_ptr, q_bias_ptr, k_bias_ptr, v_bias_ptr, room, others_room, batch, heads, scale,
    Q_STRIDE: tl.constexpr, K_STRIDE: tl.constexpr, DIM: tl.constexpr,
    BIAS: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, LEARNED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of attend_forward."""
    count = tl.load(count_ptr) * heads
    for work in range(tl.program_id(0), count, tl.num_programs(0)):
        sentence, head, member, first, other, queries, keys = listed(
            work, list_ptr, q_first_ptr, q_length_ptr, k_first_ptr, k_length_ptr, heads, batch
        )
        _, threshold, keep = dropping(own_ptr, member)
        if sentence % batch == batch - 1:
            clear_grads(
                q_grad_ptr, k_grad_ptr, v_grad_ptr, first + queries, other + keys, (member + 1) * room,
                (member + 1) * others_room, Q_STRIDE, K_STRIDE, head, HEAD, WIDTH, BLOCK,
            )  # fmt: skip
        if tl.maximum(queries, keys) > 0:
            if PART == WIDTH:
                _backward(
                    q_grad_ptr, k_grad_ptr, v_grad_ptr, q_bias_grad_ptr, k_bias_grad_ptr, v_bias_grad_ptr,
                    curve_grad_ptr, grad_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, q_bias_ptr,
                    k_bias_ptr, v_bias_ptr, first, other, queries, keys, Q_STRIDE, K_STRIDE, DIM, room, member,
                    head, heads, scale, threshold, keep, BIAS, HEAD, PART, BLOCK, CAUSAL, DROP, CURVE, LEARNED,
                    PRECISION,
                )  # fmt: skip
            else:
                _backward_in_parts(
                    q_grad_ptr, k_grad_ptr, v_grad_ptr, q_bias_grad_ptr, k_bias_grad_ptr, v_bias_grad_ptr,
                    curve_grad_ptr, grad_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, q_bias_ptr,
                    k_bias_ptr, v_bias_ptr, first, other, queries, keys, Q_STRIDE, K_STRIDE, DIM, room, member,
                    head, heads, scale, threshold, keep, BIAS, HEAD, WIDTH, PART, BLOCK, CAUSAL, DROP, CURVE, LEARNED,
                    PRECISION,
                )  # fmt: skip
