"""CUDA kernels in Triton, for shapes that no library's kernels are made for: many short sentences of many members.

Each reads its inputs once and writes its outputs once, in float32 registers whatever the tensors hold. What is dropped is
hashed anew in the backward pass, as `embinit.models.dropout` defines it. `embinit.models.fused` calls them.
"""
# Triton reads annotations and argument names, so both follow its customs here: pointers end in _ptr, constants are capitals.
# mypy: ignore-errors

import triton
import triton.language as tl

#: The longest distance between two tokens that attention has a number for.
SPAN = tl.constexpr(127)


@triton.jit
def _mixed(value):
    value = (value ^ (value >> 16)) * 0x85EBCA6B
    value = (value ^ (value >> 13)) * 0xC2B2AE35
    return value ^ (value >> 16)


@triton.jit
def _row_hash(own, row):
    return _mixed(own.to(tl.uint32, bitcast=True) + row.to(tl.uint32) * 0x9E3779B1).to(tl.int32, bitcast=True)


@triton.jit
def _column_hash(column):
    return (_mixed(column.to(tl.uint32) + 0x7F4A7C15) | 1).to(tl.int32, bitcast=True)


@triton.jit
def _kept(row_hash, column_hash, threshold):
    number = row_hash * column_hash
    number = (number ^ (number >> 15)) * 0x2C1B3C6D
    return number >= threshold


# ---------------------------------------------------------------- embedding


@triton.jit
def embed_forward(
    out_ptr, table_ptr, ids_ptr, positions_ptr, added_ptr, own_ptr, room, rows, scale, threshold, keep,
    D: tl.constexpr, BLOCK: tl.constexpr, ADDED: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0)
    member = place // room
    column = tl.arange(0, BLOCK)
    there = column < D
    token = tl.load(ids_ptr + place) + member.to(tl.int64) * rows
    value = tl.load(table_ptr + token * D + column, mask=there, other=0.0).to(tl.float32) * scale
    if ADDED:
        value += tl.load(added_ptr + tl.load(positions_ptr + place) * D + column, mask=there, other=0.0)
    if DROP:
        row = _row_hash(tl.load(own_ptr + member), place - member * room)
        value = tl.where(_kept(row, _column_hash(column), threshold), value * keep, 0.0)
    tl.store(out_ptr + place.to(tl.int64) * D + column, value, mask=there)


@triton.jit
def embed_backward(
    table_grad_ptr, grad_ptr, ids_ptr, real_ptr, own_ptr, room, rows, scale, threshold, keep,
    D: tl.constexpr, BLOCK: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0)
    if tl.load(real_ptr + place) == 0:
        return
    member = place // room
    column = tl.arange(0, BLOCK)
    there = column < D
    value = tl.load(grad_ptr + place.to(tl.int64) * D + column, mask=there, other=0.0).to(tl.float32) * scale
    if DROP:
        row = _row_hash(tl.load(own_ptr + member), place - member * room)
        value = tl.where(_kept(row, _column_hash(column), threshold), value * keep, 0.0)
    token = tl.load(ids_ptr + place) + member.to(tl.int64) * rows
    tl.atomic_add(table_grad_ptr + token * D + column, value, mask=there)


# ---------------------------------------------------------------- dropout + residual + norm


@triton.jit
def norm_forward(
    out_ptr, mean_ptr, rstd_ptr, values_ptr, change_ptr, change_bias_ptr, weight_ptr, bias_ptr, own_ptr, room,
    threshold, keep, D: tl.constexpr, BLOCK: tl.constexpr, CHANGE: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0)
    member = place // room
    column = tl.arange(0, BLOCK)
    there = column < D
    at = place.to(tl.int64) * D + column
    value = tl.load(values_ptr + at, mask=there, other=0.0).to(tl.float32)
    if CHANGE:
        change = tl.load(change_ptr + at, mask=there, other=0.0).to(tl.float32)
        change += tl.load(change_bias_ptr + member * D + column, mask=there, other=0.0)
        if DROP:
            row = _row_hash(tl.load(own_ptr + member), place - member * room)
            change = tl.where(_kept(row, _column_hash(column), threshold), change * keep, 0.0)
        value += change
    mean = tl.sum(value, axis=0) / D
    centered = tl.where(there, value - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centered * centered, axis=0) / D + 1e-5)
    weight = tl.load(weight_ptr + member * D + column, mask=there, other=0.0)
    bias = tl.load(bias_ptr + member * D + column, mask=there, other=0.0)
    tl.store(out_ptr + at, centered * rstd * weight + bias, mask=there)
    tl.store(mean_ptr + place, mean)
    tl.store(rstd_ptr + place, rstd)


