//! The settings, which a room of their own keeps (`crates/settings`), under the names that users have for
//! them, and what the rooms below make of them.

pub(crate) mod translate;

use arc_swap::{ArcSwap, Guard};
use lithify_env::sync::Arc;
use lithify_env::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

#[doc(inline)]
pub use lithify_settings::{
    Budget, CompactionPri, Compression, Durability, EffectiveSetting, Policy, Settings, TableDir,
};

/// Settings of which some change while they are read.
pub(crate) struct InForce {
    all: ArcSwap<Settings>,
    /// Of them what each write asks for: to look at all of them takes a twentieth of a write.
    durability: AtomicUsize,
    memtable_bytes: AtomicU64,
}

impl InForce {
    pub(crate) fn new(settings: Settings) -> InForce {
        let durability = AtomicUsize::new(settings.durability.rank());
        let memtable_bytes = AtomicU64::new(settings.memtable_bytes);
        InForce { all: ArcSwap::from_pointee(settings), durability, memtable_bytes }
    }
    pub(crate) fn load(&self) -> Guard<Arc<Settings>> {
        self.all.load()
    }
    pub(crate) fn load_full(&self) -> Arc<Settings> {
        self.all.load_full()
    }
    pub(crate) fn store(&self, settings: Arc<Settings>) {
        self.durability.store(settings.durability.rank(), Ordering::Relaxed);
        self.memtable_bytes.store(settings.memtable_bytes, Ordering::Relaxed);
        self.all.store(settings);
    }
    /// Size at which a memtable is full: every write asks.
    #[inline]
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.memtable_bytes.load(Ordering::Relaxed)
    }
    /// How safe writes are that do not say.
    #[inline]
    pub(crate) fn durability(&self) -> Durability {
        Durability::of_rank(self.durability.load(Ordering::Relaxed))
    }
}
