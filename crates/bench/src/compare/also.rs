//! Further runs of a comparison: one workload in an empty store, with some flags of its own.

use anyhow::{Context, Result, bail};

use crate::report::RunReport;
use crate::settings::BenchSettings;

/// `WORKLOAD:FLAG=VALUE[:FLAG=VALUE ..]`, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Also {
    workload: String,
    flags: Vec<(String, String)>,
}

impl Also {
    /// Reads it as it stands on the command line.
    pub(super) fn parse(text: &str) -> Result<Also> {
        let mut parts = text.split(':');
        let workload = parts.next().unwrap_or_default().to_owned();
        let flag = |part: &str| {
            let pair =
                part.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
            pair.with_context(|| format!("--also {text}: {part} is no FLAG=VALUE"))
        };
        let flags = parts.map(flag).collect::<Result<Vec<_>>>()?;
        if flags.is_empty() {
            bail!("--also {text}: give WORKLOAD:FLAG=VALUE, such as fillrandom:threads=4");
        }
        Ok(Also { workload, flags })
    }

    /// What tells its figures apart from those of the same workload with the flags of all.
    fn suffix(&self) -> String {
        self.flags.iter().map(|(name, value)| format!(" {name}={value}")).collect()
    }

    /// The settings of its run.
    pub(super) fn settings(&self, all: &BenchSettings) -> Result<BenchSettings> {
        let mut fields = serde_json::to_value(all)?;
        for (name, value) in &self.flags {
            let Some(field) = fields.get_mut(name) else {
                bail!("--also: there is no flag --{name}");
            };
            *field = serde_json::from_str(value).unwrap_or_else(|_| value.as_str().into());
        }
        fields["workloads"] = serde_json::json!([self.workload]);
        let what = || format!("--also {}:{}", self.workload, self.suffix().trim());
        let settings: BenchSettings = serde_json::from_value(fields).with_context(what)?;
        settings.resolve()
    }

    /// Puts what its run reports behind what `main`, the run with the flags of all, does.
    pub(super) fn join(&self, main: &mut RunReport, mut own: RunReport) {
        for workload in &mut own.workloads {
            workload.workload += &self.suffix();
        }
        main.workloads.append(&mut own.workloads);
        main.valid &= own.valid;
        main.error = main.error.take().or(own.error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_its_own_stand_over_those_of_all() {
        let all = crate::tests::settings(&["--workloads", "fillrandom", "--threads", "1"]);
        let also = Also::parse("fillrandom:threads=4:wal=sync").unwrap();
        let own = also.settings(&all).unwrap();
        assert_eq!((own.threads, own.wal), (4, crate::WalMode::Sync));
        assert_eq!(own.num(), all.num());
        assert_eq!(also.suffix(), " threads=4 wal=sync");
        for wrong in ["fillrandom", "fillrandom:threads", "x:threads=4", "fillrandom:nothing=1"] {
            let refused = Also::parse(wrong).and_then(|also| also.settings(&all));
            assert!(refused.is_err(), "{wrong}");
        }
    }
}
