"""From rows to elements: the values of one class profile become one element, in an order without names.

Two values whose class counts are proportional belong to the same group in some best grouping (see "Grouping
values" in the mathematics), so they are made one element before any search. All values of a single class are
one element, which settles columns of free text: ten million distinct strings are as many elements as classes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
KeyArray = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Elements:
    """Class counts of the elements, and where each value went.

    Element e holds `cnt[i]` rows of class `cls[i]` for i in `ptr[e] .. ptr[e+1] - 1`. Elements come with
    the most frequent first; their order and that of the classes depend on counts, not on names, up to ties.
    """

    ptr: IntArray
    cls: IntArray
    cnt: IntArray
    of_value: IntArray  # element of each value code, -1 for a value without rows
    n_values: int  # values with rows
    class_rank: IntArray  # column of `cls` that stands for each class

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.class_rank.size

    def __len__(self) -> int:
        return self.ptr.size - 1

    def table(self, labels: IntArray, n_groups: int) -> IntArray:
        """Return the groups x classes counts of a grouping; elements of group -1 are left out."""
        keys = np.repeat(labels, np.diff(self.ptr)) * self.n_classes + self.cls
        within = keys >= 0
        sums = np.bincount(keys[within], weights=self.cnt[within], minlength=n_groups * self.n_classes)
        return sums.astype(np.int64).reshape(n_groups, self.n_classes)


def _mix(keys: KeyArray) -> KeyArray:
    """Scramble 64-bit numbers (the finaliser of splitmix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def _row_sums(rows: npt.NDArray[np.integer], weights: IntArray | None, length: int) -> IntArray:
    # float64 sums of whole numbers are exact up to 2^53 rows
    return np.bincount(rows, weights=weights, minlength=length).astype(np.int64)


def elements_of_rows(
    codes: npt.NDArray[np.int32],
    n_values: int,
    classes: npt.NDArray[np.int32],
    n_classes: int,
    weights: IntArray | None,
) -> Elements:
    """Count the rows of a column of codes and gather its values into elements."""
    if weights is not None:
        kept = weights > 0
        if not kept.all():
            codes, classes, weights = codes[kept], classes[kept], weights[kept]
    if n_values * n_classes <= max(codes.size, 1 << 16):
        keys = codes.astype(np.int64) * n_classes + classes
        return elements_of_counts(_row_sums(keys, weights, n_values * n_classes).reshape(n_values, n_classes))
    # Many values or classes: a table would be mostly zeros. Values of one class alone need no counting.
    one_class = np.full(n_values, -1, dtype=np.int32)
    one_class[codes] = classes
    mixed = np.zeros(n_values, dtype=np.bool_)
    mixed[codes[one_class[codes] != classes]] = True
    of_mixed = mixed[codes]
    pure_rows = _row_sums(classes[~of_mixed], None if weights is None else weights[~of_mixed], n_classes)
    codes, classes = codes[of_mixed], classes[of_mixed]
    weights = None if weights is None else weights[of_mixed]
    one_class[mixed] = -1
    keys = codes.astype(np.int64) * n_classes + classes
    if weights is None:
        keys, cnt = np.unique(keys, return_counts=True)
    else:
        keys, inverse = np.unique(keys, return_inverse=True)
        cnt = _row_sums(inverse, weights, keys.size)
    return _gather(one_class, pure_rows, keys // n_classes, keys % n_classes, cnt.astype(np.int64))


def elements_of_pairs(
    codes: npt.NDArray[np.integer], n_values: int, slots: IntArray, n_slots: int
) -> Elements:
    """Count the rows by value and slot, one element per value, in the order of the values.

    For prices that depend on the number of values of a group: there, values of one profile are not one.
    """
    keys, cnt = np.unique(codes.astype(np.int64) * n_slots + slots, return_counts=True)
    return _one_per_value(keys // n_slots, keys % n_slots, cnt, n_values, n_slots)


def elements_of_table(counts: IntArray) -> Elements:
    """Count as `elements_of_pairs`, from a table of values x slots."""
    values, slots = np.nonzero(counts)
    return _one_per_value(values, slots, counts[values, slots], *counts.shape)


def _one_per_value(values: IntArray, slots: IntArray, cnt: IntArray, n_values: int, n_slots: int) -> Elements:
    ptr = np.zeros(n_values + 1, np.int64)
    np.cumsum(np.bincount(values, minlength=n_values), out=ptr[1:])
    return Elements(ptr, slots, cnt, np.arange(n_values), n_values, np.arange(n_slots))


def elements_of_counts(counts: IntArray) -> Elements:
    """Gather the rows of a table of values x classes into elements."""
    one_class = np.full(counts.shape[0], -1, dtype=np.int32)
    present = counts > 0
    n_present = np.count_nonzero(present, axis=1)
    pure = n_present == 1
    one_class[pure] = np.argmax(present[pure], axis=1)
    pure_rows = counts[pure].sum(axis=0)
    values, cls = np.nonzero(present & ~pure[:, None])
    return _gather(one_class, pure_rows, values, cls, counts[values, cls])


def _gather(
    one_class: npt.NDArray[np.int32], pure_rows: IntArray, values: IntArray, cls: IntArray, cnt: IntArray
) -> Elements:
    """Make elements of the values of one class, and of the entries (sorted by value) of all others."""
    n_classes = pure_rows.size
    of_value = np.full(one_class.size, -1, dtype=np.int64)
    pure_classes = np.flatnonzero(pure_rows)
    pure = one_class >= 0
    position = np.zeros(n_classes, dtype=np.int64)
    position[pure_classes] = np.arange(pure_classes.size)
    of_value[pure] = position[one_class[pure]]
    n_values = int(np.count_nonzero(pure))
    ptr, entry_cls, entry_cnt = np.arange(pure_classes.size + 1), pure_classes, pure_rows[pure_classes]
    if values.size:
        starts = np.flatnonzero(np.diff(values, prepend=-1))
        ray, ray_starts, ray_sizes, cnt_of_ray = _rays(starts, cls, cnt)
        of_value[values[starts]] = pure_classes.size + ray
        n_values += starts.size
        offsets = np.cumsum(ray_sizes)
        at = np.repeat(ray_starts - (offsets - ray_sizes), ray_sizes) + np.arange(offsets[-1])
        ptr = np.concatenate([ptr, pure_classes.size + offsets])
        entry_cls = np.concatenate([entry_cls, cls[at]])
        entry_cnt = np.concatenate([entry_cnt, cnt_of_ray])
    names = np.arange(n_classes)
    return _in_canonical_order(
        Elements(ptr.astype(np.int64), entry_cls.astype(np.int64), entry_cnt, of_value, n_values, names)
    )


def _rays(starts: IntArray, cls: IntArray, cnt: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Find the values with proportional counts.

    Returns the ray of each value; for each ray where the entries of its first value start and how many they
    are; and the counts of all rays, entry by entry.
    """
    sizes = np.diff(starts, append=cls.size)
    unit = np.gcd.reduceat(cnt, starts)
    reduced = cnt // np.repeat(unit, sizes)
    salt = 0
    while True:
        names = _mix(cls.astype(np.uint64) + np.uint64((0x9E3779B97F4A7C15 * (salt + 1)) % 2**64))
        keys = np.add.reduceat(_mix(names ^ _mix(reduced.astype(np.uint64))), starts)
        _, first, ray = np.unique(keys, return_index=True, return_inverse=True)
        # equal keys are all but certain to mean equal profiles: make it certain
        if (sizes == sizes[first[ray]]).all():
            twin = np.arange(cls.size) + np.repeat(starts[first[ray]] - starts, sizes)
            if (cls == cls[twin]).all() and (reduced == reduced[twin]).all():
                break
        salt += 1
    units = np.bincount(ray, weights=unit).astype(np.int64)
    ray_starts, ray_sizes = starts[first], sizes[first]
    offsets = np.cumsum(ray_sizes)
    at = np.repeat(ray_starts - (offsets - ray_sizes), ray_sizes) + np.arange(offsets[-1])
    return ray, ray_starts, ray_sizes, reduced[at] * np.repeat(units, ray_sizes)


def _in_canonical_order(elements: Elements) -> Elements:
    """Renumber elements and classes by keys made of counts alone: names and row order do not matter."""
    ptr, cls, cnt = elements.ptr, elements.cls, elements.cnt
    sizes = np.diff(ptr)
    starts = ptr[:-1]
    element = np.repeat(np.arange(sizes.size), sizes)
    scrambled = _mix(cnt.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    # a profile without class names, then a class by the profiles it meets, then a profile by its classes
    nameless = np.add.reduceat(scrambled, starts)
    class_keys = np.zeros(elements.n_classes, dtype=np.uint64)
    np.add.at(class_keys, cls, _mix(nameless[element] ^ _mix(scrambled)))
    keys = np.add.reduceat(_mix(_mix(class_keys)[cls] ^ scrambled), starts)
    class_rank = np.empty(elements.n_classes, dtype=np.int64)
    class_rank[np.argsort(class_keys, kind="stable")] = np.arange(elements.n_classes)
    order = np.lexsort((keys, -np.add.reduceat(cnt, starts)))
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    entries = np.lexsort((class_rank[cls], rank[element]))
    of_value = np.where(elements.of_value >= 0, rank[elements.of_value], -1)
    return Elements(
        np.concatenate([[0], np.cumsum(sizes[order])]),
        class_rank[cls[entries]],
        cnt[entries],
        of_value,
        elements.n_values,
        class_rank,
    )
