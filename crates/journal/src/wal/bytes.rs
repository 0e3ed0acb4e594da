//! The bytes of a log, with long stretches of zeros left out: a file may claim to be far longer than
//! what it takes on disk.
//!
//! Keeps: a reader of it sees the file as it is; what lies outside of all stretches is zeros.
//! Stretches begin and end at blocks, so that a record lies in one of them or is none.
//! Leaves to others: finding the stretches, and what zeros mean in a log.
//!
//! ```text
//!   block  0     1     2     3     ...     900   901
//!   disk   data  data  hole  hole  hole    data  hole      len = 902 blocks
//!          front                           stretch
//! ```

use super::record::BLOCK_SIZE;

static ZEROS: [u8; BLOCK_SIZE] = [0; BLOCK_SIZE];

/// A stretch of a log that lies behind zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Where it begins: a multiple of [`BLOCK_SIZE`].
    pub start: u64,
    /// Whole blocks, unless the file ends in it.
    pub bytes: Vec<u8>,
}

impl Stretch {
    fn end(&self) -> usize {
        self.start as usize + self.bytes.len()
    }
}

/// All bytes of a log or manifest.
#[derive(Clone, Copy, Debug)]
pub struct LogBytes<'a> {
    /// From the first byte on.
    front: &'a [u8],
    /// Ascending.
    behind: &'a [Stretch],
    len: usize,
}

impl<'a> LogBytes<'a> {
    /// All of `bytes`.
    pub fn whole(bytes: &'a [u8]) -> LogBytes<'a> {
        LogBytes { front: bytes, behind: &[], len: bytes.len() }
    }

    /// A file of `len` bytes that begins with `front`: whole blocks, unless the file ends in them.
    /// `behind` are ascending.
    pub fn sparse(front: &'a [u8], behind: &'a [Stretch], len: u64) -> LogBytes<'a> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        debug_assert!(front.len() == len || front.len().is_multiple_of(BLOCK_SIZE));
        LogBytes { front, behind, len }
    }

