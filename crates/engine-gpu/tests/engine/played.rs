//! A driver that tests play: what it is asked for happens late, stream by stream in a drawn order, as on a GPU; a
//! plan says which call fails. Kernels run on the emulator where a test has it, and nowhere else.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use lithify_engine_gpu::arena::{FarEnd, Pinned};
use lithify_engine_gpu::device::Kernel;
use lithify_engine_gpu::driver::{CardFacts, Code, Driver, Signal, Stream, Transfer};
#[cfg(feature = "emu")]
use lithify_engine_gpu::{Device, Emu};
use lithify_env::sync::{Arc, Mutex};

/// Something in a stream.
enum Asked {
    Up(FarEnd, Range<usize>, u64),
    Send(Vec<u8>, u64),
    Down(u64, FarEnd, Range<usize>),
    Launch(u32, u32, Vec<u64>),
    Record(usize, u64),
    Wait(usize, u64),
}

/// What a driver says of itself, and which call fails: its number among all calls, with what code.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) is_there: bool,
    pub(crate) version: u32,
    pub(crate) cards: u32,
    pub(crate) capability: u32,
    pub(crate) shape: Vec<u64>,
    /// Memory of the host comes in multiples of so many bytes.
    pub(crate) grain: usize,
    pub(crate) fails: Option<(&'static str, u64, Code)>,
}

/// Its state, which a test may look at.
#[derive(Default)]
pub(crate) struct Played {
    dice: u64,
    streams: Vec<VecDeque<Asked>>,
    /// By signal, how often it was recorded, and which of these has happened.
    signals: Vec<(u64, u64)>,
    /// By signal, when it last happened: a nanosecond is a thing done in a stream.
    times: BTreeMap<usize, u64>,
    done: u64,
    /// Calls by name.
    pub(crate) calls: BTreeMap<&'static str, u64>,
    /// Calls after the one that failed.
    pub(crate) late: u64,
    failed: bool,
    /// Most copies of one call.
    pub(crate) together: usize,
    pub(crate) memory: BTreeMap<u64, Vec<u8>>,
    next: u64,
    /// Bytes of arenas, and the most that there were.
    pub(crate) pinned: usize,
    pub(crate) pinned_most: usize,
    #[cfg(feature = "emu")]
    emu: Option<Emu>,
}

#[derive(Clone)]
pub(crate) struct Driven {
    pub(crate) plan: Plan,
    pub(crate) state: Arc<Mutex<Played>>,
}

impl Driven {
    pub(crate) fn new(plan: Plan) -> Driven {
        Driven { plan, state: Arc::default() }
    }
    #[cfg(feature = "emu")]
    pub(crate) fn over(plan: Plan, emu: Emu, seed: u64) -> Driven {
        let driven = Driven::new(plan);
        let mut state = driven.state.lock();
        (state.emu, state.dice) = (Some(emu), seed);
        drop(state);
        driven
    }
    fn call(&self, name: &'static str) -> Result<(), Code> {
        let mut state = self.state.lock();
        state.late += u64::from(state.failed);
        let n = state.calls.entry(name).or_default();
        *n += 1;
        match self.plan.fails {
            Some((of, at, code)) if of == name && at == *n => {
                state.failed = code != Code(2);
                Err(code)
            }
            _ => Ok(()),
        }
    }
}

