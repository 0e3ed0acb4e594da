#!/usr/bin/env python3
"""A twin of the compaction unit in plain Python, and a generator of input slots, for developers.

Written from docs/formats/hw-stream.md and the drop rules, not from the RTL, so that both can be compared:

    twin.py make SEED OUT.slot [small|tags|large|long|bad|hostile|corners]
    twin.py rate WAYS VALUE_BYTES SET_BYTES OUT.slot [KEY_BYTES]
    twin.py run IN.slot OUT.slot
    twin.py compare A.slot B.slot
"""
import random
import struct
import sys

MASK = (1 << 64) - 1
SIDE = 16
OK, KIND, KEY_LONG, VALUE_LONG, SEQ_HIGH, DELETE_VALUE = range(6)
STRUCTURE, COUNT, ORDER, OUT_FULL, LINK, HEADER = 16, 17, 18, 19, 32, 33
ALL20 = (1 << 20) - 1


class Fault(Exception):
    def __init__(self, code):
        super().__init__(code)
        self.code = code


# ---- sums ----

def f64(data, mod=MASK):
    """A and B over whole beats."""
    assert len(data) % 64 == 0
    a = b = 0
    for (w,) in struct.iter_unpack("<Q", data):
        a += w
        b += a
    return a % mod, b % mod


def fold(a, b):
    p = (a & MASK) * (b & MASK)
    return (p ^ p >> 64) & MASK


P32_1 = 0x9E3779B1
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")


def u64(b, at):
    return int.from_bytes(b[at:at + 8], "little")


def avalanche(h):
    h ^= h >> 37
    h = h * P64_3 & MASK
    return h ^ h >> 32


def mix(key, at, secret):
    return fold(u64(key, at) ^ u64(SECRET, secret), u64(key, at + 8) ^ u64(SECRET, secret + 8))


