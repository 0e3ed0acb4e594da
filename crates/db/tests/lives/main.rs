//! Directories that RocksDB made by long lives are taken over and live on here, under policies by dice,
//! compared key by key after each step: what `cargo xtask interop` does with hundreds of new ones, for
//! ten that were kept (`tests/foreign/lives`) and without RocksDB.
//!
//! What happens here is new in each run. A failure says its seed: `LITHIFY_LIFE=3:17` replays archive 3
//! with seed 17, as far as threads let it. RocksDB's word is the view that each archive holds.
#![allow(dead_code, unreachable_pub, reason = "half of it is for the peer's tests, which share it")]
#![allow(clippy::disallowed_methods, reason = "archives are files of the repository")]

mod archive;
#[path = "../common/mod.rs"]
mod common;
mod here;
mod steps;
mod twin;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archive::Archive;
use common::image;
use common::small;
use fastrand::Rng;
use here::Here;
use lithify::Policy;
use lithify::import::ImportOptions;
use lithify_env::{Env, OsRt, RtOptions};
use twin::Twin;

/// Archives that are kept.
const LIVES: u64 = 10;
/// How often each lives on.
const ROUNDS: u64 = 3;
/// The policies in turn, two of the parallel ones twice.
const POLICIES: [Policy; LIVES as usize] = [
    Policy::Bucket,
    Policy::BucketDf,
    Policy::DfLeveled,
    Policy::DfTiered,
    Policy::Leveled,
    Policy::Hybrid,
    Policy::Universal,
    Policy::Tiered,
    Policy::BucketDf,
    Policy::DfTiered,
];
/// A life takes a tenth of a second.
const HANGS: Duration = Duration::from_secs(120);

fn archive(number: u64) -> Archive {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/lives");
    Archive::unpack(&std::fs::read(folder.join(format!("{number}.life"))).unwrap())
}

/// Takes an archive over and lives on with it.
fn life(number: u64, seed: u64) {
    let archive = archive(number);
    let fs = image::put(&archive.files, "/theirs");
    let env = Env { fs: Arc::new(fs), rt: Arc::new(OsRt::new(RtOptions::default())) };
    let mut rng = Rng::with_seed(seed);
    let policy = POLICIES[((number + seed) % LIVES) as usize];
    let mut here = Here::new(Path::new("/here"), false, policy, Some(env), rng.fork());
    let lived = catch_unwind(AssertUnwindSafe(|| {
        let options = ImportOptions { quick: rng.bool(), verify: true };
        let mut twin = Twin::of(archive.families, archive.content);
        let builder = here.builder(&twin.families);
        builder.import("/theirs", "/here", options, &mut |_| {}).unwrap();
        here.live(&mut twin, rng.usize(6..18))
    }));
    if let Err(panic) = lived {
        eprintln!("LITHIFY_LIFE={number}:{seed} failed:\n  {}", here.story.join("\n  "));
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn directories_of_rocksdb_live_on() {
    let chosen = std::env::var("LITHIFY_LIFE").ok().map(|text| {
        let (number, seed) = text.split_once(':').expect("LITHIFY_LIFE=3:17");
        vec![(number.parse().expect("a number"), seed.parse().expect("a seed"))]
    });
    let every = || (0..ROUNDS * LIVES).map(|n| (n % LIVES, n / LIVES)).collect();
    for (number, seed) in chosen.unwrap_or_else(every) {
        let what = format!("LITHIFY_LIFE={number}:{seed}");
        common::within(HANGS, &what, move || life(number, seed));
    }
}

/// What is packed is what comes out.
#[test]
fn archives_hold_what_was_put_in() {
    for number in 0..LIVES {
        let all = archive(number);
        assert!(all.files.contains_key("CURRENT") && !all.content.is_empty(), "{number}");
        assert_eq!(Archive::unpack(&all.pack()), all, "{number}");
    }
}
