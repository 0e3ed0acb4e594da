//! `lithify.h`: what RocksDB's interface has no words for, over the same handles. The last error of a thread in
//! parts, durability by level, settings by name, what a database explains of itself, and directories that are
//! checked, salvaged, taken over and handed back.
//!
//! Keeps: text goes out from `malloc`, to be released by `rocksdb_free`; words from a fixed list stay for ever.

use std::ffi::{c_char, c_void};
use std::fmt::Write as _;

use lithify::import::{ImportOptions, ImportProgress};
use lithify::{Durability, Error, ErrorKind};

use crate::callbacks::{ProgressFn, progress};
use crate::db::Database;
use crate::last::last;
use crate::options::Options;
use crate::raw::{c_text, export};
use crate::small::WriteOpts;

/// The kind's name, and what to do about errors of it.
fn words(kind: ErrorKind) -> (&'static std::ffi::CStr, &'static str) {
    match kind {
        ErrorKind::Corruption => {
            (c"Corruption", "restore the named file from a backup, or salvage what is readable")
        }
        ErrorKind::Io => (c"Io", "mend what the message names, and try again"),
        ErrorKind::NoSpace => (c"NoSpace", "free space; writes go on by themselves"),
        ErrorKind::LimitExceeded => (c"LimitExceeded", "make it smaller; nothing was written"),
        ErrorKind::Stalled => (c"Stalled", "try again later, or wait: clear no_slowdown"),
        ErrorKind::Locked => (c"Locked", "close it there, or open it for reading only"),
        ErrorKind::Fenced => (c"Fenced", "open it again, once the other process has closed it"),
        ErrorKind::NotCommitted => (c"NotCommitted", "write it again"),
        ErrorKind::OutcomeUnknown => {
            (c"OutcomeUnknown", "open it again, and read before you write it again")
        }
        ErrorKind::ReadOnly => (c"ReadOnly", "see the first error; close, and open it again"),
        ErrorKind::Unsupported => (c"Unsupported", "do what the message says instead"),
        ErrorKind::ShuttingDown => (c"ShuttingDown", "open the database again"),
        ErrorKind::Busy => (c"Busy", "begin the transaction again"),
        ErrorKind::Deadlock => (c"Deadlock", "begin the transaction again"),
        ErrorKind::TimedOut => (c"TimedOut", "begin again, or wait longer for locks"),
        ErrorKind::Cancelled => (c"Cancelled", "nothing: it was asked for"),
        ErrorKind::InvalidArgument => (c"InvalidArgument", "change the call; nothing was done"),
        ErrorKind::NotFound => (c"NotFound", "check the name or the path"),
        ErrorKind::MergeFailed => (c"MergeFailed", "mend the merge operator, or delete the key"),
        _ => (c"Internal", "report it, with the event log"),
    }
}

/// The class of a function in the list.
fn class_of(name: &str) -> Option<&'static std::ffi::CStr> {
    let line = include_str!("../symbols.txt").lines().find(|line| {
        let head = line.split('(').next().unwrap_or_default();
        head.rsplit(' ').next() == Some(name)
    });
    Some(match line?.split(' ').next()? {
        "exact" => c"exact",
        "noted" => c"noted",
        _ => c"refused",
    })
}

export! {
    fn lithify_version() -> *const c_char {
        Ok(concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast())
    }
    fn lithify_symbol_class(name: text) -> *const c_char {
        Ok(class_of(name).map_or(std::ptr::null(), std::ffi::CStr::as_ptr))
    }
    fn lithify_last_error_kind() -> *const c_char {
        Ok(last(|error| Some(words(error.kind()).0.as_ptr())).unwrap_or(std::ptr::null()))
    }
    fn lithify_last_error_advice() -> *mut c_char {
        Ok(last(|error| Some(c_text(words(error.kind()).1))).unwrap_or(std::ptr::null_mut()))
    }
    fn lithify_last_error_file() -> *mut c_char {
        Ok(last(|error| error.file().map(c_text)).unwrap_or(std::ptr::null_mut()))
    }
    fn lithify_last_error_offset() -> i64 {
        Ok(last(|error| error.offset()).and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
    }
    fn lithify_last_error_errno() -> i32 {
        Ok(last(|error| error.errno()).unwrap_or(0))
    }
    fn lithify_writeoptions_set_durability(options: &mut WriteOpts, level: text, errptr) {
        options.set_durability(match level {
            "no-wal" => Durability::NoWal,
            "buffered" => Durability::Buffered,
            "os" => Durability::Os,
            "sync" => Durability::Sync,
            _ => {
                let what = format!("durability is no-wal, buffered, os or sync, and not `{level}`");
                return Err(Error::invalid(what));
            }
        });
        Ok(())
    }
    fn lithify_options_set(options: &mut Options, name: text, value: text, errptr) {
        options.settings.set(name, value)
    }
    fn lithify_options_get(options: &Options, name: text, errptr) -> *mut c_char {
        let all = options.settings.explain();
        let found = all.iter().find(|setting| setting.name == name);
        let found = found.ok_or_else(|| Error::invalid(format!("there is no setting `{name}`")))?;
        Ok(c_text(&found.value))
    }
    fn lithify_set_setting(db: &Database, name: text, value: text, errptr) {
        db.set_setting(name, value)
    }
    fn lithify_settings(db: &Database) -> *mut c_char {
        let mut text = String::new();
        for setting in db.db().settings().explain() {
            let _ = writeln!(text, "{}={} # {}", setting.name, setting.value, setting.reason);
        }
        Ok(c_text(&text))
    }
    fn lithify_explain(db: &Database) -> *mut c_char {
        Ok(c_text(&db.db().explain().to_string()))
    }
    fn lithify_picture(db: &Database) -> *mut c_char {
        Ok(c_text(&db.db().picture()))
    }
    fn lithify_settle(db: &Database, errptr) {
        db.db().settle()
    }
    fn lithify_verify(
        options: &Options, path: path, watch: Option<ProgressFn>, state: *mut c_void, errptr
    ) -> *mut c_char {
        let builder = options.builder_at(path)?;
        let report = builder.verify(path, &mut |at| progress(watch, state, at.done, at.total))?;
        let findings: Vec<String> = report.findings.iter().map(|f| f.error.to_string()).collect();
        Ok(c_text(&findings.join("\n")))
    }
    fn lithify_salvage(
        options: &Options, from: path, to: path, watch: Option<ProgressFn>, state: *mut c_void, errptr
    ) -> u64 {
        let report = options.builder_at(to)?.salvage(from, to, &mut |done| progress(watch, state, done, 0))?;
        Ok(report.keys)
    }
    fn lithify_import(
        options: &Options, from: path, to: path, watch: Option<ProgressFn>, state: *mut c_void, errptr
    ) -> u64 {
        let told = &mut |at: ImportProgress| progress(watch, state, at.done, at.total);
        Ok(options.builder_at(to)?.import(from, to, ImportOptions::default(), told)?.tables)
    }
}