def xxph3(key):
    n = len(key)
    s0, s8 = u64(SECRET, 0), u64(SECRET, 8)
    if n == 0:
        return fold(s0, P64_2)
    if n < 4:
        three = key[0] | key[n // 2] << 8 | key[n - 1] << 16 | n << 24
        return avalanche((three ^ (s0 & 0xFFFFFFFF)) * P64_1 & MASK)
    if n <= 8:
        both = int.from_bytes(key[:4], "little") | int.from_bytes(key[-4:], "little") << 32
        keyed = both ^ s0
        mixed = (n + (keyed ^ keyed >> 51) * P32_1) & MASK
        return avalanche((mixed ^ mixed >> 47) * P64_2 & MASK)
    if n <= 16:
        lo, hi = u64(key, 0) ^ s0, u64(key, n - 8) ^ s8
        return avalanche((n + lo + hi + fold(lo, hi)) & MASK)
    acc = n * P64_1 & MASK
    if n <= 128:
        at = 0
        while at == 0 or n > 2 * at:
            acc += mix(key, at, 2 * at) + mix(key, n - at - 16, 2 * at + 16)
            at += 16
        return avalanche(acc & MASK)
    assert n <= 240
    for lane in range(8):
        acc += mix(key, 16 * lane, 16 * lane)
    acc = avalanche(acc & MASK)
    for lane in range(8, n // 16):
        acc += mix(key, 16 * lane, 16 * (lane - 8) + 3)
    return avalanche((acc + mix(key, n - 16, 119)) & MASK)


K0, K1 = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB


def turn(state, a, b):
    p = ((state ^ u64(a, 0)) & MASK) * (K0 ^ u64(a, 8))
    return fold((p & MASK) ^ u64(b, 0), (p >> 64) ^ u64(b, 8))


def content(key_hash, v):
    n = len(v)
    state = key_hash ^ n * K1 & MASK
    if n < 16:
        a = b = 0
        if n >= 8:
            a, b = u64(v, 0), u64(v, n - 8)
        elif n >= 4:
            a, b = int.from_bytes(v[:4], "little"), int.from_bytes(v[-4:], "little")
        else:
            a = int.from_bytes(v, "big")
        return fold(state ^ a, K0 ^ b)
    for half in (16, 32, 64):
        if n <= 2 * half:
            for i in range(0, half, 16):
                state = turn(state, v[i:i + 16], v[n - half + i:n - half + i + 16])
            return state
    rest = v
    if n >= 256:
        lanes = [state, state ^ K0, state ^ K1, state ^ K0 ^ K1]
        for s in range(0, n - 127, 128):
            for i in range(4):
                c = v[s + 32 * i:s + 32 * i + 32]
                lanes[i] = turn(lanes[i], c[:16], c[16:])
        state = fold(lanes[0] ^ K0, lanes[1]) ^ fold(lanes[2], lanes[3] ^ K1)
        rest = v[n // 128 * 128:]
    for i in range(0, len(rest) - 31, 32):
        state = turn(state, rest[i:i + 16], rest[i + 16:i + 32])
    return turn(state, v[-32:-16], v[-16:])


def weigh(c, tag):
    return fold(c ^ tag, K1)


# ---- blocks ----

def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def encode(entries, interval=16):
    """Entry area of (internal key, value) pairs."""
    out, before = bytearray(), b""
    for i, (key, value) in enumerate(entries):
        shared = 0
        if i % interval:
            while shared < min(len(key), len(before)) and key[shared] == before[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value))
        out += key[shared:] + value
        before = key
    return bytes(out)


def parse(area, skip, take, expected):
    """Entries of an area that are taken, as (internal key, value)."""
    at, before, done = 0, b"", 0
    stop = None if take == ALL20 else skip + take
    while at < len(area) and done != stop:
        lengths = []
        for most, code in ((2, KEY_LONG), (2, KEY_LONG), (4, VALUE_LONG)):
            n = 0
            for i in range(most + 1):
                if i == most:
                    raise Fault(code)
                if at >= len(area):
                    raise Fault(STRUCTURE)
                n |= (area[at] & 0x7F) << 7 * i
                at += 1
                if area[at - 1] < 0x80:
                    break
            lengths.append(n)
        shared, unshared, vlen = lengths
        if shared > len(before) or shared + unshared < 8 or at + unshared + vlen > len(area):
            raise Fault(STRUCTURE)
        if shared + unshared > 248:
            raise Fault(KEY_LONG)
        before = before[:shared] + area[at:at + unshared]
        at += unshared
        if done >= skip:
            yield before, area[at:at + vlen]
        at += vlen
        done += 1
    if stop is not None and done != stop or stop is None and done < skip:
        raise Fault(COUNT)
    if stop is None and expected and expected != done:
        raise Fault(COUNT)


def merge(heads):
    """Heads of the ways by R7. `heads` are iterators of (way, key, tag, value)."""
    import heapq
    queue = []
    for h in heads:
        for way, key, tag, value in h:
            heapq.heappush(queue, (key, MASK - tag, way, value, h))
            break
    while queue:
        key, ntag, way, value, h = heapq.heappop(queue)
        yield way, key, MASK - ntag, value
        for entry in h:
            heapq.heappush(queue, (entry[1], MASK - entry[2], entry[0], entry[3], h))
            break


# ---- the unit ----

def command_of(slot):
    """Bytes of the output slot and tag, as the header says."""
    return struct.unpack_from("<I", slot, 36)[0], struct.unpack_from("<Q", slot, 8)[0]


class Unit:
    def __init__(self, slot, ways_most=16, command=None):
        """`command`: bytes of the output slot, and tag; by default as the header says."""
        self.slot = slot
        self.ways_most = ways_most
        self.command = command or command_of(slot)

    def run(self):
        self.out_bytes, self.tag = self.command
        self.out = bytearray(b"\xa5" * self.out_bytes)
        self.records = b""
        self.blocks = self.used = 0
        self.count = dict.fromkeys(
            "bytes_in sum_in hidden elided sum_dropped zeroed sum_zeroed replayed".split(), 0)
        self.entries_in = [0] * 16
        self.code = OK
        try:
            self.header()
            self.merged()
        except Fault as f:
            self.code = f.code
        self.status()
        return bytes(self.out)

    def header(self):
        s = self.slot
        (magic, version, ways, snaps, _, lg, switches, self.interval, self.s, self.mask, _,
         n, in_bytes, out_bytes, _, a, b) = struct.unpack_from("<4sHBBQBBHIHHIIIQQQ", s, 0)
        end = 512 + (32 * n + 63) // 64 * 64
        if magic != b"LSET" or version != 1 or ways > self.ways_most or snaps > 16 or not 6 <= lg <= 16 \
                or self.interval == 0 or self.s >= 1 << lg or in_bytes != len(s) or end > len(s) \
                or (out_bytes, u64(s, 8)) != self.command:
            raise Fault(HEADER)
        if f64(s[:48] + bytes(16) + s[64:end]) != (a, b):
            raise Fault(HEADER)
        self.lg, self.drop_tombstones, self.zero_seqs = lg, switches & 1, switches >> 1 & 1
        self.snapshots = struct.unpack_from("<16Q", s, 64)
        self.rows = [struct.unpack_from("<IIHB5x", s, 192 + 16 * i) for i in range(17)]
        # A unit does not look at rows of ways that it has not.
        self.rows = [row if i < self.ways_most or i == SIDE else (0, 0, i, 0) for i, row in enumerate(self.rows)]
        if any(first + count > n for first, count, _, _ in self.rows) or self.rows[SIDE][3] != 1:
            raise Fault(HEADER)
        self.tables_end = 512 + 32 * n

    def way(self, way):
        first, count, _, _ = self.rows[way]
        for d in range(first, first + count):
            at, size, counts, a, b = struct.unpack_from("<IIQQQ", self.slot, 512 + 32 * d)
            padded = (size + 63) // 64 * 64
            if at % 64 or size == 0 or at < self.tables_end or at + padded > len(self.slot):
                raise Fault(HEADER)
            if f64(self.slot[at:at + padded]) != (a, b):
                raise Fault(LINK)
            skip, take, expected = counts & ALL20, counts >> 20 & ALL20, counts >> 40 & ALL20
            markers = counts >> 61 & 1
            for key, value in parse(self.slot[at:at + size], skip, take, expected):
                user, tag = key[:-8], u64(key, len(key) - 8)
                if way == SIDE:
                    if (tag >> 32 == 0xFFFFFFFF) != markers or markers and value:
                        raise Fault(STRUCTURE)
                elif tag & 0xFE:
                    raise Fault(KIND)
                elif tag >> 32 == 0xFFFFFFFF:
                    raise Fault(SEQ_HIGH)
                elif not tag & 1 and value:
                    raise Fault(DELETE_VALUE)
                yield way, user, tag, value

    def merged(self):
        self.block = bytearray()        # the open block's entries
        self.restarts = []
        self.entries = 0
        self.begun = self.left_cell = self.split = False
        self.before = b""               # the internal key written last
        self.s_low = self.s
        last = None                     # the entry before: way, key, tag
        hider = None                    # key and stripe of the data entry before
        held = []                       # deletes that wait: tag, free, weight
        others = False

        def end_key():
            for tag, free, weight in held:
                if free:
                    self.count["elided"] += 1
                    self.count["sum_dropped"] += weight
                else:
                    self.put(held_key, tag, b"")
            held.clear()

        held_key = None
        for way, key, tag, value in merge([self.way(w) for w in range(17)]):
            if last and (key < last[1] or key == last[1]
                         and not (tag < last[2] or tag == last[2] and way > last[0])):
                raise Fault(ORDER)
            marker = way == SIDE and tag >> 32 == 0xFFFFFFFF
            if not last or key != last[1] or way == SIDE:
                end_key()
            last = way, key, tag
            if marker:
                hider, others = None, True
                self.mask = tag & 0xFFFF
                self.split |= bool(tag >> 16 & 1)
                continue
            if way == SIDE:
                if others:
                    raise Fault(ORDER)
                hider = None
                self.count["replayed"] += 1
                self.put(key, tag, value)
                continue
            others = True
            seq, is_value = tag >> 8, tag & 1
            c = content(xxph3(key), value)
            weight = weigh(c, tag)
            self.entries_in[way] += 1
            self.count["bytes_in"] += len(key) + 8 + len(value)
            self.count["sum_in"] += weight
            stripe = sum(s < seq for s in self.snapshots)
            hidden = hider == (key, stripe)
            hider = key, stripe
            if hidden:
                self.count["hidden"] += 1
                self.count["sum_dropped"] += weight
                continue
            free = bool(self.drop_tombstones) and not self.mask >> way & 1
            if not is_value:
                if free or held:
                    held.append((tag, free, weight))
                    held_key = key
                else:
                    self.put(key, tag, b"")
                continue
            for t, _, _ in held:
                self.put(held_key, t, b"")
            held.clear()
            if seq and self.zero_seqs and stripe == 0 and free:
                self.count["zeroed"] += 1
                self.count["sum_zeroed"] += weigh(c, tag & 0xFF) - weight
                tag &= 0xFF
            self.put(key, tag, value)
        end_key()
        self.close(True)

    def put(self, key, tag, value):
        if not self.begun or self.left_cell or self.split:
            if self.begun:
                self.close(False)
            self.begun, self.split = True, False
            self.block, self.restarts, self.entries = bytearray(), [], 0
            self.s_low = self.s
        internal = key + struct.pack("<Q", tag)
        shared = 0
        if self.entries % self.interval == 0:
            if len(self.restarts) == 1024:
                raise Fault(OUT_FULL)
            self.restarts.append(len(self.block))
        else:
            while shared < min(len(internal), len(self.before)) and internal[shared] == self.before[shared]:
                shared += 1
        self.block += varint(shared) + varint(len(internal) - shared) + varint(len(value))
        self.block += internal[shared:] + value
        self.entries += 1
        self.before = internal
        grown = self.s + len(key) + 8 + len(value) + 4
        self.left_cell = grown >> self.lg != 0
        self.s = grown & ((1 << self.lg) - 1)

    def close(self, is_open):
        payload, restarts = bytes(self.block), len(self.restarts)
        if not is_open:
            payload += b"".join(struct.pack("<I", r) for r in self.restarts) + struct.pack("<I", restarts)
        padded = payload + bytes(-len(payload) % 64)
        if self.used + len(padded) > self.out_bytes - 384 - 64 * self.blocks:
            raise Fault(OUT_FULL)
        self.out[self.used:self.used + len(padded)] = padded
        some = self.begun
        record = struct.pack(
            "<4sIIIQQQIIIIQ", b"LOPN" if is_open else b"LBLK", self.used, len(payload), self.entries, *f64(padded),
            self.tag, self.blocks, restarts, self.s_low if some else self.s,
            int(is_open and some and self.left_cell), 0)
        at = self.out_bytes - 320 if is_open else self.out_bytes - 384 - 64 * self.blocks
        self.out[at:at + 64] = record
        self.records += record
        self.used += len(padded)
        if not is_open:
            self.blocks += 1

    def status(self):
        c = {k: v & MASK for k, v in self.count.items()}
        head = struct.pack(
            "<4sHBBQIIIIQQQQQQQQ32x16I", b"LSTA", 1, self.code, 255, self.tag, MASK >> 32, MASK >> 32,
            0 if self.code else self.blocks,
            self.used, c["bytes_in"], c["sum_in"], c["hidden"], c["elided"], c["sum_dropped"], c["zeroed"],
            c["sum_zeroed"], c["replayed"], *self.entries_in)
        records = b"" if self.code else self.records
        self.out[-256:] = head + struct.pack("<QQ48x", *f64(records + head))


def compare(a, b):
    """Differences between two output slots that mean something."""
    if len(a) != len(b):
        return "sizes differ"
    end = len(a)
    # Which of several errors is told is not defined.
    if (a[end - 250] == 0) != (b[end - 250] == 0):
        return f"codes {a[end - 250]} and {b[end - 250]}"
    if a[end - 250]:
        if a[end - 248:end - 240] != b[end - 248:end - 240]:
            return "tags differ"
        return None
    for i in range(end - 48):
        if a[i] != b[i]:
            where = f"byte {i} of {end}, {end - i} from the end"
            lo = max(0, i - 8)
            return f"{where}: {a[lo:i + 16].hex()} and {b[lo:i + 16].hex()}"
    return None


def f64_fits(slot):
    """The sum of an output slot's records, whatever its code."""
    end = len(slot)
    blocks = struct.unpack_from("<I", slot, end - 256 + 24)[0]
    if slot[end - 250]:
        return blocks == 0 and f64(slot[end - 256:end - 64]) == struct.unpack_from("<QQ", slot, end - 64)
    records = b"".join(slot[end - 384 - 64 * k:end - 320 - 64 * k] for k in range(blocks))
    records += slot[end - 320:end - 256]
    return f64(records + slot[end - 256:end - 64]) == struct.unpack_from("<QQ", slot, end - 64)


# ---- generator ----

def counted(area):
    """Entries of an area, or of its part that parses."""
    n = 0
    try:
        for _ in parse(area, 0, ALL20, 0):
            n += 1
    except Fault:
        pass
    return n


class Maker:
    def __init__(self, seed, mode, ways=4):
        self.ways = ways
        self.r = random.Random(f"{seed}/{mode}")
        self.seed, self.mode = seed, mode
        self.told = None

    def key(self, pool):
        r = self.r
        kind = r.randrange(10)
        if pool and kind < 3:
            base = r.choice(pool)
            cut = r.randrange(len(base) + 1)
            extra = bytes(r.choice(b"\0\1\xffab") for _ in range(r.randrange(9)))
            return (base[:cut] + extra)[:240]
        if self.mode == "tags" and pool and kind < 8:
            # Bytes as tags have them, behind another key: comparisons run on into the tag.
            seq = r.randrange(1, self.seqs)
            tag = struct.pack("<Q", r.choice((0, 0, seq)) << 8 | r.choice((0, 1, 1)))
            return (r.choice(pool) + tag[:r.randrange(9)] + bytes(r.randrange(3)))[:240]
        size = r.choice(self.sizes)
        return bytes(r.choice(b"\0ab\xff") if r.random() < 0.7 else r.randrange(256) for _ in range(size))

    def value(self):
        r = self.r
        size = r.choice(self.values)
        return r.randbytes(r.randrange(max(1, size), size + 2) if size > 3 else r.randrange(size + 1))

    def make(self):
        r = self.r
        if self.mode == "hostile":
            return self.hostile()
        if self.mode == "corners":
            return self.corner(CORNERS[int(self.seed) % len(CORNERS)])
        small = self.mode in ("small", "tags", "bad")
        ways = r.randrange(1, self.ways + 1)
        self.sizes = r.choice(([16], [16], [0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17], [24, 31, 32, 33, 64],
                               [120, 127, 128, 129, 200, 239, 240], [1, 16, 40, 100, 240]))
        self.values = r.choice(([0, 1, 2, 3], [0, 4, 7, 8, 15, 16], [16, 31, 32, 33, 63, 64], [100, 127, 128],
                                [129, 200, 255, 256, 257], [300, 511, 512, 1000, 1024, 3000], [64], [0, 20, 64, 300]))
        self.seqs = r.choice((20, 200, 1 << 40, (1 << 56) - (1 << 24)))
        count = r.choice((0, 1, 3, 20, 100)) if small else 1500
        if self.mode == "long":
            self.values, count = [127, 128, 16383, 16384, 70000, 300000], 6
        pool = []
        for _ in range(max(1, count // r.choice((1, 1, 2, 5)))):
            pool.append(self.key(pool))
        lg = r.choice((6, 7, 9, 12, 16))
        interval = r.choice((1, 2, 3, 16, 16, 1000, 65535))
        while (1 << lg) // (12 * interval) + 2 > 1024:
            interval += 1
        snapshots = sorted(r.sample(range(self.seqs), r.choice((0, 0, 1, 3, 16))))
        used = set()
        runs = []
        for way in range(ways):
            run = {}
            for _ in range(r.choice((0, count, count, count))):
                key = r.choice(pool)
                seq = r.randrange(0, self.seqs) if r.random() < 0.9 or not snapshots \
                    else min(self.seqs - 1, max(0, r.choice(snapshots) + r.randrange(-1, 2)))
                if r.random() < 0.1:
                    seq = 0
                delete = r.random() < r.choice((0.1, 0.5))
                tag = seq << 8 | (not delete)
                if r.random() < 0.02 or (key, tag) not in used:
                    used.add((key, tag))
                    run[key, MASK - tag] = b"" if delete else self.value()
            runs.append([(k + struct.pack("<Q", MASK - t), run[k, t]) for k, t in sorted(run)])
        areas = []                      # way, bytes, skip, take, expected, flags

        def areas_of(entries, way, flags=0):
            at = 0
            while at < len(entries):
                n = r.choice((1, 3, 20, 40, 200))
                part = entries[at:at + n]
                skip = take = 0
                trim = way < 16 and r.random() < 0.15
                if trim:
                    # Entries outside of the set, of any kind: they are parsed and left out.
                    below = [(bytes([0] * r.randrange(3)) + r.randbytes(8), r.randbytes(r.randrange(40)))
                             for _ in range(r.randrange(4))]
                    above = [(r.randbytes(r.randrange(8, 60)), r.randbytes(r.randrange(40)))
                             for _ in range(r.randrange(1, 4))]
                    area = encode(below + part + above, r.choice((1, 2, 16)))
                    skip, take, whole = len(below), len(part), len(below + part + above)
                else:
                    area = encode(part, r.choice((1, 2, 7, 16)))
                    take, whole = r.choice((ALL20, len(part))), len(part)
                areas.append((way, area, skip, take, r.choice((0, whole)), flags))
                at += n

        lowest = b"\0\0"
        replay = []
        s = r.randrange(1 << lg)
        if r.random() < 0.4 and not any(runs[w] and runs[w][0][0][:-8] <= b"\0\0\0\0\xff" for w in range(ways)):
            # All of one block: S must stay inside the cell until the last entry at most.
            grown = s
            keys = sorted({bytes(r.randrange(3)) + r.randbytes(r.randrange(3))[:2] for _ in range(r.randrange(1, 9))})
            keys = [k for k in keys if k < b"\0\0\0\0\x01" and k[:1] in (b"", b"\0")]
            for k in keys:
                v = self.value()[:40]
                if grown + len(k) + 12 + len(v) >= 1 << lg:
                    break
                grown += len(k) + 12 + len(v)
                replay.append((k + struct.pack("<Q", r.choice((0, r.randrange(self.seqs))) << 8 | 1), v))
        if replay:
            area = encode(replay, interval)
            areas.append((SIDE, area, 0, ALL20, r.choice((0, len(replay))), 1 << 60))
            lowest = replay[-1][0][:-8] + b"\0"
        marks = {}
        for _ in range(r.choice((0, 0, 1, 5, 30))):
            k = r.choice(pool) + r.choice((b"", b"", b"\0", b"a"))
            if len(k) <= 240 and k >= lowest:
                marks[k] = 0xFFFFFFFF << 32 | r.choice((0, 1)) << 16 | r.choice((0, 0xF, r.randrange(16)))
        areas_of([(k + struct.pack("<Q", marks[k]), b"") for k in sorted(marks)], SIDE, 1 << 61)
        for way, run in enumerate(runs):
            areas_of(run, way)
        return self.slot(ways, areas, lg, interval, snapshots, s)

    def command(self, slot):
        """What the unit is told: bytes of the output slot, and tag."""
        return self.told or command_of(slot)

    def hostile(self):
        """Anything may lie in the input slot. Sums are right or not, so that every part gets to see it."""
        r = self.r
        self.mode = "small"
        slot = bytearray(self.make())
        self.told = out, tag = command_of(slot)
        kind = r.choice((0, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7))
        if kind == 0:
            self.told = 1024 + 64 * r.randrange(32), tag
            return r.randbytes(512 + 64 * r.randrange(64))
        if kind == 1:
            slot[64 * r.randrange(8):] = r.randbytes(len(slot))
            slot = slot[:max(512, len(slot) // 128 * 64)]
        places = [512 + 32 * i for i in range(min(struct.unpack_from("<I", slot, 28)[0], (len(slot) - 512) // 32))]
        areas = [struct.unpack_from("<II", slot, at) for at in places]
        areas = [(at, size) for at, size in areas if size and at + size <= len(slot)]
        if kind == 2:
            for _ in range(r.randrange(1, 6)):
                slot[r.randrange(len(slot))] = r.choice((0, 1, 0x7F, 0x80, 0xFF, r.randrange(256)))
        if kind == 3 and areas:
            # Areas of small numbers parse for a while.
            for at, size in areas:
                slot[at:at + size] = bytes(r.choice((0, 0, 1, 2, 8, 9, 16, r.randrange(256))) for _ in range(size))
        if kind == 4 and places:
            for _ in range(r.randrange(1, 4)):
                at = r.choice(places) + r.choice((0, 4, 8, 10, 13, 15))
                slot[at] = r.randrange(256)
        if kind == 5:
            # Rows of ways that this unit has.
            way = r.choice([*range(self.ways), 16])
            struct.pack_into("<II", slot, 192 + 16 * way, r.randrange(len(places) + 2), r.randrange(len(places) + 2))
        if kind == 6:
            slot = slot[:max(512, len(slot) - 64 * r.randrange(1, 5))]
            struct.pack_into("<I", slot, 32, len(slot))
        if kind == 7:
            out = 1024 + 64 * r.randrange(40)
            struct.pack_into("<I", slot, 36, out)
            self.told = out, tag
        if r.random() < 0.8:
            reseal(slot)
        return bytes(slot)

    def rate(self, value, size, key_size=16):
        """Keys of one size, one value size, all ways, a tenth of keys in two of them, a twentieth deletes."""
        r = self.r
        count = size // (key_size + 8 + value)
        keys = [r.randbytes(key_size) for _ in range(count * 9 // 10)]
        runs = [{} for _ in range(self.ways)]
        for seq, key in enumerate(keys + r.sample(keys, count - len(keys))):
            delete = r.random() < 0.05
            tag = seq + 1 << 8 | (not delete)
            runs[r.randrange(self.ways)][key, MASK - tag] = b"" if delete else r.randbytes(value)
        areas = []
        for way, run in enumerate(runs):
            part, at = [], 0
            for k, t in sorted(run):
                part.append((k + struct.pack("<Q", MASK - t), run[k, t]))
                at += key_size + 12 + len(run[k, t])
                if at >= 4096:
                    areas.append((way, encode(part), 0, ALL20, len(part), 0))
                    part, at = [], 0
            if part:
                areas.append((way, encode(part), 0, ALL20, 0, 0))
        return self.slot(self.ways, areas, 12, 16, [], 0)

    def corner(self, c):
        areas = []
        if c.replay:
            areas.append((SIDE, encode(c.replay, c.interval), 0, ALL20, len(c.replay), 1 << 60))
        if c.marks:
            areas.append((SIDE, encode(list(c.marks)), 0, ALL20, 0, 1 << 61))
        for way, run in enumerate(c.runs):
            for at in range(0, len(run), 50):
                part = run[at:at + 50]
                areas.append((way, encode(part), 0, ALL20, len(part), 0))
        slot = bytearray(self.slot(c.ways, areas, c.lg, c.interval, list(c.snapshots), c.s))
        slot[17] = c.switches
        struct.pack_into("<H", slot, 24, c.mask)
        if c.out:
            struct.pack_into("<I", slot, 36, c.out)
        reseal(slot)
        return bytes(slot)

    def slot(self, ways, areas, lg, interval, snapshots, s):
        r = self.r
        order = list(range(17))
        r.shuffle(order)
        rows, table, bodies = {}, [], []
        base = 512 + (32 * len(areas) + 63) // 64 * 64
        for way in order:
            mine = [a for a in areas if a[0] == way]
            rows[way] = (len(table), len(mine))
            table += mine
        at = base + 64 * r.randrange(3)
        places = {}
        for i in r.sample(range(len(table)), len(table)):
            places[i] = at
            at += (len(table[i][1]) + 63) // 64 * 64 + 64 * r.choice((0, 0, 0, 1))
        size = at + 64 * r.choice((0, 0, 2))
        slot = bytearray(size)
        for i, (way, area, skip, take, expected, flags) in enumerate(table):
            padded = area + bytes(-len(area) % 64)
            slot[places[i]:places[i] + len(padded)] = padded
            struct.pack_into("<IIQQQ", slot, 512 + 32 * i, places[i], len(area),
                             skip | take << 20 | expected << 40 | flags, *f64(padded))
        for i in range(17):
            first, n = rows.get(i, (0, 0))
            struct.pack_into("<IIHB", slot, 192 + 16 * i, first if n else 0, n, i, i == 16)
        for i in range(16):
            struct.pack_into("<Q", slot, 64 + 8 * i, snapshots[i] if i < len(snapshots) else MASK)
        # Room for every entry in a block of its own, its key written out.
        entries = sum(counted(a[1]) for a in areas)
        out = 4096 + (sum(len(a[1]) for a in areas) + 450 * entries + 63) // 64 * 64
        if self.mode == "bad" and r.random() < 0.2:
            out = 1024 + 64 * r.randrange(20)
        struct.pack_into("<4sHBBQBBHIHHIIIQ", slot, 0, b"LSET", 1, ways, len(snapshots), r.getrandbits(64), lg,
                         r.choice((0, 1, 3, 3, 3)), interval, s, r.choice((0, 0, 0xF, r.randrange(16))), 0, len(table),
                         size, out, 0)
        if self.mode == "bad":
            self.spoil(slot, table, places, base)
        self.seal(slot, base)
        return bytes(slot)

    def seal(self, slot, base):
        struct.pack_into("<QQ", slot, 48, *f64(bytes(slot[:48]) + bytes(16) + bytes(slot[64:base])))
        if self.mode == "bad" and self.r.random() < 0.1:
            slot[self.r.randrange(base)] ^= 1 << self.r.randrange(8)
            slot[8:16] = slot[8:16]

    def spoil(self, slot, table, places, base):
        """One thing wrong; areas are summed again or not."""
        r = self.r
        if not table:
            return
        i = r.randrange(len(table))
        size, kind = len(table[i][1]), r.randrange(5)
        if kind == 0:
            at = places[i] + r.randrange(size)
            slot[at] = r.choice((slot[at] ^ 1 << r.randrange(8), 0, 0xFF, 0x80))
        elif kind == 1:
            a = struct.unpack_from("<Q", slot, 512 + 32 * i + 8)[0]
            struct.pack_into("<Q", slot, 512 + 32 * i + 8, (a + r.choice((1, 1 << 20, 1 << 40, 1 << 61))) & MASK)
        elif kind == 2:
            struct.pack_into("<I", slot, 512 + 32 * i + 4 * r.randrange(2), r.choice((0, 64, 1, 1 << 31, size - 1)))
        if kind == 4:
            # Two words change places, which only B of the sum sees.
            x, y = (places[i] + 8 * r.randrange((size + 7) // 8) for _ in range(2))
            slot[x:x + 8], slot[y:y + 8] = slot[y:y + 8], slot[x:x + 8]
            return
        padded = bytes(slot[places[i]:places[i] + (size + 63) // 64 * 64])
        if r.random() < 0.7:
            struct.pack_into("<QQ", slot, 512 + 32 * i + 16, *f64(padded))


# ---- corners by name ----

def reseal(slot):
    """Makes the sums of an input slot right, as far as its places are."""
    n = struct.unpack_from("<I", slot, 28)[0]
    end = 512 + (32 * n + 63) // 64 * 64
    if end > len(slot):
        return
    for at in range(512, 512 + 32 * n, 32):
        place, size = struct.unpack_from("<II", slot, at)
        padded = slot[place:place + (size + 63) // 64 * 64]
        if size and place % 64 == 0 and place + len(padded) <= len(slot) and place >= end:
            struct.pack_into("<QQ", slot, at + 16, *f64(bytes(padded) + bytes(-len(padded) % 64)))
    struct.pack_into("<QQ", slot, 48, *f64(bytes(slot[:48]) + bytes(16) + bytes(slot[64:end])))


def entry(key, seq, value=None, kind=None):
    """An internal key and its value; none is a delete."""
    tag = seq << 8 | (kind if kind is not None else value is not None)
    return key + struct.pack("<Q", tag), value or b""


def mark(key, mask, split=0):
    return key + struct.pack("<Q", 0xFFFFFFFF << 32 | split << 16 | mask), b""


class Corner:
    """A set by its runs, newest first; each an ordered list of entries. `out`: bytes of the output slot, else enough."""

    def __init__(self, name, code, runs, lg=12, interval=16, snapshots=(), s=0, switches=3, mask=0, marks=(), replay=(),
                 ways=None, out=None):
        self.name, self.code, self.runs, self.lg, self.interval, self.out = name, code, runs, lg, interval, out
        self.snapshots, self.s, self.switches, self.mask = snapshots, s, switches, mask
        self.marks, self.replay, self.ways = marks, replay, len(runs) if ways is None else ways


def k(n, size=8):
    return b"%0*d" % (size, n)


SEQ_LAST = (1 << 56) - (1 << 24) - 1
CORNERS = [
    Corner("lengths of keys and values", OK, [
        [entry(bytes([i]) * size, 9, bytes([size]) * value)
         for i, (size, value) in enumerate((0 if i == 0 else s, v) for i, (s, v) in enumerate(
             (s, v) for v in (0, 127, 128, 16383, 16384) for s in (1, 15, 16, 17, 239, 240)))]]),
    Corner("a key of 241", KEY_LONG, [[entry(b"a" * 241, 1, b"v")]]),
    Corner("a key of 16384", KEY_LONG, [[entry(b"a" * 16384, 1, b"v")]]),
    Corner("values of 1 and 2 MiB", OK, [[entry(b"a", 2, bytes(range(256)) * 8192), entry(b"b", 1, b"v" * (1 << 20))]]),
    Corner("no run", OK, [], ways=0),
    Corner("empty runs", OK, [[], [], []]),
    Corner("replay alone", OK, [[], []], replay=[entry(b"a", 1, b"v"), entry(b"b", 0, b"w" * 30)]),
    Corner("everything dropped", OK, [[entry(k(i), 9) for i in range(60)], [entry(k(i), 5, b"old") for i in range(60)]]),
    Corner("versions of one key over many blocks", OK, [[entry(b"key", 400 - i, b"v" * 40) for i in range(300)]], lg=6,
           snapshots=[100 + 16 * i for i in range(16)]),
    Corner("a version for each snapshot over many blocks", OK, [
        [entry(k(j), 1000 - 10 * i, b"v" * 20) for j in range(20) for i in range(17)]], lg=7,
           snapshots=[840 + 10 * i - 5 for i in range(16)]),
    Corner("one way has nearly all", OK, [[entry(k(0), 9, b"v")], [entry(k(i), 5, b"w" * 10) for i in range(200)], [],
                                          [entry(k(150), 3)]]),
    Corner("numbers around 16 snapshots", OK, [
        [entry(k(j), q, b"v" if (q + j) % 3 else None) for j in range(6)
         for q in sorted({q + d for q in range(10, 170, 10) for d in (-1, 0, 1)}, reverse=True)]],
           snapshots=list(range(10, 170, 10))),
    Corner("in_use before, on and after keys", OK, [
        [entry(k(i), 9) for i in range(40)], [entry(k(i), 5, b"v") for i in range(0, 40, 3)]],
           marks=[mark(key, m) for i in range(0, 40, 2) for key, m in ((k(i), 1 + i % 3), (k(i) + b"\0", 0), (k(i) + b"a", 3))]),
    Corner("splits without a survivor", OK, [[entry(k(i), 9) for i in range(30)] + [entry(b"z", 3, b"v")]],
           marks=[mark(k(i), 0, 1) for i in range(0, 30, 3)] + [mark(b"zz", 0, 1)]),
    Corner("splits at each key", OK, [[entry(k(i), 9, b"v" * i) for i in range(30)]],
           marks=[mark(k(i), 0xF, 1) for i in range(30)]),
    Corner("the grid ends with the set", OK, [[entry(k(i), 9, b"v" * 12) for i in range(8)]], lg=8, s=0),
    Corner("the grid ends one byte behind the set", OK, [[entry(k(i), 9, b"v" * 12) for i in range(8)]], lg=8, s=255),
    Corner("17 deletes wait for the end of their key", OK, [
        [entry(b"a", 1000 - 10 * i) for i in range(17)] + [entry(b"b", 7, b"v")]],
           snapshots=[840 + 10 * i - 5 for i in range(16)]),
    Corner("17 deletes wait for a value", OK, [
        [entry(b"a", 1000 - 10 * i) for i in range(16)], [entry(b"a", 1, b"v")]],
           snapshots=[850 + 10 * i - 5 for i in range(16)]),
    Corner("deletes at cuts", OK, [[entry(k(i), 9, None if i % 3 else b"v" * 30) for i in range(120)]], lg=6, switches=0),
    Corner("one key and number in several runs", OK, [[entry(k(i), 9, b"new" * 9) for i in range(20)],
                                                      [entry(k(i), 9, b"old" * 9) for i in range(20)],
                                                      [entry(k(i), 9, b"o") for i in range(20)]], snapshots=[5]),
    Corner("over 1,024 restart points", OUT_FULL, [[entry(k(i, 5), 9, b"") for i in range(1100)]], lg=16, interval=1),
    Corner("1,024 restart points", OK, [[entry(k(i, 5), 9, b"") for i in range(1024)]], lg=16, interval=1),
    # Each entry is a block. Payloads of 10 beats.
    Corner("the first payload ends at its record, and another follows", OUT_FULL, [[entry(k(i), 9, b"v" * 600) for i in range(3)]],
           lg=8, out=64 * 16),
    # Payloads of 6, 6 and 5 beats.
    Corner("the second ends at its record, and another follows", OUT_FULL, [[entry(k(i), 9, b"v" * 300) for i in range(3)]],
           lg=8, out=64 * 19),
    Corner("the last ends at the record with its number", OK, [[entry(k(i), 9, b"v" * 300) for i in range(3)]],
           lg=8, out=64 * 25),
    Corner("the last ends a beat behind that", OUT_FULL, [[entry(k(i), 9, b"v" * 300) for i in range(3)]], lg=8, out=64 * 24),
    Corner("the highest number", OK, [[entry(b"a", SEQ_LAST, b"v")]], snapshots=[SEQ_LAST - 1]),
    Corner("a number too high", SEQ_HIGH, [[entry(b"a", SEQ_LAST + 1, b"v")]]),
    Corner("a merge operand", KIND, [[entry(b"a", 1, b"v", 2)]]),
    Corner("a single delete", KIND, [[entry(b"a", 1, b"v"), entry(b"b", 1, b"", 7)]]),
    Corner("a delete with a value", DELETE_VALUE, [[entry(b"a", 1, b"v", 0)]]),
    Corner("keys out of order", ORDER, [[entry(b"b", 1, b"v"), entry(b"a", 1, b"v")]]),
    Corner("numbers out of order", ORDER, [[entry(b"a", 1, b"v"), entry(b"a", 2, b"v")]]),
    Corner("an entry twice", ORDER, [[entry(b"a", 1, b"v"), entry(b"a", 1, b"v")]]),
    Corner("a marker twice", ORDER, [[entry(b"a", 1, b"v")]], marks=[mark(b"a", 1), mark(b"a", 1)]),
    Corner("replay behind entries", ORDER, [[entry(b"a", 1, b"v")]], replay=[entry(b"b", 1, b"v")]),
]


def main(args):
    if args[0] == "make":
        open(args[2], "wb").write(Maker(args[1], args[3] if len(args) > 3 else "small").make())
    elif args[0] == "rate":
        ways, value, size = (int(a) for a in args[1:4])
        key = int(args[5]) if len(args) > 5 else 16
        open(args[4], "wb").write(Maker(0, "rate", ways).rate(value, size, key))
    elif args[0] == "run":
        open(args[2], "wb").write(Unit(open(args[1], "rb").read()).run())
    elif args[0] == "compare":
        a, b = (open(p, "rb").read() for p in args[1:3])
        difference = compare(a, b)
        if difference:
            print(f"{args[1]}: {difference}")
            return 1
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
