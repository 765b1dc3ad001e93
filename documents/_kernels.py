# mypy: ignore-errors
"""The one kernel of this folder: copying a text without its edited stretches."""

# ruff: noqa: ARG001 - intrinsics have fixed arguments

from __future__ import annotations

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


@intrinsic
def _copy(typingctx, out, to, data, at, size):
    """Copy `size` bytes by memcpy; a loop of Numba's takes 40 times as long, its slices 10."""

    def generate(context, builder, signature, args):
        into = make_array(signature.args[0])(context, builder, args[0])
        source = make_array(signature.args[2])(context, builder, args[2])
        where = builder.gep(into.data, [args[1]]), builder.gep(source.data, [args[3]])
        cgutils.raw_memcpy(builder, *where, args[4], 1)
        return context.get_dummy_value()

    return types.void(out, types.intp, data, types.intp, types.intp), generate


@njit(cache=True, nogil=True)
def splice(data, read, end, places, fills, out):
    """Copy data[read:end] into `out` without the edited stretches, and what comes in for each.

    `places`: starts in `data` and lengths, int64[n], and which fill comes in, uint8[n]. `fills`:
    all of them one after another, uint8, and int64[fills + 1] offsets into them. False, with `out`
    unfinished, where starts are not ascending and disjoint inside the text, or `out` is too small.
    """
    starts, lengths, which = places
    text, bounds = fills
    write = 0
    for i in range(len(starts)):
        start, size = starts[i], starts[i] - read
        first, fill = bounds[which[i]], bounds[which[i] + 1] - bounds[which[i]]
        if size < 0 or lengths[i] < 0 or start > end or write + size + fill > len(out):
            return False
        _copy(out, write, data, read, size)
        _copy(out, write + size, text, first, fill)
        write += size + fill
        read = start + lengths[i]
    if read > end or write + end - read != len(out):
        return False
    _copy(out, write, data, read, end - read)
    return True
