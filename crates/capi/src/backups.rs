//! Backups, checkpoints, tables written outside of a database, and taking those in.

use std::ffi::c_char;
use std::path::{Path, PathBuf};

use lithify::{
    BackupSummary, Backups, Builder, CheckpointOptions, Db, Error, ErrorKind, TableBuilder,
};

use crate::db::{Database, Family};
use crate::kept::{Kept, keeps, rows};
use crate::options::Options;
use crate::places::is_same;
use crate::raw::{Many, Res, export, give};
use crate::shared::Env;
use crate::small::Ingests;
use crate::transactions::TxnDb;

/// `rocksdb_backup_engine_options_t`.
#[derive(Clone)]
pub(crate) struct BackupOptions {
    dir: PathBuf,
    kept: Kept,
}
keeps!(BackupOptions);

rows! { BackupOptions;
    noted rocksdb_backup_engine_options_set_max_background_operations
        rocksdb_backup_engine_options_get_max_background_operations: i32 = 1;
    noted rocksdb_backup_engine_options_set_sync rocksdb_backup_engine_options_get_sync: u8 = 1;
}

/// `rocksdb_restore_options_t`.
#[derive(Clone, Default)]
pub(crate) struct RestoreOptions {
    keeps_logs: bool,
    kept: Kept,
}
keeps!(RestoreOptions);

rows! { RestoreOptions;
    exact rocksdb_restore_options_set_keep_log_files _: i32 = 0, |o, v| o.keeps_logs = v != 0;
}

fn restore(backups: &Backups, to: (&Path, &Path), options: &RestoreOptions, id: u64) -> Res<()> {
    options.kept.check()?;
    let (dir, logs) = to;
    if !is_same(logs, dir) {
        return Err(Error::unsupported("wal_dir: logs are in the database's directory; pass that"));
    }
    let env = backups.env();
    if options.keeps_logs && has_logs(env, dir) {
        return Err(Error::unsupported(
            "keep_log_files=1: the logs that are there are not those of the backup; move them away, or leave it out",
        ));
    }
    // As in RocksDB, what is there gives way.
    backups.restore_over(id, dir, &mut |_| {}).map(drop)
}

/// Whether there is a log of a database in `dir`.
fn has_logs(env: &lithify::env::Env, dir: &Path) -> bool {
    let files = env.fs.list(dir).unwrap_or_default();
    files.iter().any(|file| Path::new(&file.name).extension().is_some_and(|end| end == "log"))
}

/// The newest backup whose list can be read.
fn latest(backups: &Backups) -> Res<u64> {
    let all = backups.list_readable()?;
    let last = all.last().map(|backup| backup.id);
    last.ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no backup"))
}