@triton.jit
def norm_backward(
    values_grad_ptr, change_grad_ptr, weight_grad_ptr, bias_grad_ptr, change_bias_grad_ptr, grad_ptr, values_ptr,
    change_ptr, change_bias_ptr, weight_ptr, mean_ptr, rstd_ptr, own_ptr, room, threshold, keep,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, CHANGE: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(0)
    block = tl.program_id(1)
    column = tl.arange(0, BLOCK)
    there = column < D
    weight = tl.load(weight_ptr + member * D + column, mask=there, other=0.0)
    weight_sum = tl.zeros([BLOCK], dtype=tl.float32)
    bias_sum = tl.zeros([BLOCK], dtype=tl.float32)
    change_sum = tl.zeros([BLOCK], dtype=tl.float32)
    if CHANGE:
        change_bias = tl.load(change_bias_ptr + member * D + column, mask=there, other=0.0)
    if DROP:
        own = tl.load(own_ptr + member)
        column_hash = _column_hash(column)
    for i in range(ROWS):
        local = block * ROWS + i
        inside = column < tl.where(local < room, D, 0)
        place = (member * room + local).to(tl.int64)
        at = place * D + column
        value = tl.load(values_ptr + at, mask=inside, other=0.0).to(tl.float32)
        if CHANGE:
            change = tl.load(change_ptr + at, mask=inside, other=0.0).to(tl.float32) + change_bias
            if DROP:
                kept = _kept(_row_hash(own, local), column_hash, threshold)
                change = tl.where(kept, change * keep, 0.0)
            value += change
        safe = member * room + tl.minimum(local, room - 1)
        mean, rstd = tl.load(mean_ptr + safe), tl.load(rstd_ptr + safe)
        grad = tl.load(grad_ptr + at, mask=inside, other=0.0).to(tl.float32)
        normal = tl.where(inside, (value - mean) * rstd, 0.0)
        weight_sum += grad * normal
        bias_sum += grad
        grad = grad * weight
        grad = rstd * (grad - tl.sum(grad, axis=0) / D - normal * (tl.sum(grad * normal, axis=0) / D))
        tl.store(values_grad_ptr + at, grad, mask=inside)
        if CHANGE:
            if DROP:
                grad = tl.where(kept, grad * keep, 0.0)
            tl.store(change_grad_ptr + at, grad, mask=inside)
            change_sum += tl.where(inside, grad, 0.0)
    tl.atomic_add(weight_grad_ptr + member * D + column, weight_sum, mask=there)
    tl.atomic_add(bias_grad_ptr + member * D + column, bias_sum, mask=there)
    if CHANGE:
        tl.atomic_add(change_bias_grad_ptr + member * D + column, change_sum, mask=there)


# ---------------------------------------------------------------- activation + dropout


@triton.jit
def relu_forward(
    out_ptr, values_ptr, bias_ptr, own_ptr, room, threshold, keep,
    D: tl.constexpr, BLOCK: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0)
    member = place // room
    column = tl.arange(0, BLOCK)
    there = column < D
    at = place.to(tl.int64) * D + column
    value = tl.load(values_ptr + at, mask=there, other=0.0).to(tl.float32)
    value += tl.load(bias_ptr + member * D + column, mask=there, other=0.0)
    # Not `maximum`: NaN has to stay NaN.
    value = tl.where(value < 0, 0.0, value)
    if DROP:
        row = _row_hash(tl.load(own_ptr + member), place - member * room)
        value = tl.where(_kept(row, _column_hash(column), threshold), value * keep, 0.0)
    tl.store(out_ptr + at, value, mask=there)


@triton.jit
def relu_backward(
    values_grad_ptr, bias_grad_ptr, grad_ptr, out_ptr, room, keep,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(0)
    block = tl.program_id(1)
    column = tl.arange(0, BLOCK)
    bias_sum = tl.zeros([BLOCK], dtype=tl.float32)
    for i in range(ROWS):
        local = block * ROWS + i
        inside = column < tl.where(local < room, D, 0)
        at = (member * room + local).to(tl.int64) * D + column
        # What came out as zero was negative or dropped: nothing flows back through either.
        out = tl.load(out_ptr + at, mask=inside, other=0.0)
        grad = tl.load(grad_ptr + at, mask=inside, other=0.0).to(tl.float32)
        grad = tl.where(out == 0, 0.0, grad * keep)
        tl.store(values_grad_ptr + at, grad, mask=inside)
        bias_sum += grad
    tl.atomic_add(bias_grad_ptr + member * D + column, bias_sum, mask=column < D)


# ---------------------------------------------------------------- attention


@triton.jit
def _bend(curve_ptr, curve_stride, member, head, distance):
    """Return where what a head adds to scores stands for each distance; SPAN is the longest, to both sides."""
    return curve_ptr + member * curve_stride + head * (2 * SPAN + 1) + distance + SPAN


@triton.jit
def _shares(
    scores, queries, keys, local, head, heads, own_ptr, member, curve_ptr, curve_stride, threshold, i,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr,
):  # fmt: skip
    """Return the softmax of a sentence's scores, (BLOCK, BLOCK), and what is kept of it."""
    distance = i[None, :] - i[:, None]
    if CURVE:
        scores += tl.load(_bend(curve_ptr, curve_stride, member, head, distance))
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
        row = _row_hash(tl.load(own_ptr + member), (local + i) * heads + head)
        kept = _kept(row[:, None], _column_hash(i)[None, :], threshold)
    return shares, kept


@triton.jit
def _places(first, length, stride, head, i, start, HEAD: tl.constexpr, PART: tl.constexpr):
    """Return where numbers `start` to `start` + PART of a head stand for each token of a sentence, and which are there."""
    column = start + tl.arange(0, PART)
    at = (first + i).to(tl.int64)[:, None] * stride + head * HEAD + column[None, :]
    return at, (i < length)[:, None] & (column < HEAD)[None, :]


@triton.jit
def _part(
    ptr, bias_ptr, first, length, stride, member, head, i, start,
    BIAS: tl.constexpr, HEAD: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """Return some numbers of a sentence's queries, keys or values, (BLOCK, PART), and where they stand."""
    at, there = _places(first, length, stride, head, i, start, HEAD, PART)
    values = tl.load(ptr + at, mask=there, other=0.0).to(tl.float32)
    if BIAS:
        column = start + tl.arange(0, PART)
        bias = tl.load(bias_ptr + member * stride + head * HEAD + column, mask=column < HEAD, other=0.0)
        values += bias[None, :]
    return values, at, there


@triton.jit
def _forward(
    out_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, q_bias_ptr, k_bias_ptr, v_bias_ptr, first,
    other, queries, keys,
    q_stride, k_stride, out_stride, room, member, head, heads, scale, threshold, keep,
    BIAS: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, BLOCK)
    scores = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    for start in tl.static_range(0, WIDTH, PART):
        q, _, _ = _part(q_ptr, q_bias_ptr, first, queries, q_stride, member, head, i, start, BIAS, HEAD, PART)
        k, _, _ = _part(k_ptr, k_bias_ptr, other, keys, k_stride, member, head, i, start, BIAS, HEAD, PART)
        scores = tl.dot(q, tl.trans(k), scores, input_precision=PRECISION)
    shares, kept = _shares(
        scores * scale, queries, keys, first - member * room, head, heads, own_ptr, member, curve_ptr,
        curve_stride, threshold, i,
        CAUSAL, DROP, CURVE,
    )  # fmt: skip
    if DROP:
        shares = tl.where(kept, shares * keep, 0.0)
    for start in tl.static_range(0, WIDTH, PART):
        v, _, _ = _part(v_ptr, v_bias_ptr, other, keys, k_stride, member, head, i, start, BIAS, HEAD, PART)
        out_at, there = _places(first, queries, out_stride, head, i, start, HEAD, PART)
        tl.store(out_ptr + out_at, tl.dot(shares, v, input_precision=PRECISION), mask=there)


@triton.jit
def _backward(
    q_grad_ptr, k_grad_ptr, v_grad_ptr, curve_grad_ptr, grad_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr,
    curve_stride, q_bias_ptr, k_bias_ptr,
    v_bias_ptr, first, other, queries, keys, q_stride, k_stride, out_stride, room, member, head, heads, scale,
    threshold, keep,
    BIAS: tl.constexpr, HEAD: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, LEARNED: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, BLOCK)
    q, q_at, there = _part(q_ptr, q_bias_ptr, first, queries, q_stride, member, head, i, 0, BIAS, HEAD, PART)
    k, k_at, those = _part(k_ptr, k_bias_ptr, other, keys, k_stride, member, head, i, 0, BIAS, HEAD, PART)
    v, _, _ = _part(v_ptr, v_bias_ptr, other, keys, k_stride, member, head, i, 0, BIAS, HEAD, PART)
    grad, _, _ = _part(grad_ptr, grad_ptr, first, queries, out_stride, member, head, i, 0, False, HEAD, PART)
    given, scores_grad = _score_grads(
        tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale, tl.dot(grad, tl.trans(v), input_precision=PRECISION),
        first, queries, keys, room, member, head, heads, own_ptr, curve_grad_ptr, curve_ptr, curve_stride,
        scale, threshold, keep, i,
        CAUSAL, DROP, CURVE, LEARNED,
    )  # fmt: skip
    tl.store(v_grad_ptr + k_at, tl.dot(tl.trans(given), grad, input_precision=PRECISION), mask=those)
    tl.store(q_grad_ptr + q_at, tl.dot(scores_grad, k, input_precision=PRECISION), mask=there)
    tl.store(k_grad_ptr + k_at, tl.dot(tl.trans(scores_grad), q, input_precision=PRECISION), mask=those)


@triton.jit
def _backward_in_parts(
    q_grad_ptr, k_grad_ptr, v_grad_ptr, curve_grad_ptr, grad_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr,
    curve_stride, q_bias_ptr, k_bias_ptr,
    v_bias_ptr, first, other, queries, keys, q_stride, k_stride, out_stride, room, member, head, heads, scale,
    threshold, keep,
    BIAS: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, LEARNED: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """As _backward, where long sentences of wide heads do not fit the card's shared memory: read twice, part by part."""
    i = tl.arange(0, BLOCK)
    scores = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    shares_grad = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    for start in tl.static_range(0, WIDTH, PART):
        q, _, _ = _part(q_ptr, q_bias_ptr, first, queries, q_stride, member, head, i, start, BIAS, HEAD, PART)
        k, _, _ = _part(k_ptr, k_bias_ptr, other, keys, k_stride, member, head, i, start, BIAS, HEAD, PART)
        scores = tl.dot(q, tl.trans(k), scores, input_precision=PRECISION)
        v, _, _ = _part(v_ptr, v_bias_ptr, other, keys, k_stride, member, head, i, start, BIAS, HEAD, PART)
        grad, _, _ = _part(grad_ptr, grad_ptr, first, queries, out_stride, member, head, i, start, False, HEAD, PART)
        shares_grad = tl.dot(grad, tl.trans(v), shares_grad, input_precision=PRECISION)
    given, scores_grad = _score_grads(
        scores * scale, shares_grad, first, queries, keys, room, member, head, heads, own_ptr, curve_grad_ptr,
        curve_ptr, curve_stride, scale,
        threshold, keep, i, CAUSAL, DROP, CURVE, LEARNED,
    )  # fmt: skip
    for start in tl.static_range(0, WIDTH, PART):
        q, q_at, there = _part(q_ptr, q_bias_ptr, first, queries, q_stride, member, head, i, start, BIAS, HEAD, PART)
        k, k_at, those = _part(k_ptr, k_bias_ptr, other, keys, k_stride, member, head, i, start, BIAS, HEAD, PART)
        grad, _, _ = _part(grad_ptr, grad_ptr, first, queries, out_stride, member, head, i, start, False, HEAD, PART)
        tl.store(v_grad_ptr + k_at, tl.dot(tl.trans(given), grad, input_precision=PRECISION), mask=those)
        tl.store(q_grad_ptr + q_at, tl.dot(scores_grad, k, input_precision=PRECISION), mask=there)
        tl.store(k_grad_ptr + k_at, tl.dot(tl.trans(scores_grad), q, input_precision=PRECISION), mask=those)


@triton.jit
def _score_grads(
    scores, shares_grad, first, queries, keys, room, member, head, heads, own_ptr, curve_grad_ptr, curve_ptr,
    curve_stride, scale, threshold, keep, i,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, LEARNED: tl.constexpr,
):  # fmt: skip
    """Return the shares as values were given by them, and the gradient of the scores before their scale."""
    shares, kept = _shares(
        scores, queries, keys, first - member * room, head, heads, own_ptr, member, curve_ptr, curve_stride,
        threshold, i,
        CAUSAL, DROP, CURVE,
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
        tl.atomic_add(_bend(curve_grad_ptr, curve_stride, member, head, distance), scores_grad, mask=both)
    return given, scores_grad * scale


@triton.jit
def _clear(out_ptr, end, room, stride, head, i, column, HEAD: tl.constexpr, BLOCK: tl.constexpr):
    """Write zeros behind a member's last token: what stands there enters sums over places."""
    for start in range(end, room, BLOCK):
        at = (start + i).to(tl.int64)[:, None] * stride + head * HEAD + column[None, :]
        zeros = tl.zeros([BLOCK, column.shape[0]], dtype=tl.float32)
        tl.store(out_ptr + at, zeros, mask=(start + i < room)[:, None] & (column < HEAD)[None, :])


@triton.jit
def attend_forward(
    out_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, q_first_ptr, q_length_ptr, k_first_ptr,
    k_length_ptr,
    q_bias_ptr, k_bias_ptr, v_bias_ptr, q_stride, k_stride, out_stride, room, others_room, batch, heads, count, scale,
    threshold, keep, BIAS: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, PART: tl.constexpr, BLOCK:
    tl.constexpr,
    ABOVE: tl.constexpr, EACH: tl.constexpr, CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Sentences of more than ABOVE and at most BLOCK tokens; the others belong to another launch."""
    for turn in range(EACH):
        work = tl.program_id(0) * EACH + turn
        if work < count:
            sentence = work // heads
            head = work % heads
            member = sentence // batch
            queries, keys = tl.load(q_length_ptr + sentence), tl.load(k_length_ptr + sentence)
            first, other = tl.load(q_first_ptr + sentence), tl.load(k_first_ptr + sentence)
            longest = tl.maximum(queries, keys)
            if ABOVE == 0:
                if sentence % batch == batch - 1:
                    i, column = tl.arange(0, BLOCK), tl.arange(0, WIDTH)
                    _clear(out_ptr, first + queries, (member + 1) * room, out_stride, head, i, column, HEAD, BLOCK)
            if (longest > ABOVE) & (longest <= BLOCK):
                _forward(
                    out_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride, q_bias_ptr,
                    k_bias_ptr, v_bias_ptr, first,
                    other, queries, keys, q_stride, k_stride, out_stride, room, member, head, heads, scale,
                    threshold, keep, BIAS, HEAD, WIDTH, PART, BLOCK, CAUSAL, DROP, CURVE, PRECISION,
                )  # fmt: skip


@triton.jit
def attend_backward(
    q_grad_ptr, k_grad_ptr, v_grad_ptr, curve_grad_ptr, grad_ptr, q_ptr, k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride,
    q_first_ptr, q_length_ptr, k_first_ptr, k_length_ptr, q_bias_ptr, k_bias_ptr, v_bias_ptr,
    q_stride, k_stride, out_stride, room, others_room, batch, heads, count, scale, threshold, keep,
    BIAS: tl.constexpr, HEAD: tl.constexpr, WIDTH: tl.constexpr, PART: tl.constexpr, BLOCK: tl.constexpr,
    ABOVE: tl.constexpr,
    EACH: tl.constexpr, CAUSAL: tl.constexpr, DROP: tl.constexpr, CURVE: tl.constexpr, LEARNED: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """As attend_forward."""
    for turn in range(EACH):
        work = tl.program_id(0) * EACH + turn
        if work < count:
            sentence = work // heads
            head = work % heads
            member = sentence // batch
            queries, keys = tl.load(q_length_ptr + sentence), tl.load(k_length_ptr + sentence)
            first, other = tl.load(q_first_ptr + sentence), tl.load(k_first_ptr + sentence)
            longest = tl.maximum(queries, keys)
            if ABOVE == 0:
                if sentence % batch == batch - 1:
                    i, column = tl.arange(0, BLOCK), tl.arange(0, WIDTH)
                    q_end, k_end = (member + 1) * room, (member + 1) * others_room
                    _clear(q_grad_ptr, first + queries, q_end, q_stride, head, i, column, HEAD, BLOCK)
                    _clear(k_grad_ptr, other + keys, k_end, k_stride, head, i, column, HEAD, BLOCK)
                    _clear(v_grad_ptr, other + keys, k_end, k_stride, head, i, column, HEAD, BLOCK)
            if (longest > ABOVE) & (longest <= BLOCK):
                if PART == WIDTH:
                    _backward(
                        q_grad_ptr, k_grad_ptr, v_grad_ptr, curve_grad_ptr, grad_ptr, q_ptr,
                        k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride,
                        q_bias_ptr, k_bias_ptr, v_bias_ptr, first, other, queries, keys, q_stride, k_stride,
                        out_stride, room, member, head, heads, scale, threshold, keep, BIAS, HEAD, PART, BLOCK,
                        CAUSAL, DROP, CURVE, LEARNED, PRECISION,
                    )  # fmt: skip
                else:
                    _backward_in_parts(
                        q_grad_ptr, k_grad_ptr, v_grad_ptr, curve_grad_ptr, grad_ptr, q_ptr,
                        k_ptr, v_ptr, own_ptr, curve_ptr, curve_stride,
                        q_bias_ptr, k_bias_ptr, v_bias_ptr, first, other, queries, keys, q_stride, k_stride,
                        out_stride, room, member, head, heads, scale, threshold, keep, BIAS, HEAD, WIDTH, PART, BLOCK,
                        CAUSAL, DROP, CURVE, LEARNED, PRECISION,
                    )  # fmt: skip


# ---------------------------------------------------------------- cross-entropy


@triton.jit
def entropy_forward(
    loss_ptr, total_ptr, logits_ptr, bias_ptr, asked_ptr, there_ptr, room, stride, smoothing,
    V: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0)
    if tl.load(there_ptr + place) == 0:
        tl.store(loss_ptr + place, 0.0)
        tl.store(total_ptr + place, 0.0)
        return
    base = logits_ptr + place.to(tl.int64) * stride
    bias = bias_ptr + (place // room) * V
    most, total, plain = -1e38, 0.0, 0.0
    for start in range(0, V, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < V
        value = tl.load(base + column, mask=inside, other=-1e38).to(tl.float32)
        value += tl.load(bias + column, mask=inside, other=0.0)
        larger = tl.maximum(most, tl.max(value, axis=0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(value - larger), axis=0)
        plain += tl.sum(tl.where(inside, value, 0.0), axis=0)
        most = larger
    log_total = most + tl.log(total)
    asked = tl.load(asked_ptr + place)
    right = tl.load(base + asked).to(tl.float32) + tl.load(bias + asked)
    tl.store(loss_ptr + place, log_total - (1.0 - smoothing) * right - smoothing * plain / V)
    tl.store(total_ptr + place, log_total)


@triton.jit
def entropy_backward(
    logits_ptr, bias_ptr, total_ptr, asked_ptr, there_ptr, grad_ptr, room, stride, smoothing,
    V: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradient over the logits, zeros where they are wider than what is asked."""
    place = tl.program_id(0)
    base = logits_ptr + place.to(tl.int64) * stride
    bias = bias_ptr + (place // room) * V
    there = tl.load(there_ptr + place).to(tl.int32)
    grad = tl.load(grad_ptr + place) * there
    log_total = tl.load(total_ptr + place)
    asked = tl.load(asked_ptr + place)
    for start in range(0, stride, BLOCK):
        column = start + tl.arange(0, BLOCK)
        # Where nothing was asked, whatever stands there is not even read.
        inside = column < V * there
        value = tl.load(base + column, mask=inside, other=0.0).to(tl.float32)
        value += tl.load(bias + column, mask=inside, other=0.0)
        share = tl.exp(value - log_total) - smoothing / V - tl.where(column == asked, 1.0 - smoothing, 0.0)
        tl.store(base + column, tl.where(inside, share * grad, 0.0), mask=column < stride)
