"""CUDA kernels in Triton for many short sentences of many members, a shape that no library's kernels are made for.

Each kernel reads its inputs once and writes its outputs once. It computes in float32, whatever the tensors hold. The
backward pass computes dropout masks again, as `embinit.models.dropout` defines them. `operations` calls the kernels.
"""
# Triton reads annotations and argument names, so both follow its customs: pointers end in _ptr, constants are capitals.
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def _mixed(value):
    value = (value ^ (value >> 16)) * 0x85EBCA6B
    value = (value ^ (value >> 13)) * 0xC2B2AE35
    return value ^ (value >> 16)


@triton.jit
def hashed_row(own, row):
    return _mixed(own.to(tl.uint32, bitcast=True) + row.to(tl.uint32) * 0x9E3779B1).to(tl.int32, bitcast=True)


@triton.jit
def hashed_column(column):
    return (_mixed(column.to(tl.uint32) + 0x7F4A7C15) | 1).to(tl.int32, bitcast=True)


@triton.jit
def is_kept(row_hash, column_hash, threshold):
    number = row_hash * column_hash
    number = (number ^ (number >> 15)) * 0x2C1B3C6D
    return number >= threshold


@triton.jit
def dropping(own_ptr, member):
    """Return what a member drops at a place: its number, the hash below which it drops, and the factor of the rest."""
    at = own_ptr + 3 * member
    return tl.load(at), tl.load(at + 1), tl.load(at + 2).to(tl.float32, bitcast=True)


# ---------------------------------------------------------------- embedding


