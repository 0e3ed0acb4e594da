//! A relay: one part of a compaction is merged by an engine, and where that fails, by the CPU from the
//! last point that both know.
//!
//! ```text
//!   machine: sets 0 1 2 | carry | 3 4 fails        kept: carry, 3, 4
//!   cpu:                  carry   3 4 5 6 ... done  same bytes as if it had begun
//! ```
//!
//! An engine other than the CPU may refuse, break, hang, or lie. While it works the relay keeps the carry
//! of the last set whose output was taken, and the sets offered since. A batch of products is taken as a
//! whole or not at all: the certifier reads it on a copy of itself, and one set in so many is merged again
//! and compared (`merge::prove`), which ones the dice say once their output is here.
//!
//! Keeps: what a caller gets was certified, and goes on where the last batch ended, whichever engine it came
//! from. A fault of an engine other than the CPU is never an error, a panic in any of its calls included, and
//! what it holds has a bound. An engine whose output is wrong once is believed nothing: the CPU does the part
//! *anew* from its beginning, unless each of the engine's sets was proven. The same goes for the ledger at the
//! end. Where the CPU fails over an engine's carry it does the part anew, too, and only then it shows who is
//! to blame: the engine lied if the CPU does not fail again; else the inputs are bad, or the user's code is. A
//! panic while a batch is certified or proven is no lie, as the user's code may be what panicked: the CPU goes on, and if it
//! panics as well the job fails as it would without the engine. With the CPU alone nothing is kept or copied.
//! Leaves to others: which engine (`route`), reading sets (`feed`), writing products (`sink`).

use std::collections::VecDeque;
use std::time::Duration;

use lithify_base::{Error, ErrorKind, Result};
use lithify_engine::{Caps, Engine, Fault, Offer, Progress, Refusal, Session, Ticket};
use lithify_env::sync::Arc;
use lithify_env::{Mono, RtRef};
use lithify_merge::certify::Certifier;
use lithify_merge::prove::Prover;
use lithify_merge::{BlockSet, Item, Ledger, Products, Recipe};

use crate::feed::Wants;
use crate::route::{Engines, Place, Why, caps_for, guarded};

mod copy;
mod machine;

use copy::Copied;
pub(crate) use copy::Copier;
use machine::{GRACE, Machine};

/// How long an engine's machine is waited for before it is looked at again.
pub(crate) const LOOK: Duration = Duration::from_millis(250);

/// What is told of an engine other than the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The CPU replaces it.
    Replaced,
    /// Its sets are smaller than it wants.
    SmallSets,
}