    /// Length of the file.
    #[expect(clippy::len_without_is_empty, reason = "emptiness of a log is no question of its own")]
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// The same, as if the file ended at `len`.
    #[must_use]
    pub fn up_to(self, len: u64) -> LogBytes<'a> {
        LogBytes { len: usize::try_from(len).unwrap_or(usize::MAX).min(self.len), ..self }
    }

    /// The bytes from `from` to the end of its block or of the file; empty at the end of the file.
    #[inline]
    pub(super) fn rest_of_block(self, from: usize) -> &'a [u8] {
        let end = (from / BLOCK_SIZE + 1).saturating_mul(BLOCK_SIZE).min(self.len);
        match self.front.get(from..end) {
            Some(bytes) => bytes,
            None => self.behind_front(from, end),
        }
    }

    #[cold]
    fn behind_front(self, from: usize, end: usize) -> &'a [u8] {
        if from >= end {
            return &[];
        }
        let at = self.behind.partition_point(|s| s.end() <= from);
        let inside = self.behind.get(at).and_then(|s| {
            let start = s.start as usize;
            s.bytes.get(from.checked_sub(start)?..end.checked_sub(start)?)
        });
        inside.unwrap_or(&ZEROS[..end - from])
    }

    /// `from`, or where the next stretch begins if it lies outside of all; at most the file's end.
    pub(super) fn next_stretch(self, from: usize) -> usize {
        if from < self.front.len() {
            return from.min(self.len);
        }
        let at = self.behind.partition_point(|s| s.end() <= from);
        self.behind.get(at).map_or(self.len, |s| from.max(s.start as usize)).min(self.len)
    }

    /// Whether there are only zeros from `from` on.
    pub(super) fn ends_at(self, from: usize) -> bool {
        self.stretches(from).all(|(_, bytes)| bytes.iter().all(|byte| *byte == 0))
    }

    /// The parts of all stretches at or behind `from`, with their offsets.
    pub(super) fn stretches(self, from: usize) -> impl Iterator<Item = (usize, &'a [u8])> {
        let behind = self.behind.iter().map(|s| (s.start as usize, &s.bytes[..]));
        std::iter::once((0, self.front)).chain(behind).filter_map(move |(start, bytes)| {
            let end = bytes.len().min(self.len.saturating_sub(start));
            let begin = from.saturating_sub(start).min(end);
            (begin < end).then(|| (start + begin, &bytes[begin..end]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::RecordWriter;
    use super::super::{Found, RecordReader, SeqRule, WalWalk};
    use super::*;

    /// A file and the same with its zero blocks left out.
    fn thinned(bytes: &[u8]) -> (Vec<u8>, Vec<Stretch>) {
        let zero = |block: &[u8]| block.iter().all(|&b| b == 0);
        let (mut front, mut behind) = (Vec::new(), Vec::<Stretch>::new());
        let mut all_front = true;
        for (i, block) in bytes.chunks(BLOCK_SIZE).enumerate() {
            let start = (i * BLOCK_SIZE) as u64;
            all_front &= !zero(block);
            match behind.last_mut() {
                _ if all_front => front.extend_from_slice(block),
                _ if zero(block) => {}
                Some(s) if s.end() as u64 == start => s.bytes.extend_from_slice(block),
                _ => behind.push(Stretch { start, bytes: block.to_vec() }),
            }
        }
        (front, behind)
    }

    /// All that a reader finds, resuming behind damage; of several damages without a record between
    /// them the first, as those that resume take it.
    fn found(bytes: LogBytes<'_>) -> Vec<String> {
        let mut reader = RecordReader::over(bytes, None);
        let (mut all, mut damaged) = (Vec::new(), false);
        loop {
            let found = reader.next_record();
            let is_damage = matches!(found, Found::Damage(_));
            if !(is_damage && damaged) {
                all.push(format!("{found:?}"));
            }
            damaged = is_damage;
            match found {
                Found::Damage(_) if reader.resume() => {}
                Found::Record(_) => {}
                _ => return all,
            }
        }
    }

    #[test]
    fn holes_left_out_read_as_zeros() {
        let mut rng = fastrand::Rng::with_seed(14);
        for round in 0..60 {
            let mut log = Vec::new();
            let mut writer = RecordWriter::new();
            for _ in 0..rng.usize(1..9) {
                let payload = vec![rng.u8(1..); rng.usize(0..3 * BLOCK_SIZE)];
                writer.append(&payload, &mut log);
            }
            for _ in 0..rng.usize(0..4) {
                let start = rng.usize(..log.len()) / BLOCK_SIZE * BLOCK_SIZE;
                let end = (start + rng.usize(1..4) * BLOCK_SIZE).min(log.len());
                log[start..end].fill(0);
            }
            log.resize(log.len() + rng.usize(..4 * BLOCK_SIZE), 0);
            let (front, behind) = thinned(&log);
            let whole = LogBytes::whole(&log);
            let sparse = LogBytes::sparse(&front, &behind, log.len() as u64);
            assert_eq!(found(sparse), found(whole), "round {round}");
            let cut = rng.u64(..=log.len() as u64);
            let shorter = LogBytes::whole(&log[..cut as usize]);
            assert_eq!(found(sparse.up_to(cut)), found(shorter), "round {round}, cut at {cut}");
            let walk = |bytes| {
                let mut walk = WalWalk::over(bytes, 7, SeqRule::Rising);
                while walk.next_batch().is_ok_and(|batch| batch.is_some()) {}
                walk.findings()
            };
            assert_eq!(walk(sparse), walk(whole), "round {round}");
        }
    }

    #[test]
    fn a_tebibyte_of_holes_is_walked_at_once() {
        let mut log = Vec::new();
        RecordWriter::new().append(b"first", &mut log);
        log.resize(BLOCK_SIZE, 0);
        let far = 1 << 40;
        let behind = [Stretch { start: far, bytes: log.clone() }];
        let bytes = LogBytes::sparse(&log, &behind, far * 2);
        let told = found(bytes);
        assert_eq!(told.iter().filter(|told| told.starts_with("Record")).count(), 2, "{told:?}");
        assert!(told.len() < 10, "{told:?}");
    }
}