@triton.jit
def embed_forward(
    out_ptr, table_ptr, ids_ptr, positions_ptr, added_ptr, own_ptr, room, rows, scale,
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
        own, threshold, keep = dropping(own_ptr, member)
        row = hashed_row(own, place - member * room)
        value = tl.where(is_kept(row, hashed_column(column), threshold), value * keep, 0.0)
    tl.store(out_ptr + place.to(tl.int64) * D + column, value, mask=there)


@triton.jit
def embed_backward(
    table_grad_ptr, grad_ptr, ids_ptr, real_ptr, own_ptr, room, rows, scale,
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
        own, threshold, keep = dropping(own_ptr, member)
        row = hashed_row(own, place - member * room)
        value = tl.where(is_kept(row, hashed_column(column), threshold), value * keep, 0.0)
    token = tl.load(ids_ptr + place) + member.to(tl.int64) * rows
    tl.atomic_add(table_grad_ptr + token * D + column, value, mask=there)


# ---------------------------------------------------------------- dropout + residual + norm


@triton.jit
def norm_forward(
    out_ptr, mean_ptr, rstd_ptr, values_ptr, change_ptr, change_bias_ptr, weight_ptr, bias_ptr, own_ptr, room,
    epsilon, D: tl.constexpr, BLOCK: tl.constexpr, CHANGE: tl.constexpr, DROP: tl.constexpr,
    RMS: tl.constexpr,
):  # fmt: skip
    """Normalize rows. RMS divides by the root mean square; otherwise the mean is subtracted first."""
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
            own, threshold, keep = dropping(own_ptr, member)
            row = hashed_row(own, place - member * room)
            change = tl.where(is_kept(row, hashed_column(column), threshold), change * keep, 0.0)
        value += change
    mean = tl.sum(value, axis=0) / D
    if RMS:
        mean = mean * 0.0
    centered = tl.where(there, value - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centered * centered, axis=0) / D + epsilon)
    weight = tl.load(weight_ptr + member * D + column, mask=there, other=0.0)
    bias = tl.load(bias_ptr + member * D + column, mask=there, other=0.0)
    tl.store(out_ptr + at, centered * rstd * weight + bias, mask=there)
    tl.store(mean_ptr + place, mean)
    tl.store(rstd_ptr + place, rstd)


@triton.jit
def norm_backward(
    values_grad_ptr, change_grad_ptr, weight_grad_ptr, bias_grad_ptr, change_bias_grad_ptr, grad_ptr, values_ptr,
    change_ptr, change_bias_ptr, weight_ptr, mean_ptr, rstd_ptr, own_ptr, room,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, CHANGE: tl.constexpr, DROP: tl.constexpr,
    RMS: tl.constexpr,
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
        own, threshold, keep = dropping(own_ptr, member)
        column_hash = hashed_column(column)
    for i in range(ROWS):
        local = block * ROWS + i
        inside = column < tl.where(local < room, D, 0)
        place = (member * room + local).to(tl.int64)
        at = place * D + column
        value = tl.load(values_ptr + at, mask=inside, other=0.0).to(tl.float32)
        if CHANGE:
            change = tl.load(change_ptr + at, mask=inside, other=0.0).to(tl.float32) + change_bias
            if DROP:
                kept = is_kept(hashed_row(own, local), column_hash, threshold)
                change = tl.where(kept, change * keep, 0.0)
            value += change
        safe = member * room + tl.minimum(local, room - 1)
        mean, rstd = tl.load(mean_ptr + safe), tl.load(rstd_ptr + safe)
        grad = tl.load(grad_ptr + at, mask=inside, other=0.0).to(tl.float32)
        normal = tl.where(inside, (value - mean) * rstd, 0.0)
        weight_sum += grad * normal
        bias_sum += grad
        grad = grad * weight
        centered = grad
        if not RMS:
            centered = grad - tl.sum(grad, axis=0) / D
        grad = rstd * (centered - normal * (tl.sum(grad * normal, axis=0) / D))
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
    out_ptr, values_ptr, bias_ptr, own_ptr, room,
    D: tl.constexpr, BLOCK: tl.constexpr, DROP: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0)
    member = place // room
    column = tl.arange(0, BLOCK)
    there = column < D
    at = place.to(tl.int64) * D + column
    value = tl.load(values_ptr + at, mask=there, other=0.0).to(tl.float32)
    value += tl.load(bias_ptr + member * D + column, mask=there, other=0.0)
    # `maximum` would turn NaN into a number.
    value = tl.where(value < 0, 0.0, value)
    if DROP:
        own, threshold, keep = dropping(own_ptr, member)
        row = hashed_row(own, place - member * room)
        value = tl.where(is_kept(row, hashed_column(column), threshold), value * keep, 0.0)
    tl.store(out_ptr + at, value, mask=there)


@triton.jit
def relu_backward(
    values_grad_ptr, bias_grad_ptr, grad_ptr, out_ptr, own_ptr, room,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(0)
    block = tl.program_id(1)
    column = tl.arange(0, BLOCK)
    bias_sum = tl.zeros([BLOCK], dtype=tl.float32)
    _, _, keep = dropping(own_ptr, member)
    for i in range(ROWS):
        local = block * ROWS + i
        inside = column < tl.where(local < room, D, 0)
        at = (member * room + local).to(tl.int64) * D + column
        # An output of zero was negative or dropped. Neither has a gradient.
        out = tl.load(out_ptr + at, mask=inside, other=0.0)
        grad = tl.load(grad_ptr + at, mask=inside, other=0.0).to(tl.float32)
        grad = tl.where(out == 0, 0.0, grad * keep)
        tl.store(values_grad_ptr + at, grad, mask=inside)
        bias_sum += grad
    tl.atomic_add(bias_grad_ptr + member * D + column, bias_sum, mask=column < D)


# ---------------------------------------------------------------- rotary positions


@triton.jit
def turn(
    out_ptr, bias_grad_ptr, values_ptr, bias_ptr, cos_ptr, sin_ptr, positions_ptr, room,
    D: tl.constexpr, HEAD: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, BACK: tl.constexpr,
):  # fmt: skip
    """Add the bias to concatenated queries, keys and values, and rotate queries and keys by their position.

    BACK rotates gradients the other way, and sums the gradient of the bias.
    """
    member = tl.program_id(0)
    block = tl.program_id(1)
    column = tl.arange(0, BLOCK)
    there = column < 3 * D
    turned = column < 2 * D
    pair = column % HEAD // 2
    sign = tl.where(column % 2 == 0, -1.0, 1.0)
    if BACK:
        sign = -sign
    bias_sum = tl.zeros([BLOCK], dtype=tl.float32)
    for i in range(ROWS):
        local = block * ROWS + i
        inside = column < tl.where(local < room, 3 * D, 0)
        place = member * room + tl.minimum(local, room - 1)
        at = place.to(tl.int64) * 3 * D
        value = tl.load(values_ptr + at + column, mask=inside, other=0.0).to(tl.float32)
        other = tl.load(values_ptr + at + (column ^ 1), mask=inside & turned, other=0.0).to(tl.float32)
        if not BACK:
            bias = bias_ptr + member * 3 * D
            value += tl.load(bias + column, mask=inside, other=0.0)
            other += tl.load(bias + (column ^ 1), mask=inside & turned, other=0.0)
        angle = tl.load(positions_ptr + place) * (HEAD // 2) + pair
        cos = tl.load(cos_ptr + angle, mask=inside & turned, other=1.0)
        sin = tl.load(sin_ptr + angle, mask=inside & turned, other=0.0)
        value = value * cos + sign * other * sin
        tl.store(out_ptr + at + column, value, mask=inside)
        bias_sum += value
    if BACK:
        tl.atomic_add(bias_grad_ptr + member * 3 * D + column, bias_sum, mask=there)


# ---------------------------------------------------------------- cross-entropy


@triton.jit
def entropy_forward(
    loss_ptr, total_ptr, logits_ptr, bias_ptr, asked_ptr, there_ptr, smoothing_ptr, room, stride,
    V: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0)
    if tl.load(there_ptr + place) == 0:
        tl.store(loss_ptr + place, 0.0)
        tl.store(total_ptr + place, 0.0)
        return
    base = logits_ptr + place.to(tl.int64) * stride
    bias = bias_ptr + (place // room) * V
    smoothing = tl.load(smoothing_ptr + place // room)
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
    logits_ptr, bias_ptr, total_ptr, asked_ptr, there_ptr, grad_ptr, smoothing_ptr, room, stride,
    V: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradient over the logits, and zeros into their padding columns."""
    place = tl.program_id(0)
    base = logits_ptr + place.to(tl.int64) * stride
    bias = bias_ptr + (place // room) * V
    smoothing = tl.load(smoothing_ptr + place // room)
    there = tl.load(there_ptr + place).to(tl.int32)
    grad = tl.load(grad_ptr + place) * there
    log_total = tl.load(total_ptr + place)
    asked = tl.load(asked_ptr + place)
    for start in range(0, stride, BLOCK):
        column = start + tl.arange(0, BLOCK)
        # Logits of places without a prediction are not read.
        inside = column < V * there
        value = tl.load(base + column, mask=inside, other=0.0).to(tl.float32)
        value += tl.load(bias + column, mask=inside, other=0.0)
        share = tl.exp(value - log_total) - smoothing / V - tl.where(column == asked, 1.0 - smoothing, 0.0)
        tl.store(base + column, tl.where(inside, share * grad, 0.0), mask=column < stride)


# ---------------------------------------------------------------- Adam


@triton.jit
def adam(
    weight_ptr, grad_ptr, first_ptr, second_ptr, step_ptr, rate_ptr, count, beta1, beta2, log_beta1, log_beta2, epsilon,
    WIDTH: tl.constexpr, SHARE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Update all numbers of a weight by one step of Adam; `step_ptr` holds the number of the step, from 1.

    `rate_ptr` has one rate for each row of WIDTH numbers; WIDTH = 0: one rate for all. `step_ptr` has one number for each
    member of SHARE numbers; SHARE = 0: one for all.
    """
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = at < count
    grad = tl.load(grad_ptr + at, mask=there, other=0.0)
    first = tl.load(first_ptr + at, mask=there, other=0.0)
    second = tl.load(second_ptr + at, mask=there, other=0.0)
    weight = tl.load(weight_ptr + at, mask=there, other=0.0)
    if SHARE == 0:  # noqa: SIM108
        step = tl.load(step_ptr)
    else:
        step = tl.load(step_ptr + at // SHARE, mask=there, other=1.0)
    first = beta1 * first + (1 - beta1) * grad
    second = beta2 * second + (1 - beta2) * grad * grad
    if WIDTH == 0:  # noqa: SIM108
        rate = tl.load(rate_ptr)
    else:
        rate = tl.load(rate_ptr + at // WIDTH, mask=there, other=0.0)
    size = rate / (1 - tl.exp(step * log_beta1))
    root = tl.sqrt(second) / tl.sqrt(1 - tl.exp(step * log_beta2)) + epsilon
    tl.store(first_ptr + at, first, mask=there)
    tl.store(second_ptr + at, second, mask=there)
    tl.store(weight_ptr + at, weight - size * first / root, mask=there)