/// Who is told: what, the engine's name, and why.
pub(crate) type Tell = Box<dyn Fn(Told, &'static str, String) + Send>;

/// The merge of one part.
pub(crate) struct Relay {
    engines: Arc<Engines>,
    recipe: Arc<Recipe>,
    rt: RtRef,
    /// Copies what a machine made.
    copier: Copier,
    tell: Tell,
    session: Seat,
    /// What a machine made, while it is being copied, and what it made meanwhile.
    batches: VecDeque<Batch>,
    /// Sets that the session has no room for yet.
    waiting: VecDeque<BlockSet>,
    /// No more sets come after those, and whether the session knows.
    last: bool,
    sealed: bool,
    /// None if the output is taken on trust, to measure what certifying costs.
    certifier: Option<Certifier>,
    /// The engine at work, unless it is the CPU.
    machine: Option<Machine>,
    /// An engine whose output was taken, and which is through: the CPU went on from its carry, or nothing is
    /// left to do.
    believed: Option<Place>,
    /// Who is to blame if the CPU does the part without a failure.
    suspect: Option<Suspect>,
    has_small_sets: bool,
}

/// An engine over whose carry the CPU failed. It lied if the CPU does not fail from the beginning.
pub(crate) struct Suspect {
    place: Place,
    error: Error,
}

impl Suspect {
    /// The CPU did not fail: the engine's name, and what it is blamed for.
    pub(crate) fn convict(mut self, now: Mono) -> (&'static str, String) {
        self.place.lost(Why::Disproved, &self.error, now);
        (self.place.caps().name, format!("{}: {}", Why::Disproved, self.error))
    }
}

/// A session. What a broken machine still does on its way out is of no interest: it is called off, and
/// dropped, behind a guard.
struct Seat(Option<Box<dyn Session>>);

impl Seat {
    fn session(&mut self) -> &mut dyn Session {
        &mut **self.0.as_mut().expect("taken by the drop alone")
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(session) = self.0.take() {
            let _ = guarded(|| session.cancel());
        }
    }
}

/// How far a part came.
pub(crate) enum Relayed {
    /// Poll again.
    More,
    /// Only another set gets it further.
    Starved,
    /// Poll again once the ticket is complete, or after [`LOOK`].
    Pending(Ticket),
    /// The same, also if a set arrives before: what a machine made is being copied.
    Copying(Ticket),
    /// The output is complete and certified.
    Done(Box<Ledger>),
    /// An engine was found out too late, or is a suspect: nothing of the output so far holds. The CPU is to do
    /// the part anew.
    Anew,
}

impl Relay {
    /// A part that is merged by `recipe` on the engine of `place`, or on the CPU. Its output is not certified
    /// if it is `trusted`.
    pub(crate) fn new(
        engines: Arc<Engines>,
        place: Option<Place>,
        recipe: Arc<Recipe>,
        copier: Copier,
        trusted: bool,
        tell: Tell,
    ) -> Result<Relay> {
        let rt = copier.rt.clone();
        let mut opened = None;
        if let Some(mut place) = place {
            match guarded(|| place.engine().open(recipe.clone())) {
                Ok(Ok(session)) => opened = Some((session, place)),
                Ok(Err(refusal)) => {
                    let error = refused(&place, &refusal);
                    replaced(&mut place, Why::Refused, &error, rt.now(), &tell);
                }
                Err(panic) => replaced(&mut place, Why::Failed, &panic, rt.now(), &tell),
            }
        }
        let (session, machine) = match opened {
            Some((session, place)) => {
                let one_in = if trusted { 0 } else { place.caps().prove };
                let prover = Prover::new(one_in, rt.seed("prove") ^ rt.now().0);
                (session, Some(Machine::new(place, prover)))
            }
            None => {
                let cpu = engines.cpu();
                let session = cpu.open(recipe.clone());
                (session.map_err(|refusal| cpu_refused(cpu, &refusal))?, None)
            }
        };
        let caps = machine.as_ref().map_or_else(|| engines.cpu().caps(), |m| *m.place.caps());
        Ok(Relay {
            engines,
            recipe,
            rt,
            copier,
            tell,
            session: Seat(Some(session)),
            batches: VecDeque::new(),
            waiting: VecDeque::new(),
            last: false,
            sealed: false,
            certifier: (!trusted).then(|| Certifier::new(caps.certify)),
            machine,
            believed: None,
            suspect: None,
            has_small_sets: false,
        })
    }

    /// The engine other than the CPU whose output is part of what was made.
    pub(crate) fn into_place(self) -> Option<Place> {
        self.believed
    }

    /// Who is to blame if the CPU does the part anew, and does not fail.
    pub(crate) fn into_suspect(self) -> Option<Suspect> {
        self.suspect
    }

    /// What sets for the engine at work are to be like.
    pub(crate) fn wants(&self) -> Wants {
        let Some(m) = &self.machine else {
            return Wants { caps: self.engines.cpu().caps(), share: None, engine: None };
        };
        let caps = caps_for(&**m.place.engine(), &self.recipe).unwrap_or(*m.place.caps());
        Wants { caps, share: Some(m.place.share().clone()), engine: Some(m.place.engine().clone()) }
    }

    /// For want of memory sets have no more than so many bytes, and not what the engine wants.
    pub(crate) fn cut_short(&mut self, (set, wanted): (u64, u64)) {
        let Some(machine) = self.machine.as_ref().filter(|_| !self.has_small_sets) else { return };
        self.has_small_sets = true;
        machine.place.has_small_sets();
        let why = format!(
            "sets of {set} bytes and not of {wanted}: buffer_bytes leaves no more beside the buffers of jobs; \
             raise it, or memory_budget"
        );
        (self.tell)(Told::SmallSets, machine.place.caps().name, why);
    }

    /// Whether another set, or the end of them, would be taken now.
    ///
    /// # Errors
    /// As [`Relay::poll`].
    pub(crate) fn has_room(&mut self) -> Result<bool> {
        self.hand_over()?;
        Ok(self.waiting.is_empty() && !self.last)
    }

    /// Hands over the next set.
    ///
    /// # Errors
    /// As [`Relay::poll`].
    pub(crate) fn offer(&mut self, set: BlockSet) -> Result<()> {
        self.waiting.push_back(set);
        self.hand_over()
    }

    /// No more sets come.
    ///
    /// # Errors
    /// As [`Relay::poll`].
    pub(crate) fn seal(&mut self) -> Result<()> {
        self.last = true;
        self.hand_over()
    }

    /// Hands sets that wait to the session while it has room.
    fn hand_over(&mut self) -> Result<()> {
        while let Some(set) = self.waiting.pop_front() {
            let Some(machine) = &mut self.machine else {
                if let Offer::Full(set) = self.session.session().offer(set) {
                    self.waiting.push_front(set);
                    return Ok(());
                }
                continue;
            };
            let caps = caps_for(&**machine.place.engine(), &self.recipe);
            let caps = caps.unwrap_or(*machine.place.caps());
            // What it holds has a bound, however much it would take.
            if machine.kept.len() >= caps.sets_in_flight {
                self.waiting.push_front(set);
                return Ok(());
            }
            if let Some(e) = too_large(&set, &caps) {
                self.waiting.push_front(set);
                self.go_on_with_cpu(Why::TooLarge, &e)?;
                continue;
            }
            match guarded(|| self.session.session().offer(set.clone())) {
                Ok(Offer::Taken) => machine.kept.push_back(set),
                Ok(Offer::Full(_)) => {
                    self.waiting.push_front(set);
                    return Ok(());
                }
                Err(panic) => {
                    self.waiting.push_front(set);
                    self.go_on_with_cpu(Why::Failed, &panic)?;
                }
            }
        }
        if self.last && !self.sealed && self.waiting.is_empty() {
            self.sealed = true;
            if let Err(panic) = guarded(|| self.session.session().seal()) {
                self.go_on_with_cpu(Why::Failed, &panic)?;
            }
        }
        Ok(())
    }

    /// Does a slice of work. `out` has certified products afterwards, which are to be taken. What a machine made lies
    /// as in the files: `phase` is how far behind a multiple of a page the file that is open has come.
    ///
    /// # Errors
    /// Corruption of the input, found by the CPU from the beginning of the part; Internal if the CPU's own
    /// output is refused.
    pub(crate) fn poll(&mut self, out: &mut Products, phase: usize) -> Result<Relayed> {
        if self.machine.is_some() {
            return self.poll_machine(out, phase);
        }
        if self.believed.is_none() {
            return self.poll_cpu(out);
        }
        // Over a carry that lies even the kernel may panic.
        match guarded(|| self.poll_cpu(out)) {
            Ok(Ok(relayed)) => Ok(relayed),
            Ok(Err(error)) => Ok(self.suspect(&error, Fell::Failed, out)),
            Err(panic) => Ok(self.suspect(&panic, Fell::Panicked, out)),
        }
    }

    fn poll_cpu(&mut self, out: &mut Products) -> Result<Relayed> {
        let progress = self.session.session().poll(out);
        if let Some(certifier) = &mut self.certifier {
            certifier.read(&self.recipe, out)?;
        }
        Ok(match progress {
            Progress::More => Relayed::More,
            Progress::Starved => Relayed::Starved,
            Progress::Pending(ticket) => Relayed::Pending(ticket),
            Progress::Done(ledger) => {
                if let Some(certifier) = self.certifier.take() {
                    certifier.finish(&ledger)?;
                }
                Relayed::Done(ledger)
            }
            Progress::Failed(fault) => return Err(fault.error().clone()),
        })
    }

    /// The CPU failed over an engine's carry. If each set was proven, the carry is what the CPU makes itself; and
    /// a panic may be the user's code. Else it shows when the part is done.
    fn suspect(&mut self, error: &Error, fell: Fell, out: &mut Products) -> Relayed {
        out.clear();
        if let Some(place) = self.believed.take() {
            (self.tell)(Told::Replaced, place.caps().name, format!("in doubt: {error}"));
            if fell == Fell::Failed && !place.is_proven() {
                self.suspect = Some(Suspect { place, error: error.clone() });
            }
        }
        Relayed::Anew
    }

    /// What an engine returned is wrong, and nothing of it is believed.
    fn disbelieve(&mut self, mut place: Place, error: &Error, out: &mut Products) -> Relayed {
        out.clear();
        replaced(&mut place, Why::Disproved, error, self.rt.now(), &self.tell);
        Relayed::Anew
    }

    fn poll_machine(&mut self, out: &mut Products, phase: usize) -> Result<Relayed> {
        if let Some(doubt) = self.machine.as_ref().and_then(|m| m.place.doubt()) {
            return self.disprove(&doubt, out);
        }
        let batch = match self.batches.pop_front() {
            Some(batch) => batch,
            None => self.next_batch(out, phase),
        };
        if let Ok((_, Copied::UnderWay(copying))) = &batch.answer
            && !copying.ticket().is_done()
        {
            let (ticket, phase) = (copying.ticket().clone(), copying.end());
            self.batches.push_front(batch);
            return Ok(self.meanwhile(out, phase, ticket));
        }
        self.take_batch(batch, out)
    }

    /// Takes a batch that is copied, if it is what it should be.
    fn take_batch(&mut self, batch: Batch, out: &mut Products) -> Result<Relayed> {
        let Batch { began, offered, sealed, answer } = batch;
        let (progress, products) = match answer {
            Ok(answer) => answer,
            Err(Broke::Gone(why, e)) => return self.replace(why, &e, out),
            Err(Broke::Panicked(e)) => return self.unproven(&e, out),
        };
        let products = match products {
            Copied::UnderWay(copying) => guarded(|| copying.finish()).and_then(|products| products),
            Copied::Whole(products) => Ok(products),
        };
        // Neither memory that the machine still has nor a panic in reading it gets any further.
        *out = match products {
            Ok(products) => products,
            Err(panic) => return self.unproven(&panic, out),
        };
        let read = match guarded(|| self.read(out, &progress, offered, sealed)) {
            Ok(Ok(read)) => read,
            Ok(Err(e)) => return self.disprove(&e, out),
            Err(panic) => return self.unproven(&panic, out),
        };
        let machine = self.machine.as_mut().expect("the caller saw it");
        match guarded(|| machine.prove(&self.recipe, out, &progress)) {
            Ok(Ok(())) => {}
            Ok(Err(e)) => return self.disprove(&e, out),
            Err(panic) => return self.unproven(&panic, out),
        }
        machine.take(read.sets, out);
        let later = self.batches.iter_mut();
        later.for_each(|batch| batch.offered = batch.offered.saturating_sub(read.sets));
        self.certifier = read.certifier.or(self.certifier.take());
        if let Progress::Done(ledger) = progress {
            return Ok(self.settle(ledger, out));
        }
        let now = self.rt.now();
        let idle = machine.kept.is_empty() && self.waiting.is_empty() && !self.sealed;
        machine.listen(&progress, idle || !out.is_empty(), began, now);
        if machine.silent > GRACE {
            let silent = machine.silent;
            let predicted = guarded(|| self.session.session().predicted()).unwrap_or_default();
            let machine = self.machine.as_ref().expect("the caller saw it");
            if silent > machine.patience(predicted) {
                let e = Error::new(ErrorKind::Io, format!("silent for {silent:?}"));
                return self.replace(Why::Hung, &e, out);
            }
        }
        Ok(match progress {
            Progress::Starved => Relayed::Starved,
            Progress::Pending(ticket) => Relayed::Pending(ticket),
            _ => Relayed::More,
        })
    }

    /// A batch is being copied, up to so many bytes behind a page: the machine is asked for the one behind it.
    fn meanwhile(&mut self, out: &mut Products, phase: usize, ticket: Ticket) -> Relayed {
        if self.batches.len() > 1 {
            return Relayed::Copying(ticket);
        }
        let batch = self.next_batch(out, phase);
        match batch.answer {
            Ok((progress, Copied::Whole(products)))
                if products.is_empty() && !matches!(progress, Progress::Done(_)) =>
            {
                *out = products;
                match progress {
                    Progress::More => Relayed::More,
                    // What it waits for is asked for when there is nothing else to wait for.
                    _ => Relayed::Copying(ticket),
                }
            }
            answer => {
                self.batches.push_back(Batch { answer, ..batch });
                Relayed::Copying(ticket)
            }
        }
    }

    /// Asks the machine for its next batch, and begins to copy it.
    fn next_batch(&mut self, out: &mut Products, phase: usize) -> Batch {
        let began = self.rt.now();
        let offered = self.machine.as_ref().map_or(0, |machine| machine.kept.len());
        let answer = match guarded(|| self.session.session().poll(out)) {
            Ok(Progress::Failed(Fault::Unsuitable(e))) => Err(Broke::Gone(Why::Unsuitable, e)),
            Ok(Progress::Failed(Fault::Engine(e) | Fault::Input(e))) | Err(e) => {
                Err(Broke::Gone(Why::Failed, e))
            }
            Ok(progress) => {
                let looks = self.certifier.as_ref().is_some_and(Certifier::looks_at_sums);
                let kind = looks.then_some(self.recipe.checksum);
                let products = std::mem::take(out);
                match guarded(|| self.copier.begin(products, phase, kind)) {
                    Ok(Ok(products)) => Ok((progress, products)),
                    Ok(Err(e)) => Err(Broke::Gone(Why::Failed, e)),
                    Err(panic) => Err(Broke::Panicked(panic)),
                }
            }
        };
        if answer.is_err() {
            // Whatever it left there counts for nothing.
            out.clear();
        }
        Batch { began, offered, sealed: self.sealed, answer }
    }

    /// Reads a batch of an engine other than the CPU. When the engine was asked for it, the engine had so many sets that were
    /// `offered` and not taken, and knew of no more to come if it is `sealed`. Nothing has changed if the batch is refused:
    /// the carry before it, the sets that end in it, and the carry after it, which is in its last item, are all here.
    fn read(
        &self,
        out: &Products,
        progress: &Progress,
        offered: usize,
        sealed: bool,
    ) -> Result<Read> {
        let machine = self.machine.as_ref().expect("the caller saw it");
        let done = matches!(progress, Progress::Done(_));
        let mut sets = 0;
        for item in out.items() {
            let Item::SetDone(ended) = item else { continue };
            if machine.kept.get(sets).is_none_or(|set| set.no != ended.no) {
                return Err(broken(format!("set {} ends, which is not the next", ended.no)));
            }
            sets += 1;
        }
        if sets > offered {
            return Err(broken("a set ends that was not there when it was asked"));
        }
        let whole = out.items().last().is_none_or(|item| matches!(item, Item::SetDone(_)));
        if !whole && !done {
            return Err(broken("a batch ends in the middle of a set"));
        }
        if done && (sets < offered || !sealed) {
            return Err(broken("the output is called complete before the last set"));
        }
        if matches!(progress, Progress::Starved) && (sets < offered || sealed) {
            return Err(broken("sets are called merged whose output is not there"));
        }
        let mut certifier = self.certifier.as_ref().filter(|_| !out.is_empty()).cloned();
        if let Some(certifier) = &mut certifier {
            certifier.read(&self.recipe, out)?;
        }
        Ok(Read { sets, certifier })
    }

    /// What the engine returned is not what it should be. Where every set is proven the last carry holds; else
    /// the sets that were taken before, and not chosen, may be lies as well.
    fn disprove(&mut self, error: &Error, out: &mut Products) -> Result<Relayed> {
        if self.machine.as_ref().is_some_and(Machine::holds) {
            return self.replace(Why::Disproved, error, out);
        }
        let machine = self.machine.take().expect("the caller saw it");
        Ok(self.disbelieve(machine.place, error, out))
    }

    /// What the engine returned could not be read, or not be merged again, because that panicked: over bytes or a
    /// carry that lie, or in the user's code.
    fn unproven(&mut self, panic: &Error, out: &mut Products) -> Result<Relayed> {
        if self.machine.as_ref().is_some_and(Machine::holds) {
            return self.replace(Why::Failed, panic, out);
        }
        let mut machine = self.machine.take().expect("the caller saw it");
        replaced(&mut machine.place, Why::Failed, panic, self.rt.now(), &self.tell);
        self.believed = Some(machine.place);
        Ok(self.suspect(panic, Fell::Panicked, out))
    }

    /// The output is complete: its ledger must agree with all of it.
    fn settle(&mut self, ledger: Box<Ledger>, out: &mut Products) -> Relayed {
        let agreed = self.certifier.take().map_or(Ok(()), |certifier| certifier.finish(&ledger));
        let machine = self.machine.take().expect("the caller saw it");
        match agreed {
            Ok(()) => {
                let mut place = machine.place;
                place.succeeded();
                self.believed = Some(place);
                Relayed::Done(ledger)
            }
            Err(error) => self.disbelieve(machine.place, &error, out),
        }
    }

    /// The engine at work is replaced; products of its last batch do not count.
    fn replace(&mut self, why: Why, error: &Error, out: &mut Products) -> Result<Relayed> {
        out.clear();
        self.go_on_with_cpu(why, error)?;
        Ok(Relayed::More)
    }

    /// Goes on with the CPU from the last carry, with the sets offered since.
    fn go_on_with_cpu(&mut self, why: Why, error: &Error) -> Result<()> {
        let Some(mut machine) = self.machine.take() else { return Ok(()) };
        self.batches.clear();
        replaced(&mut machine.place, why, error, self.rt.now(), &self.tell);
        match why {
            Why::Hung => machine.place.owes(machine.asked.take().map(|(ticket, _)| ticket)),
            // It may hold the sets still, and gives up others later: what it holds of all has a bound.
            Why::Failed | Why::Unsuitable => machine.place.owes(None),
            Why::Refused | Why::TooLarge | Why::Disproved => {}
        }
        let cpu = self.engines.cpu();
        let began = machine.carry.is_none();
        let session = match machine.carry.take() {
            None => cpu.open(self.recipe.clone()),
            Some(carry) => cpu.resume(self.recipe.clone(), *carry),
        };
        let session = session.map_err(|refusal| cpu_refused(cpu, &refusal))?;
        self.session = Seat(Some(session));
        self.sealed = false;
        machine.kept.drain(..).rev().for_each(|set| self.waiting.push_front(set));
        self.believed = (!began).then_some(machine.place);
        self.hand_over()
    }
}

/// How the CPU ended over an engine's carry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fell {
    Failed,
    Panicked,
}