impl Played {
    fn draw(&mut self, below: u64) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % below
    }
    /// Some streams move on.
    fn work(&mut self) {
        for _ in 0..self.draw(6) {
            let no = self.draw(self.streams.len().max(1) as u64) as usize;
            let Some(asked) = self.streams.get_mut(no).and_then(VecDeque::pop_front) else {
                continue;
            };
            self.done += 1;
            match asked {
                Asked::Wait(signal, nth) if self.signals[signal].1 < nth => {
                    self.streams[no].push_front(Asked::Wait(signal, nth));
                }
                Asked::Wait(..) => {}
                Asked::Record(signal, nth) => {
                    self.signals[signal].1 = nth;
                    self.times.insert(signal, self.done);
                }
                Asked::Up(from, part, to) => {
                    let bytes = from.read(part);
                    self.write(to, &bytes);
                }
                Asked::Send(bytes, to) => self.write(to, &bytes),
                Asked::Down(from, mut to, part) => {
                    let bytes = self.read(from, part.len());
                    to.write(part.start, &bytes);
                }
                Asked::Launch(kernel, ctas, params) => self.launch(kernel, ctas, &params),
            }
        }
    }
    #[cfg(not(feature = "emu"))]
    fn launch(&mut self, kernel: u32, ctas: u32, params: &[u64]) {
        assert!(ctas > 0 && !params.is_empty() && (kernel as usize) < Kernel::ALL.len());
    }
    #[cfg(feature = "emu")]
    fn launch(&mut self, kernel: u32, ctas: u32, params: &[u64]) {
        use lithify_engine_gpu::device::Queue;
        let Some(emu) = &mut self.emu else { return };
        emu.launch(Queue::Work(0), Kernel::ALL[kernel as usize], ctas, params).unwrap();
    }
    fn write(&mut self, to: u64, bytes: &[u8]) {
        #[cfg(feature = "emu")]
        if let Some(emu) = &mut self.emu {
            use lithify_engine_gpu::device::Queue;
            let arena = emu.arena(bytes.len()).unwrap();
            emu.bytes(&arena).unwrap().copy_from_slice(bytes);
            emu.upload(Queue::Up, &arena, 0..bytes.len(), to).unwrap();
            emu.drop_arena(arena);
            return;
        }
        let (from, memory) = self.memory.range_mut(..=to).next_back().unwrap();
        let at = (to - from) as usize;
        memory[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn read(&mut self, from: u64, n: usize) -> Vec<u8> {
        #[cfg(feature = "emu")]
        if let Some(emu) = &mut self.emu {
            use lithify_engine_gpu::device::Queue;
            let arena = emu.arena(n).unwrap();
            emu.download(Queue::Down, from, &arena, 0..n).unwrap();
            let bytes = emu.bytes(&arena).unwrap().to_vec();
            emu.drop_arena(arena);
            return bytes;
        }
        let (base, memory) = self.memory.range(..=from).next_back().unwrap();
        let at = (from - base) as usize;
        memory[at..at + n].to_vec()
    }
}

impl Driver for Driven {
    fn is_there(&self) -> bool {
        self.plan.is_there
    }
    fn version(&self) -> Result<u32, Code> {
        assert!(self.plan.is_there, "a library that is not there was called");
        self.call("version")?;
        Ok(self.plan.version)
    }
    fn count(&self) -> Result<u32, Code> {
        self.call("count")?;
        Ok(self.plan.cards)
    }
    fn take(&self, no: u32) -> Result<(), Code> {
        assert!(no < self.plan.cards, "a GPU that is not there was taken");
        self.call("take")
    }
    fn facts(&self) -> Result<CardFacts, Code> {
        self.call("facts")?;
        Ok(CardFacts {
            name: "a card that tests play".to_owned(),
            driver: self.plan.version,
            capability: self.plan.capability,
            processors: 2,
            copiers: 2,
            memory: 1 << 30,
            free: 1 << 30,
        })
    }
    fn load(&self, _image: &[u8]) -> Result<(), Code> {
        self.call("load")
    }
    fn kernels(&self, names: &[&str]) -> Result<(), Code> {
        assert_eq!(names.len(), Kernel::ALL.len());
        self.call("kernels")
    }
    fn words(&self, name: &str, out: &mut [u64]) -> Result<(), Code> {
        assert_eq!(name, "lithify_shape");
        self.call("words")?;
        let words = self.plan.shape.iter().chain(std::iter::repeat(&0));
        out.iter_mut().zip(words).for_each(|(to, word)| *to = *word);
        Ok(())
    }
    fn stream(&self) -> Result<Stream, Code> {
        self.call("stream")?;
        let mut state = self.state.lock();
        state.streams.push(VecDeque::new());
        Ok(Stream(state.streams.len() - 1))
    }
    fn signal(&self) -> Result<Signal, Code> {
        self.call("signal")?;
        let mut state = self.state.lock();
        state.signals.push((0, 0));
        Ok(Signal(state.signals.len() - 1))
    }
    fn alloc(&self, bytes: u64) -> Result<u64, Code> {
        self.call("alloc")?;
        let mut state = self.state.lock();
        let size = bytes as usize;
        #[cfg(feature = "emu")]
        if let Some(emu) = &mut state.emu {
            let address = emu.alloc(bytes).unwrap().address;
            state.memory.insert(address, Vec::new());
            return Ok(address);
        }
        state.next += (bytes + 4096).next_multiple_of(4096);
        let address = state.next;
        state.memory.insert(address, vec![0xa5; size]);
        Ok(address)
    }
    fn free(&self, address: u64) -> Result<(), Code> {
        self.call("free")?;
        assert!(self.state.lock().memory.remove(&address).is_some(), "given back twice");
        Ok(())
    }
    fn pin(&self, bytes: usize) -> Result<Pinned, Code> {
        self.call("pin")?;
        let bytes = bytes.next_multiple_of(self.plan.grain);
        let mut state = self.state.lock();
        state.pinned += bytes;
        state.pinned_most = state.pinned_most.max(state.pinned);
        Ok(Pinned::new(Box::leak(vec![0xa5; bytes].into_boxed_slice())))
    }
    fn unpin(&self, pinned: Pinned) -> Result<(), Code> {
        self.call("unpin")?;
        self.state.lock().pinned -= pinned.size();
        Ok(())
    }
    fn copy(&self, stream: Stream, copies: &[Transfer<'_>]) -> Result<(), Code> {
        self.call("copy")?;
        assert!(!copies.is_empty());
        let is_down = |of: &Transfer<'_>| matches!(of, Transfer::Down(..));
        assert!(
            copies.iter().all(|of| is_down(of) == is_down(&copies[0])),
            "both ways in one call"
        );
        let mut state = self.state.lock();
        state.together = state.together.max(copies.len());
        // In another order than they were asked for.
        let turn = state.draw(copies.len() as u64) as usize;
        for copy in copies[turn..].iter().chain(&copies[..turn]).rev() {
            let asked = match copy {
                Transfer::Up(from, part, to) => Asked::Up(FarEnd::new(from), part.clone(), *to),
                Transfer::Send(from, to) => Asked::Send(from.to_vec(), *to),
                Transfer::Down(from, to, part) => Asked::Down(*from, FarEnd::new(to), part.clone()),
            };
            state.streams[stream.0].push_back(asked);
        }
        Ok(())
    }
    fn launch(
        &self,
        stream: Stream,
        kernel: u32,
        ctas: u32,
        _threads: u32,
        params: &[u64],
    ) -> Result<(), Code> {
        self.call("launch")?;
        let asked = Asked::Launch(kernel, ctas, params.to_vec());
        self.state.lock().streams[stream.0].push_back(asked);
        Ok(())
    }
    fn record(&self, signal: Signal, stream: Stream) -> Result<(), Code> {
        self.call("record")?;
        let mut state = self.state.lock();
        let (nth, happened) = &mut state.signals[signal.0];
        assert_eq!(nth, happened, "an event that is under way was used again");
        *nth += 1;
        let asked = Asked::Record(signal.0, *nth);
        state.streams[stream.0].push_back(asked);
        Ok(())
    }
    fn query(&self, signal: Signal) -> Result<(), Code> {
        self.call("query")?;
        let mut state = self.state.lock();
        state.work();
        let (nth, happened) = state.signals[signal.0];
        if happened < nth { Err(Code(600)) } else { Ok(()) }
    }
    fn elapsed(&self, from: Signal, to: Signal) -> Result<f64, Code> {
        self.call("elapsed")?;
        let state = self.state.lock();
        for signal in [from, to] {
            let (nth, happened) = state.signals[signal.0];
            assert!(nth > 0 && happened == nth, "asked for the time of what has not happened");
        }
        Ok(state.times[&to.0] as f64 - state.times[&from.0] as f64)
    }
    fn wait(&self, stream: Stream, signal: Signal) -> Result<(), Code> {
        self.call("wait")?;
        let mut state = self.state.lock();
        let asked = Asked::Wait(signal.0, state.signals[signal.0].0);
        state.streams[stream.0].push_back(asked);
        Ok(())
    }
    fn close(&self) -> Result<(), Code> {
        self.call("close")?;
        let state = self.state.lock();
        // Where giving back failed, what failed stays.
        let is_whole = self.plan.fails.is_some() || (state.pinned == 0 && state.memory.is_empty());
        assert!(is_whole, "closed before all is given back");
        let mut under_way = state.streams.iter().flatten();
        let rests = under_way.all(|asked| matches!(asked, Asked::Wait(..) | Asked::Record(..)));
        assert!(rests, "closed while something is under way");
        Ok(())
    }
    fn name_of(&self, code: Code) -> String {
        format!("code {}", code.0)
    }
}
