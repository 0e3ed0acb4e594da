//! Lives where room is short: a budget, or a disk, that is nearly full of values that were overwritten.
//!
//! Keeps: as long as enough of what there is can be dropped, writing goes on, under every policy; what is
//! read is what was written.
//!
//! ```text
//!   fill      compactions are off until the tables have nearly all there is: a fifth of it is live
//!   live on   compactions are on; more than all of that is written, each write within a minute
//!   reopen    under half of the budget, or on the disk as it is; and on
//! ```
//!
//! Leaves to others: power losses (`explore`), and disks that fill up while much is live (`world`).

use std::collections::BTreeMap;
use std::time::Duration;

use lithify::{Builder, Db, Durability, ErrorKind, Policy, Settings, WriteOptions};
use lithify_env::sync::Arc;
use lithify_env::{Env, Fs, Random, Rt};

use crate::choices::{Dice, Stream};
use crate::disk::Disk;
use crate::pump::{Order, Pump};
use crate::simfs::SimFs;
use crate::world::{Violation, whole};

/// What is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// What tables may take, on a disk without a bound.
    Budget,
    /// The disk.
    Disk,
}

/// How a life went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Writes that were acknowledged.
    pub written: u64,
    /// Writes that were refused for lack of room, and tried again.
    pub refused: u64,
    /// The longest that a write took until it was acknowledged.
    pub longest: Duration,
    /// Most bytes of tables while compactions were on, in percent of the bound.
    pub most_percent: u64,
}

const MEMTABLE: u64 = 64 << 10;
/// Virtual time within which a write has to succeed.
const PATIENCE: Duration = Duration::from_secs(60);

struct Life {
    fs: SimFs,
    pump: Arc<Pump>,
    dice: Dice,
    random: Random,
    short: Short,
    settings: Settings,
    db: Option<Db>,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    keys: u64,
    value: usize,
    /// What there is, bytes.
    bound: u64,
    figures: Figures,
}

/// Lives one life; all of it follows from `seed`.
///
/// # Errors
/// A write that does not succeed in time, or a read of something else than was written.
pub fn live(seed: u64, policy: Policy, short: Short) -> Result<Figures, Violation> {
    let mut life = Life::new(seed, policy, short);
    life.open()?;
    life.fill()?;
    life.db().set_auto_compaction(true);
    life.go_on(3 * life.bound / 2)?;
    life.check("after the life")?;
    life.close()?;
    if short == Short::Budget {
        life.bound = (life.bound / 2).max(16 * MEMTABLE);
        life.settings.disk_budget = Some(life.bound);
        life.settings.fifo_max_bytes = life.settings.fifo_max_bytes.min(life.bound / 2);
    }
    life.open()?;
    life.go_on(life.bound / 2)?;
    life.check("after a reopen")?;
    life.close()?;
    Ok(life.figures)
}

impl Life {
    fn new(seed: u64, policy: Policy, short: Short) -> Life {
        let dice = Dice::new(Stream::seeded(seed, "shortage"));
        let bound = MEMTABLE * u64::from(24 + dice.choose(16, "bound"));
        let value = *dice.pick(&[1000, 400, 2000], "value");
        let mut s = Settings::default();
        s.policy = Some(policy);
        s.memtable_bytes = MEMTABLE;
        s.memtable_count = 2 + dice.choose(2, "memtables");
        s.memory_budget = 4 << 20;
        s.level_base_bytes = *dice.pick(&[64 << 10, 256 << 10], "base");
        s.level_multiplier = 2 + dice.choose(4, "multiplier");
        s.file_bytes = *dice.pick(&[32 << 10, 64 << 10, 256 << 10], "file");
        s.block_bytes = 1 << 10;
        s.l0_trigger = 2 + dice.choose(3, "l0 trigger");
        s.l0_slowdown = s.l0_trigger + 2 + dice.choose(8, "l0 slowdown");
        s.l0_stop = s.l0_slowdown + 2 + dice.choose(8, "l0 stop");
        s.compaction_threads = 1 + dice.choose(4, "compactions");
        s.flush_threads = 1 + dice.choose(2, "flushes");
        s.dynamic_levels = dice.choose(2, "dynamic") == 0;
        s.event_log = false;
        s.fifo_max_bytes = bound / 2;
        if short == Short::Budget {
            s.disk_budget = Some(bound);
        }
        let fs = SimFs::new(Disk::default());
        let order = *dice.pick(&[Order::Chosen, Order::Calm, Order::Latest], "order");
        Life {
            pump: Arc::new(Pump::new(dice.clone(), seed, order)),
            fs,
            dice,
            random: Random::from_seed(seed),
            short,
            settings: s,
            db: None,
            model: BTreeMap::new(),
            keys: bound / 6 / (value as u64 + 16),
            value,
            bound,
            figures: Figures::default(),
        }
    }

