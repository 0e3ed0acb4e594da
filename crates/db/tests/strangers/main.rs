//! Directories and backups that strangers prepared, as root and as an ordinary user.

#[path = "../common/mod.rs"]
mod common;

mod backup;
mod backup_links;
mod backup_strangers;
mod directories;
