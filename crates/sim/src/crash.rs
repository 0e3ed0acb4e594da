//! What a power loss may leave of a disk: eleven ways, each with choices of its own.
//!
//! Keeps: whatever was synced is there, byte for byte and name for name (a change on its way may
//! overwrite durable bytes; where it does, the old bytes or the new ones are there, and garbage
//! only in [`Kind::Garbage`] and [`Kind::Recycled`]). An image is a disk of its own, everything
//! on it durable; it shares content with the disk it was taken of.
//!
//! ```text
//!   file   ssssssss|wwww|xxxxxx      s synced, w and x two writes on their way
//!   Synced ssssssss                  Prefix  ssssssss|wwww      Pages  ssssssss|....|xxxxxx
//!   Torn   ssssssss|wwww|xx          SizeAhead ssssssss|0000|000000
//! ```

use std::collections::{BTreeMap, BTreeSet};

use lithify_env::Random;
use lithify_env::sync::Arc;

use crate::choices::Dice;
use crate::disk::{
    Change, Content, Dir, DirId, Disk, Ino, Inode, Names, Naming, Node, PAGE, Pending, pieces,
};

/// A way in which a crash treats what was on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// C0: none of it arrived.
    Synced,
    /// C1: all of it did, as when only the program was killed.
    Everything,
    /// C2: what came before one moment did.
    GlobalPrefix,
    /// C3: of each file and directory, what came before a moment of its own.
    FilePrefix,
    /// C4: any pages of 4 KiB.
    Pages,
    /// C5: everything, the last write in part: its left or right sectors.
    Torn,
    /// C6: files have their new size and zeros or garbage in it.
    SizeAhead,
    /// C7: any of the changes of names.
    Names,
    /// C8: everything but the removals.
    Undeleted,
    /// C9: any sectors of 512 bytes, others old, others garbage.
    Garbage,
    /// C10: as `Garbage`, with the bytes of other files in place of garbage.
    Recycled,
}

impl Kind {
    /// All kinds, by number.
    pub const ALL: [Kind; 11] = [
        Kind::Synced,
        Kind::Everything,
        Kind::GlobalPrefix,
        Kind::FilePrefix,
        Kind::Pages,
        Kind::Torn,
        Kind::SizeAhead,
        Kind::Names,
        Kind::Undeleted,
        Kind::Garbage,
        Kind::Recycled,
    ];

    /// `C0` to `C10`.
    pub fn name(self) -> &'static str {
        ["C0", "C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10"][self as usize]
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|k| k.name() == name)
    }
}

const SECTOR: usize = 512;

/// What a crash of `kind` leaves of `disk`.
pub fn image(disk: &Disk, kind: Kind, dice: &Dice) -> Disk {
    let moment = match kind {
        Kind::GlobalPrefix => moment(disk, dice),
        _ => usize::MAX,
    };
    let last = disk.inodes.values().filter_map(|i| i.pending.last()).map(|p| p.at).max();
    let crash = Crash { disk, kind, moment, last, dice };
    let mut out = Disk::default();
    crash.keep(0, &mut out);
    out
}

/// A moment for [`Kind::GlobalPrefix`]: right before something that is on its way, or behind all of it. Most
/// moments of a life are before all of it, and would leave what [`Kind::Synced`] leaves.
fn moment(disk: &Disk, dice: &Dice) -> usize {
    let names = disk.dirs.values().flat_map(|dir| dir.pending.iter().map(|p| p.at));
    let reachable: BTreeSet<Ino> = disk.dirs.values().flat_map(named).collect();
    let files = reachable.iter().map(|ino| &disk.inodes[ino]);
    let bytes = files.flat_map(|inode| inode.pending.iter().map(|p| p.at));
    let all: BTreeSet<usize> = names.chain(bytes).collect();
    let chosen = dice.choose(all.len() as u32 + 1, "moment") as usize;
    all.into_iter().nth(chosen).unwrap_or(usize::MAX)
}

/// The files that a crash may leave in a directory: a file that no name may lead to is as good as gone.
fn named(dir: &Dir) -> impl Iterator<Item = Ino> {
    let new = dir.pending.iter().filter_map(|p| match &p.what {
        Naming::Set(_, node) | Naming::Rename(_, _, node) => Some(node),
        Naming::Remove(_) => None,
    });
    dir.durable.values().chain(new).filter_map(|node| match node {
        Node::File(ino) => Some(*ino),
        Node::Dir(_) => None,
    })
}

struct Crash<'a> {
    disk: &'a Disk,
    kind: Kind,
    /// What was entered before this position arrived (C2).
    moment: usize,
    /// Position of the last write on its way (C5).
    last: Option<usize>,
    dice: &'a Dice,
}