/// What a machine answered.
struct Batch {
    /// When it was asked.
    began: Mono,
    /// How many sets it had then, and whether it knew that there are no more.
    offered: usize,
    sealed: bool,
    answer: std::result::Result<(Progress, Copied), Broke>,
}

/// Why a machine has no answer.
enum Broke {
    /// It says so, or panicked; or there is no memory for what it made.
    Gone(Why, Error),
    /// What it made could not be read, as that panicked.
    Panicked(Error),
}

/// A batch that was read and may be taken.
struct Read {
    /// How many sets end in it.
    sets: usize,
    /// The certifier behind it; none if it is empty, or nothing is certified.
    certifier: Option<Certifier>,
}

/// Counts and tells that the CPU takes over.
fn replaced(place: &mut Place, why: Why, error: &Error, now: Mono, tell: &Tell) {
    place.lost(why, error, now);
    tell(Told::Replaced, place.caps().name, format!("{why}: {error}"));
}

/// Why an engine can't be offered this set, if so.
fn too_large(set: &BlockSet, caps: &Caps) -> Option<Error> {
    let (bytes, runs) = (set.bytes(), set.runs.len());
    if bytes > caps.max_set_bytes {
        return Some(Error::unsupported(format!(
            "a set of {bytes} bytes, and it takes {} at most",
            caps.max_set_bytes
        )));
    }
    (runs > usize::from(caps.max_ways)).then(|| {
        Error::unsupported(format!("a set of {runs} runs, and it takes {} at most", caps.max_ways))
    })
}

fn refused(place: &Place, refusal: &Refusal) -> Error {
    Error::unsupported(format!("engine {} refused: {refusal}", place.caps().name))
}

fn cpu_refused(cpu: &dyn Engine, refusal: &Refusal) -> Error {
    Error::unsupported(format!("engine {} refused: {refusal}", cpu.caps().name))
}

#[cold]
fn broken(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Internal, format!("engine output refused: {}", what.into()))
}