    fn open(&mut self) -> Result<(), Violation> {
        self.pump.begin_call();
        let fs: Arc<dyn Fs> = Arc::new(self.fs.clone());
        let rt: Arc<dyn Rt> = self.pump.clone();
        let db = Builder::new(self.settings.clone()).env(Env { fs, rt }).open("db");
        self.db = Some(db.map_err(|e| Violation(format!("it does not open: {e:?}")))?);
        Ok(())
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("it is open")
    }

    fn close(&mut self) -> Result<(), Violation> {
        self.pump.begin_call();
        let db = self.db.take().expect("it is open");
        db.close().map_err(|e| Violation(format!("it does not close: {e:?}")))
    }

    /// Values are overwritten, and nothing is compacted, until next to no room is left.
    fn fill(&mut self) -> Result<(), Violation> {
        self.db().set_auto_compaction(false);
        let percent = match self.short {
            Short::Budget => *self.dice.pick(&[95, 80, 110, 200], "filled"),
            Short::Disk => 100,
        };
        while self.tables() < self.bound * percent / 100 {
            for _ in 0..32 {
                self.write(true)?;
            }
        }
        if self.short == Short::Disk {
            self.db().flush().map_err(|e| Violation(format!("a flush fails: {e:?}")))?;
            // Logs that are not needed any more go.
            self.pump.rest(Duration::from_secs(1));
            // Others have what is left but this, and it is seen.
            let spare = MEMTABLE * u64::from(3 + self.dice.choose(4, "spare"));
            self.fs.set_capacity(self.fs.used() + spare);
            self.pump.rest(Duration::from_secs(2));
        }
        Ok(())
    }

    /// Writes until so many bytes were written.
    fn go_on(&mut self, bytes: u64) -> Result<(), Violation> {
        let each = self.value as u64 + 16;
        for n in 0..bytes / each {
            self.write(false)?;
            if n % 32 == 0 {
                let percent = self.tables() * 100 / self.bound;
                self.figures.most_percent = self.figures.most_percent.max(percent);
            }
        }
        Ok(())
    }

    fn tables(&self) -> u64 {
        self.db().stats().disk_bytes
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key{:07}", self.random.below(self.keys)).into_bytes()
    }

    /// One write, tried again as long as there is no room for it.
    fn write(&mut self, filling: bool) -> Result<(), Violation> {
        let key = self.key();
        let mut value = vec![0; self.value];
        self.random.fill(&mut value);
        let (one_of, to) = (self.random.below(100), self.key());
        let range = one_of == 0 && self.random.one_in(10) && key < to;
        let until = self.pump.now() + PATIENCE;
        let began = self.pump.now();
        loop {
            self.pump.begin_call();
            let options = WriteOptions::at(Durability::Os);
            let done = match one_of {
                0 if range && !filling => self.db().delete_range_opt(&key, &to, &options),
                0..10 => self.db().delete_opt(&key, &options),
                _ => self.db().put_opt(&key, &value, &options),
            };
            for _ in 0..self.dice.choose(3, "steps") {
                self.pump.step();
            }
            match done {
                Ok(()) => break,
                Err(e) if !matches!(e.kind(), ErrorKind::NoSpace | ErrorKind::Stalled) => {
                    return Err(Violation(format!("a write fails: {e:?}")));
                }
                Err(e) if self.pump.now() > until => return Err(self.wedged(&e)),
                Err(_) => self.figures.refused += 1,
            }
            self.pump.rest(Duration::from_millis(100));
        }
        self.figures.written += 1;
        self.figures.longest = self.figures.longest.max(self.pump.now().since(began));
        match one_of {
            0 if range && !filling => {
                let gone: Vec<_> = self.model.range(key..to).map(|(k, _)| k.clone()).collect();
                gone.iter().for_each(|k| drop(self.model.remove(k)));
            }
            0..10 => drop(self.model.remove(&key)),
            _ => drop(self.model.insert(key, value)),
        }
        match self.pump.panics().first() {
            None => Ok(()),
            Some(message) => Err(Violation(format!("a job panicked: {message}"))),
        }
    }

    fn wedged(&self, error: &lithify::Error) -> Violation {
        let live: usize = self.model.iter().map(|(k, v)| k.len() + v.len()).sum();
        Violation(format!(
            "writes are refused for a minute with {live} live bytes in {} of tables, {} of {}: \
             {error}\n{}",
            self.tables(),
            self.fs.used(),
            self.bound,
            self.db().explain(),
        ))
    }

    /// All that is read is what was written; a store that forgets may have forgotten it.
    fn check(&self, when: &str) -> Result<(), Violation> {
        self.pump.begin_call();
        let shown = whole(self.db())?;
        let forgets = self.settings.policy == Some(Policy::Fifo);
        let same = (forgets || shown.len() == self.model.len())
            && shown.iter().all(|(k, v)| self.model.get(&k[..]).is_some_and(|m| m[..] == v[..]));
        match same {
            true => Ok(()),
            false => Err(Violation(format!("{when}, what is read is not what was written"))),
        }
    }
}
