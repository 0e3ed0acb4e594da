//! `gpu-check host`: what the thread of a part costs beside a GPU that answers at once, on memory-backed files, against
//! the CPU engine's; design line (a) 6.
//!
//! Both compact copies of one database: one part, whole tables with their filters written and synced. On this side
//! the device plays what the emulator made of the same job before (`Replay`), certified by sums; on the other is the
//! merge, certified by metadata as in a store. The figure is `compaction_cpu_nanos`: processor time of the part's thread,
//! all of its steps. Medians of alternating rounds.

use std::process::ExitCode;

use anyhow::Result;

#[cfg(not(feature = "emu"))]
pub(crate) fn run(_values: &[&str]) -> Result<ExitCode> {
    anyhow::bail!("build with the feature emu: the emulator makes what is played")
}

#[cfg(feature = "emu")]
pub(crate) fn run(values: &[&str]) -> Result<ExitCode> {
    emulated::run(values)
}

#[cfg(feature = "emu")]
mod emulated {
    use std::sync::Arc;
    use std::time::Duration;

    use lithify_engine::{
        BlockSet, Caps, Engine, Offer, Products, Progress, Recipe, Refusal, Session,
    };
    use lithify_engine_gpu::replay::{Recorder, Replay, Tape};
    use lithify_engine_gpu::{Device, Emu, GpuEngine, GpuOptions};

    use super::*;
    use crate::Asked;
    use crate::machine::Machine;
    use crate::steps::files::{compact, fill, median, place};

    const BYTES: u64 = 24 << 20;
    const SET: u64 = 4 << 20;
    const ROUNDS: usize = 7;
    const WANTED: [(usize, f64); 4] = [(32, 3.61), (64, 3.28), (128, 2.76), (256, 2.30)];

    pub(super) fn run(values: &[&str]) -> Result<ExitCode> {
        let asked = Asked { emulator: true, quick: true, ..Asked::default() };
        let machine = Machine::new(&asked)?;
        let values: Vec<usize> = match values.is_empty() {
            true => WANTED.map(|(value, _)| value).to_vec(),
            false => values.iter().map(|of| of.parse()).collect::<Result<_, _>>()?,
        };
        println!("value   cpu ns   beside a GPU ns   ratio   wanted   wall ratio");
        for value in values {
            row(&machine, value)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// An engine that is waited for however long it takes, as the emulator takes seconds for a set.
    struct Patient(GpuEngine);
    struct PatientSession(Box<dyn Session>);

    impl Engine for Patient {
        fn caps(&self) -> Caps {
            self.0.caps()
        }
        fn caps_for(&self, recipe: &Recipe) -> Caps {
            self.0.caps_for(recipe)
        }
        fn open(&self, recipe: Arc<Recipe>) -> Result<Box<dyn Session>, Refusal> {
            Ok(Box::new(PatientSession(self.0.open(recipe)?)))
        }
        fn report(&self) -> Vec<(&'static str, f64)> {
            self.0.report()
        }
    }
    impl Session for PatientSession {
        fn offer(&mut self, set: BlockSet) -> Offer {
            self.0.offer(set)
        }
        fn seal(&mut self) {
            self.0.seal();
        }
        fn poll(&mut self, out: &mut Products) -> Progress {
            self.0.poll(out)
        }
        fn predicted(&self) -> Option<Duration> {
            Some(Duration::from_secs(600))
        }
        fn cancel(self: Box<Self>) {
            self.0.cancel();
        }
    }

    fn row(machine: &Machine, value: usize) -> Result<()> {
        let place = place()?;
        let at = |name: &str| place.path().join(name);
        fill(&at("from"), value, BYTES)?;
        let options = GpuOptions { prove: 1 << 20, ..machine.options(1, SET) };
        let device = Recorder::new(Emu::new(1));
        let (shape, tape) = (device.shape(), device.tape());
        let engine = GpuEngine::new(Box::new(device), options)?;
        let engine = Arc::new(Patient(engine));
        let made = compact(machine, &at("from"), &at("made"), Some(engine))?;
        let tape: Tape = tape.lock().clone();
        let (mut cpu, mut wall) = ([const { Vec::new() }; 2], [const { Vec::new() }; 2]);
        for _ in 0..ROUNDS {
            let device = Box::new(Replay::new(shape, tape.clone()));
            let engine = GpuEngine::on(&machine.rt, device, options)?;
            let by = [
                compact(machine, &at("from"), &at("cpu"), None)?,
                compact(machine, &at("from"), &at("gpu"), Some(Arc::new(engine)))?,
            ];
            for (i, one) in by.iter().enumerate() {
                assert_eq!((one.holds, one.entries), (made.holds, made.entries), "outputs differ");
                cpu[i].push(1e9 * one.cpu / one.entries);
                wall[i].push(one.seconds);
            }
        }
        let [cpu, gpu] = cpu.map(median);
        let [wall_cpu, wall_gpu] = wall.map(median);
        let wanted = WANTED.iter().find(|(of, _)| *of == value).map_or(f64::NAN, |(_, of)| *of);
        println!(
            "{value:>5} {cpu:>8.1} {gpu:>17.1} {:>7.2} {wanted:>8.2} {:>12.2}",
            cpu / gpu,
            wall_cpu / wall_gpu
        );
        Ok(())
    }
}