impl Crash<'_> {
    /// Keeps what is left of directory `id`, and of everything in it.
    fn keep(&self, id: DirId, out: &mut Disk) {
        let names = self.names(&self.disk.dirs[&id]);
        for node in names.values() {
            match *node {
                // A file with two names is met twice, and decided once.
                Node::File(ino) if out.inodes.contains_key(&ino) => {}
                Node::File(ino) => {
                    let content = self.content(&self.disk.inodes[&ino]);
                    let inode =
                        Inode { durable: content.clone(), visible: content, ..Inode::default() };
                    out.inodes.insert(ino, inode);
                }
                Node::Dir(dir) => self.keep(dir, out),
            }
        }
        let dir = Dir { durable: names.clone(), visible: names, pending: Vec::new() };
        out.dirs.insert(id, dir);
    }

    /// How many of the changes arrived, where they arrive in order.
    fn arrived<T>(&self, pending: &[Pending<T>], tag: &'static str) -> usize {
        match self.kind {
            Kind::Synced => 0,
            Kind::GlobalPrefix => pending.iter().filter(|p| p.at < self.moment).count(),
            Kind::FilePrefix => self.dice.choose(pending.len() as u32 + 1, tag) as usize,
            _ => pending.len(),
        }
    }

    fn names(&self, dir: &Dir) -> Names {
        let mut names = dir.durable.clone();
        if dir.pending.is_empty() {
            return names;
        }
        // Where the crash is about bytes, names arrive together or not at all.
        let bytes_only = matches!(
            self.kind,
            Kind::Pages | Kind::Torn | Kind::SizeAhead | Kind::Garbage | Kind::Recycled
        );
        let count = match bytes_only && self.dice.one_in(4, "no names") {
            true => 0,
            false => self.arrived(&dir.pending, "names"),
        };
        for change in &dir.pending[..count] {
            let here = match (self.kind, &change.what) {
                (Kind::Names, _) => self.dice.choose(2, "name") == 0,
                (Kind::Undeleted, Naming::Remove(_)) => false,
                _ => true,
            };
            if here {
                change.what.apply(&mut names);
            }
        }
        names
    }

    fn content(&self, inode: &Inode) -> Content {
        if self.kind == Kind::Everything {
            // The system lives on, with all it shows.
            return inode.visible.clone();
        }
        if inode.pending.is_empty() {
            return inode.durable.clone();
        }
        match self.kind {
            Kind::Names if self.dice.choose(2, "bytes") == 1 => inode.durable.clone(),
            Kind::Pages => self.scattered(inode, PAGE),
            Kind::Garbage | Kind::Recycled => self.scattered(inode, SECTOR),
            Kind::SizeAhead => self.size_ahead(inode),
            Kind::Torn if inode.pending.last().map(|p| p.at) == self.last => self.torn(inode),
            _ => {
                let count = self.arrived(&inode.pending, "writes");
                if count == inode.pending.len() && !inode.forgot {
                    return inode.visible.clone();
                }
                let mut content = Vec::clone(&inode.durable);
                inode.pending[..count].iter().for_each(|p| p.what.apply(&mut content));
                Arc::new(content)
            }
        }
    }

    /// Each piece of each write arrived, or not, or (for sectors) as something else.
    fn scattered(&self, inode: &Inode, piece: usize) -> Content {
        let mut content = Vec::clone(&inode.durable);
        let size_arrived = self.dice.choose(2, "size") == 0;
        let junk = self.junk();
        for change in &inode.pending {
            let (offset, bytes) = match &change.what {
                Change::Write { offset, bytes } => (*offset, bytes),
                Change::SetLen(len) => {
                    // Cutting and growing is an order of its own: it arrives or it does not.
                    if self.dice.choose(2, "length") == 0 {
                        content.resize(*len, 0);
                    }
                    continue;
                }
            };
            for (from, to) in pieces(offset, bytes.len(), piece) {
                let at = offset + from;
                let ways = if piece == SECTOR { 3 } else { 2 };
                match self.dice.choose(ways, "piece") {
                    0 => crate::disk::write(&mut content, at, &bytes[from..to]),
                    1 => {}
                    _ => {
                        let other: Vec<u8> =
                            (at..at + to - from).map(|i| junk[i % junk.len()]).collect();
                        crate::disk::write(&mut content, at, &other);
                    }
                }
            }
        }
        if size_arrived && content.len() < inode.visible.len() {
            content.resize(inode.visible.len(), 0);
        }
        Arc::new(content)
    }

    /// Bytes that are none of a file's own: random, or those of another file.
    fn junk(&self) -> Content {
        if self.kind == Kind::Recycled {
            let files = self.disk.inodes.values().map(|i| &i.visible);
            let full: Vec<&Content> = files.filter(|c| !c.is_empty()).collect();
            if !full.is_empty() {
                return (*self.dice.pick(&full, "recycled")).clone();
            }
        }
        let mut bytes = vec![0; 1 << 12];
        Random::from_seed(u64::from(self.dice.choose(1 << 16, "garbage"))).fill(&mut bytes);
        Arc::new(bytes)
    }

    /// The bytes in order up to a moment, then the size of all.
    fn size_ahead(&self, inode: &Inode) -> Content {
        let count = self.dice.choose(inode.pending.len() as u32, "before") as usize;
        let mut content = Vec::clone(&inode.durable);
        inode.pending[..count].iter().for_each(|p| p.what.apply(&mut content));
        let from = content.len();
        content.resize(inode.visible.len().max(from), 0);
        if self.dice.choose(2, "filled with") == 1 {
            let seed = u64::from(self.dice.choose(1 << 16, "garbage"));
            Random::from_seed(seed).fill(&mut content[from..]);
        }
        Arc::new(content)
    }

    /// All writes but the last, and that one's left or right sectors.
    fn torn(&self, inode: &Inode) -> Content {
        let (last, before) = inode.pending.split_last().expect("there is a change on its way");
        let mut content = Vec::clone(&inode.durable);
        before.iter().for_each(|p| p.what.apply(&mut content));
        if let Change::Write { offset, bytes } = &last.what {
            // Boundaries of sectors inside the write, counted from the start of the file.
            let first = offset.next_multiple_of(SECTOR).max(offset + 1);
            let cuts = (offset + bytes.len()).saturating_sub(first).div_ceil(SECTOR);
            let sector = self.dice.choose(cuts as u32 + 1, "torn at") as usize;
            let cut = (first + sector * SECTOR - offset).min(bytes.len());
            match self.dice.choose(2, "side") {
                0 => crate::disk::write(&mut content, *offset, &bytes[..cut]),
                _ => crate::disk::write(&mut content, offset + cut, &bytes[cut..]),
            }
        }
        Arc::new(content)
    }
}

