//! What limits writing now: the moment is taken out under the core's lock and thought over without it
//! (`lithify_reports::explain`).

use lithify_reports::explain::{Explanation, Moment};

use crate::background::upkeep::HANGS;
use crate::shell::Shell;

impl Shell {
    /// What limits writing now.
    pub fn explain(&self) -> Explanation {
        let now = self.shared.resources.env.rt.now();
        let (outlook, refusal) = {
            let core = self.core();
            (core.outlook(now.0), core.read_only().map(ToString::to_string))
        };
        let watched = self.shared.resources.files.watched.as_ref();
        Moment {
            now,
            outlook,
            refusal,
            gate: self.family.gate.report(),
            at_work: self.at_work(),
            hanging: watched.map_or_else(Vec::new, |watched| watched.look(HANGS)),
            engines: self.shared.resources.engines.reports(),
            prepared: self.shared.writes.prepared.len(),
            live: !self.shared.is_read_only_handle(),
        }
        .explain()
    }
}