fn number(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn at(list: &[BackupSummary], index: i32) -> Res<&BackupSummary> {
    let found = usize::try_from(index).ok().and_then(|index| list.get(index));
    found.ok_or_else(|| Error::invalid("there is no such backup"))
}

/// `rocksdb_sstfilewriter_t`.
pub(crate) struct Writer {
    builder: Builder,
    table: Option<TableBuilder>,
    bytes: u64,
}

impl Writer {
    fn table(&mut self) -> Res<&mut TableBuilder> {
        self.table.as_mut().ok_or_else(|| Error::invalid("File is not opened"))
    }
}

/// `rocksdb_envoptions_t`: how files are written is the database's to say.
#[derive(Clone, Copy)]
pub(crate) struct EnvOptions;

fn ingest(db: &Db, files: Many<*const c_char>, n: usize, options: &Ingests) -> Res<()> {
    let files: Vec<PathBuf> = files.texts(n, "file_list")?.into_iter().map(PathBuf::from).collect();
    db.ingest(&files, &options.checked()?)
}

export! {
    fn rocksdb_backup_engine_options_create(dir: path) -> *mut BackupOptions {
        Ok(give(BackupOptions { dir: dir.to_owned(), kept: Kept::default() }))
    }
    fn rocksdb_backup_engine_options_destroy(options: own BackupOptions) {
        drop(options);
        Ok(())
    }
    fn rocksdb_backup_engine_open(options: maybe Options, dir: path, errptr) -> *mut Backups {
        let env = options.and_then(|options| options.env.clone());
        Ok(give(match env {
            Some(env) => Backups::open_in(dir, env)?,
            None => Backups::open(dir)?,
        }))
    }
    fn rocksdb_backup_engine_open_opts(options: &BackupOptions, env: maybe Env, errptr) -> *mut Backups {
        options.kept.check()?;
        Ok(give(match env.and_then(Env::world) {
            Some(env) => Backups::open_in(&options.dir, env)?,
            None => Backups::open(&options.dir)?,
        }))
    }
    fn rocksdb_backup_engine_close(backups: own Backups) {
        drop(backups);
        Ok(())
    }
    fn rocksdb_backup_engine_create_new_backup(backups: &Backups, db: &Database, errptr) {
        backups.create(&db.db(), &mut |_| {}).map(drop)
    }
    fn rocksdb_backup_engine_create_new_backup_flush(
        backups: &Backups, db: &Database, flush_before_backup: u8, errptr
    ) {
        let _ = flush_before_backup;
        backups.create(&db.db(), &mut |_| {}).map(drop)
    }
    fn rocksdb_backup_engine_purge_old_backups(backups: &Backups, keep: u32, errptr) {
        backups.purge(keep as usize).map(drop)
    }
    fn rocksdb_backup_engine_verify_backup(backups: &Backups, id: u32, errptr) {
        match backups.verify(u64::from(id), &mut |_| {})?.into_iter().next() {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
    fn rocksdb_backup_engine_restore_db_from_latest_backup(
        backups: &Backups, db_dir: path, wal_dir: path, options: &RestoreOptions, errptr
    ) {
        restore(backups, (db_dir, wal_dir), options, latest(backups)?)
    }
    fn rocksdb_backup_engine_restore_db_from_backup(
        backups: &Backups, db_dir: path, wal_dir: path, options: &RestoreOptions, id: u32, errptr
    ) {
        restore(backups, (db_dir, wal_dir), options, u64::from(id))
    }
    fn rocksdb_restore_options_create() -> *mut RestoreOptions {
        Ok(give(RestoreOptions::default()))
    }
    fn rocksdb_restore_options_destroy(options: own RestoreOptions) {
        drop(options);
        Ok(())
    }
    fn rocksdb_backup_engine_get_backup_info(backups: &Backups) -> *mut Vec<BackupSummary> {
        Ok(give(backups.list_readable()?))
    }
    fn rocksdb_backup_engine_info_count(list: &Vec<BackupSummary>) -> i32 {
        Ok(i32::try_from(list.len()).unwrap_or(i32::MAX))
    }
    fn rocksdb_backup_engine_info_timestamp(list: &Vec<BackupSummary>, index: i32) -> i64 {
        Ok(i64::try_from(at(list, index)?.unix_seconds).unwrap_or(i64::MAX))
    }
    fn rocksdb_backup_engine_info_backup_id(list: &Vec<BackupSummary>, index: i32) -> u32 {
        Ok(number(at(list, index)?.id))
    }
    fn rocksdb_backup_engine_info_size(list: &Vec<BackupSummary>, index: i32) -> u64 {
        Ok(at(list, index)?.bytes)
    }
    fn rocksdb_backup_engine_info_number_files(list: &Vec<BackupSummary>, index: i32) -> u32 {
        Ok(number(at(list, index)?.tables as u64))
    }
    fn rocksdb_backup_engine_info_destroy(list: own Vec<BackupSummary>) {
        drop(list);
        Ok(())
    }
    fn rocksdb_checkpoint_object_create(db: &Database, errptr) -> *mut Db {
        Ok(give(db.db().clone()))
    }
    fn rocksdb_transactiondb_checkpoint_object_create(db: &TxnDb, errptr) -> *mut Db {
        Ok(give(db.database().db().clone()))
    }
    fn rocksdb_optimistictransactiondb_checkpoint_object_create(db: &TxnDb, errptr) -> *mut Db {
        Ok(give(db.database().db().clone()))
    }
    fn rocksdb_checkpoint_create(checkpoint: &Db, dir: path, log_size_for_flush: u64, errptr) {
        let options = CheckpointOptions { copy_logs_below: log_size_for_flush };
        checkpoint.checkpoint_opt(dir, &options)
    }
    fn rocksdb_checkpoint_object_destroy(checkpoint: own Db) {
        drop(checkpoint);
        Ok(())
    }
    fn rocksdb_envoptions_create() -> *mut EnvOptions {
        Ok(give(EnvOptions))
    }
    fn rocksdb_envoptions_destroy(options: own EnvOptions) {
        drop(options);
        Ok(())
    }
    fn rocksdb_sstfilewriter_create(env: maybe EnvOptions, options: &Options) -> *mut Writer {
        let _ = env;
        Ok(give(Writer { builder: options.builder()?.0, table: None, bytes: 0 }))
    }
    fn rocksdb_sstfilewriter_destroy(writer: own Writer) {
        drop(writer);
        Ok(())
    }
    fn rocksdb_sstfilewriter_open(writer: &mut Writer, name: path, errptr) {
        writer.table = Some(writer.builder.clone().table(name)?);
        writer.bytes = 0;
        Ok(())
    }
    fn rocksdb_sstfilewriter_add(writer: &mut Writer, (key, klen): bytes, (val, vlen): bytes, errptr) {
        writer.table()?.put(key, val)
    }
    fn rocksdb_sstfilewriter_put(writer: &mut Writer, (key, klen): bytes, (val, vlen): bytes, errptr) {
        writer.table()?.put(key, val)
    }
    fn rocksdb_sstfilewriter_merge(writer: &mut Writer, (key, klen): bytes, (val, vlen): bytes, errptr) {
        writer.table()?.merge(key, val)
    }
    fn rocksdb_sstfilewriter_delete(writer: &mut Writer, (key, klen): bytes, errptr) {
        writer.table()?.delete(key)
    }
    fn rocksdb_sstfilewriter_delete_range(
        writer: &mut Writer, (from, flen): bytes, (to, tlen): bytes, errptr
    ) {
        writer.table()?.delete_range(from, to)
    }
    fn rocksdb_sstfilewriter_finish(writer: &mut Writer, errptr) {
        writer.table()?;
        if let Some(table) = writer.table.take() {
            writer.bytes = table.finish()?.bytes;
        }
        Ok(())
    }
    fn rocksdb_sstfilewriter_file_size(writer: &Writer, bytes: out u64) {
        bytes.set(writer.table.as_ref().map_or(writer.bytes, TableBuilder::bytes));
        Ok(())
    }
    fn rocksdb_ingest_external_file(
        db: &Database, files: many *const c_char, n: usize, options: &Ingests, errptr
    ) {
        db.told(ingest(&db.db(), files, n, options))
    }
    fn rocksdb_ingest_external_file_cf(
        db: &Database, family: &Family, files: many *const c_char, n: usize, options: &Ingests, errptr
    ) {
        db.told(ingest(&*family.inner()?, files, n, options))
    }
}