/// A number that two images share only if they are the same: to check each once.
pub fn fingerprint(disk: &Disk) -> u64 {
    let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
    let mut sum = xxhash_rust::xxh3::Xxh3::new();
    for (id, dir) in &disk.dirs {
        sum.update(&id.to_le_bytes());
        // What the database says about itself is not read by anything.
        for (name, node) in dir.durable.iter().filter(|(name, _)| !name.starts_with("EVENTS")) {
            sum.update(name.as_bytes());
            if let Node::File(ino) = node {
                let content = seen
                    .entry(*ino)
                    .or_insert_with(|| xxhash_rust::xxh3::xxh3_64(&disk.inodes[ino].durable));
                sum.update(&content.to_le_bytes());
            }
        }
    }
    sum.digest()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::Stream;
    use crate::disk::Entry;

    /// A long life that is durable, and the last few changes of two files and a directory that are not.
    #[test]
    fn every_global_prefix_of_what_is_on_its_way_is_left() {
        let mut disk = Disk::default();
        let write = |ino, at: usize| Entry::Write(ino, at, vec![at as u8 + 1].into());
        let create = |name: &str, ino| Entry::Create(0, name.to_owned(), ino);
        [create("a", 1), create("b", 2)].iter().for_each(|entry| disk.apply(entry));
        for n in 0..500 {
            disk.apply(&write(1, n % 9));
        }
        [Entry::SyncFile(1), Entry::SyncDir(0)].iter().for_each(|entry| disk.apply(entry));
        // Bytes of a file without a name are no moment.
        [create("c", 3), write(3, 0), Entry::SyncDir(0)].iter().for_each(|e| disk.apply(e));
        [Entry::Remove(0, "c".to_owned()), Entry::SyncDir(0)].iter().for_each(|e| disk.apply(e));
        let last = [write(1, 20), write(2, 30), create("d", 4), write(2, 31), write(1, 21)];
        last.iter().for_each(|entry| disk.apply(entry));
        let left: BTreeSet<u64> = (0..200)
            .map(|seed| Dice::new(Stream::seeded(seed, "crash")))
            .map(|dice| fingerprint(&image(&disk, Kind::GlobalPrefix, &dice)))
            .collect();
        assert_eq!(left.len(), last.len() + 1);
    }
}
