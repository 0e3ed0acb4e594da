//! The gate under chosen schedules (`cargo xtask shuttle`).

use lithify_env::sync::Arc;
use lithify_env::{OsRt, RtOptions};
use lithify_testkit::schedules::{explore, thread};

use super::*;

struct Scene {
    gate: Gate,
    rt: OsRt,
    metrics: Metrics,
    events: Events,
}

impl Scene {
    fn new() -> Arc<Scene> {
        let rt = OsRt::new(RtOptions::default());
        let (metrics, events) = (Metrics::new(), Events::new(false));
        Arc::new(Scene { gate: Gate::new(None), rt, metrics, events })
    }
    fn press(&self, stop: Option<Cause>) {
        let pressure = Pressure { stop, ..Pressure::default() };
        self.gate.press(pressure, self.rt.now(), &self.events);
    }
    fn pass(&self) -> Result<()> {
        while let Some(wait) = self.gate.ask(false, || self.rt.now())? {
            self.gate.sit_out(&wait, &self.rt, &self.metrics);
        }
        Ok(())
    }
}

/// No writer sleeps through the end of a stop.
#[test]
fn a_stop_ends_for_everyone() {
    explore("a stop ends for everyone", || {
        let scene = Scene::new();
        scene.press(Some(Cause::MemtableLimit));
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let scene = scene.clone();
                thread::spawn(move || scene.pass().unwrap())
            })
            .collect();
        scene.press(Some(Cause::L0Files));
        scene.press(None);
        writers.into_iter().for_each(|w| w.join().unwrap());
        let waited = scene.gate.waited.iter().map(|w| w.load(Ordering::Relaxed));
        waited.map(|nanos| nanos > 0).collect::<Vec<_>>()
    });
}

/// A close, a refusal and the failure of what is waited for each end every wait, with their error.
#[test]
fn no_wait_outlasts_its_reason() {
    explore("no wait outlasts its reason", || {
        let scene = Scene::new();
        scene.press(Some(Cause::MemtableLimit));
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let scene = scene.clone();
                thread::spawn(move || scene.pass().unwrap_err().kind())
            })
            .collect();
        let closer = {
            let scene = scene.clone();
            thread::spawn(move || scene.gate.hurry(Error::new(ErrorKind::ShuttingDown, "closed")))
        };
        scene.gate.trouble(Some(Error::new(ErrorKind::NoSpace, "full")));
        scene.gate.trouble(None);
        scene.gate.refuse(Error::new(ErrorKind::ReadOnly, "broken"));
        closer.join().unwrap();
        let kinds: Vec<_> = writers.into_iter().map(|w| w.join().unwrap()).collect();
        assert_eq!(scene.pass().unwrap_err().kind(), ErrorKind::ReadOnly);
        kinds.iter().map(|kind| format!("{kind:?}")).collect::<Vec<_>>()
    });
}
