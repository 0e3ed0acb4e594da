//! `--engine gpu` and `auto` from outside: on a machine without a GPU they say what to do, and on the emulator of its
//! kernels a compaction has the tables that the CPU makes.
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use crate::common::{lithify, ok};

/// A GPU that no machine has.
const NONE: &str = "4096";

fn made() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db");
    ok(&["put", "--db", dir.to_str().unwrap(), "a", "1"]);
    scratch
}

/// What a compaction by these flags says, and its exit code.
fn said(args: &[&str]) -> (i32, String) {
    let scratch = made();
    let dir = scratch.path().join("db");
    let out = lithify(&[&["compact", "--db", dir.to_str().unwrap()], args].concat());
    let text = [out.stdout, out.stderr].concat();
    (out.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn without_a_gpu_it_says_what_to_do() {
    let (code, told) = said(&["--engine", "gpu", "--gpu-device", NONE]);
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("--engine gpu: "), "{told}");
    assert!(told.contains("--engine auto"), "{told}");
}

#[test]
fn auto_goes_on_with_the_cpu_and_says_why() {
    let (code, told) = said(&["--engine", "auto", "--gpu-device", NONE]);
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("gpu: no GPU is used, as "), "{told}");
    assert!(told.contains("the CPU merges everything"), "{told}");
}

/// A command that does not open the new database itself says it among its notes.
#[test]
fn what_is_taken_out_without_a_gpu_is_said_too() {
    let scratch = made();
    let [dir, new] = ["db", "new"].map(|name| scratch.path().join(name));
    let auto = ["--engine", "auto", "--gpu-device", NONE];
    let args = ["salvage", dir.to_str().unwrap(), "--to", new.to_str().unwrap()];
    let told = ok(&[&args[..], &auto].concat());
    assert!(told.contains("note: gpu: no GPU is used, as "), "{told}");
}

/// Each GPU has an engine of its own, which says for itself that it is not there.
#[test]
fn several_that_are_not_there_are_named_each() {
    let (code, told) = said(&["--engine", "auto", "--gpu-devices", "14,15"]);
    assert_eq!(code, 0, "{told}");
    for name in ["gpu14: no GPU is used, as ", "gpu15: no GPU is used, as "] {
        assert!(told.contains(name), "{told}");
    }
    let (code, told) = said(&["--engine", "gpu", "--gpu-devices", "14,15"]);
    assert_eq!(code, 1, "{told}");
}

#[test]
fn values_that_make_no_sense_say_which_do() {
    for (args, hint) in [
        (["--engine", "abacus"], "cpu, gpu, auto"),
        (["--gpu-verify", "most"], "full, sums"),
        (["--gpu-route", "scenic"], "cost, always"),
        (["--gpu-units", "65"], "1..=64"),
        (["--gpu-prove", "0"], "0 is not in 1.."),
        (["--gpu-set", "1 mile"], "use KiB"),
        (["--gpu-device", "fast"], "take the number of a GPU"),
        (["--gpu-devices", "0,fast"], "take the number of a GPU"),
        (["--gpu-devices", "1,0,1"], "take each GPU once"),
        (["--gpu-devices", "1,16"], "those with numbers below 16"),
    ] {
        let (code, told) = said(
            &[&args[..], &["--engine", "gpu"][usize::from(args[0] == "--engine") * 2..]].concat(),
        );
        assert_eq!(code, 2, "{args:?}: {told}");
        assert!(told.contains(hint), "{args:?}: {told}");
    }
}

#[cfg(feature = "gpu-emulator")]
mod emulated {
    use std::path::Path;

    use lithify::{Builder, Compression, Policy, Settings};

    use super::*;
    use crate::by_engine::{assert_same_tables, compact, copy, database, figure};

    const EMULATOR: [&str; 6] =
        ["--engine", "gpu", "--gpu-device", "emulator", "--gpu-route", "always"];

    fn plain() -> Settings {
        let none = Compression::None;
        Settings { compression_upper: none, compression_lower: none, ..Settings::default() }
    }

    #[test]
    fn the_kernels_make_the_tables_of_the_cpu() {
        let scratch = tempfile::tempdir().unwrap();
        let (by_gpu, by_cpu) = (scratch.path().join("gpu"), scratch.path().join("cpu"));
        database(&by_gpu, plain(), 12 << 20, 5);
        copy(&by_gpu, &by_cpu);
        let printed = compact(&by_gpu, &[&EMULATOR[..], &["--gpu-set", "256KiB"]].concat());
        compact(&by_cpu, &["--engine", "cpu"]);
        let sets = figure(&printed, "device_sets");
        println!("{sets} sets on the emulator");
        assert!(sets > 20, "{printed}");
        assert_eq!(printed["engines"][0]["name"], "gpu-emulator");
        for none in ["unsuitable_sets", "disowned", "device_lost"] {
            assert_eq!(figure(&printed, none), 0, "{printed}");
        }
        assert_same_tables(&by_gpu, &by_cpu);
        ok(&["verify", by_gpu.to_str().unwrap()]);
    }

    /// Blocks are decoded and compressed by the kernels, and have the bytes of the CPU's.
    #[test]
    fn tables_with_lz4_are_those_of_the_cpu() {
        let scratch = tempfile::tempdir().unwrap();
        let (by_gpu, by_cpu) = (scratch.path().join("gpu"), scratch.path().join("cpu"));
        let lz4 = Compression::Lz4;
        let settings = Settings { compression_upper: lz4, compression_lower: lz4, ..plain() };
        text_database(&by_gpu, settings);
        copy(&by_gpu, &by_cpu);
        let printed = compact(&by_gpu, &[&EMULATOR[..], &["--gpu-set", "64KiB"]].concat());
        compact(&by_cpu, &["--engine", "cpu"]);
        let [decoded, encoded] =
            ["decoded_blocks", "encoded_blocks"].map(|of| figure(&printed, of));
        println!("{decoded} blocks decoded on the emulator, {encoded} compressed");
        assert!(decoded > 200 && encoded > 200, "{printed}");
        for none in ["unsuitable_sets", "normalised_blocks", "disowned", "device_lost"] {
            assert_eq!(figure(&printed, none), 0, "{printed}");
        }
        assert_same_tables(&by_gpu, &by_cpu);
        ok(&["verify", by_gpu.to_str().unwrap()]);
    }

    /// Runs over the same keys, with values that repeat themselves.
    fn text_database(dir: &Path, mut settings: Settings) {
        settings.policy = Some(Policy::Leveled);
        settings.auto_compaction = false;
        let db = Builder::new(settings).open(dir).unwrap();
        for run in 0..4u64 {
            for n in (run..10_000).step_by(2) {
                let value =
                    format!("value {} of run {run}, {}", n % 90, "again ".repeat(n as usize % 40));
                db.put(format!("key{n:09}").as_bytes(), value.as_bytes()).unwrap();
            }
            db.flush().unwrap();
        }
        db.close().unwrap();
    }

    /// Two devices share the parts of a compaction, each with an engine of its own.
    #[test]
    fn several_make_the_tables_of_the_cpu() {
        let scratch = tempfile::tempdir().unwrap();
        let (by_gpu, by_cpu) = (scratch.path().join("gpu"), scratch.path().join("cpu"));
        let settings = Settings { file_bytes: 512 << 10, ..plain() };
        database(&by_gpu, settings, 6 << 20, 4);
        copy(&by_gpu, &by_cpu);
        let parts = ["--set", "max_subcompactions=6", "--set", "compaction_threads=2"];
        let two = ["--engine", "gpu", "--gpu-devices", "emulator,emulator"];
        let args = ["--gpu-route", "always", "--gpu-set", "64KiB"];
        let printed = compact(&by_gpu, &[&two[..], &args, &parts].concat());
        compact(&by_cpu, &[&["--engine", "cpu"], &parts[..]].concat());
        for (no, name) in ["gpu-emulator0", "gpu-emulator1"].into_iter().enumerate() {
            let engine = &printed["engines"][no];
            assert_eq!((&engine["name"], &engine["disproved"]), (&name.into(), &0.into()));
            assert!(engine["machine"]["device_sets"].as_f64().unwrap() > 5.0, "{printed}");
        }
        assert_same_tables(&by_gpu, &by_cpu);
        ok(&["verify", by_gpu.to_str().unwrap()]);
    }

    /// It is called an emulator wherever it is named, and what the CPU did instead is told with why.
    #[test]
    fn what_did_not_suit_it_is_printed_with_why() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("db");
        let snappy = Compression::Snappy;
        let settings = Settings { compression_upper: snappy, compression_lower: snappy, ..plain() };
        database(&dir, settings, 1 << 20, 3);
        let args = ["compact", "--db", dir.to_str().unwrap()];
        let printed = ok(&[&args[..], &EMULATOR].concat());
        assert!(printed.contains("an emulator on the CPU"), "{printed}");
        let why = "gpu-emulator: the CPU did 1 of 1 parts (1 that it refused); at last: refused: ";
        assert!(
            printed.contains(why) && printed.contains("kernels compress with LZ4"),
            "{printed}"
        );
    }

    /// Single deletes are the CPU's, which is no failure of the device.
    #[test]
    fn single_deletes_do_not_suit_it() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("db");
        let policy = Some(Policy::Leveled);
        let settings = Settings { policy, auto_compaction: false, ..plain() };
        let db = Builder::new(settings).open(&dir).unwrap();
        (0..2000u32).for_each(|n| db.put(n.to_be_bytes(), [7; 50]).unwrap());
        db.flush().unwrap();
        (0..2000u32).step_by(10).for_each(|n| db.single_delete(n.to_be_bytes()).unwrap());
        db.flush().unwrap();
        db.close().unwrap();
        let args = ["compact", "--db", dir.to_str().unwrap()];
        let printed = ok(&[&args[..], &EMULATOR].concat());
        let why = "the CPU did 1 of 1 parts (1 that did not suit it); at last: unsuitable: ";
        assert!(printed.contains(why) && printed.contains("1 sets that did not suit"), "{printed}");
        ok(&["verify", dir.to_str().unwrap()]);
    }

    #[test]
    fn sets_that_do_not_fit_are_refused_with_those_that_do() {
        let (code, told) =
            said(&[&EMULATOR[..], &["--gpu-set", "1MiB", "--gpu-memory", "1MiB"]].concat());
        assert_eq!(code, 2, "{told}");
        assert!(told.contains("sets of 43690 bytes would fit"), "{told}");
    }

    #[test]
    fn the_bench_says_that_a_gpu_is_predicted_and_what_was_emulated() {
        let args = "bench engines --json --rounds 1 --only cpu,gpu --jobs 1MiB --gpu-device emulator \
                    --value-size 100,1000";
        let told: serde_json::Value =
            serde_json::from_str(&ok(&args.split_whitespace().collect::<Vec<_>>())).unwrap();
        let rows = told["gpu"].as_array().unwrap();
        assert_eq!(rows.len(), 4, "{told}");
        for (at, row) in rows.iter().enumerate() {
            let figure = |name: &str| row[name].as_f64().unwrap();
            assert_eq!(row["is_predicted"], true);
            assert_eq!(row["emulated_bytes"], 1 << 20, "{row}");
            assert!(figure("gb_per_s") < 45.0 / figure("busiest"), "{row}");
            let is_lz4 = at % 2 == 1;
            assert_eq!(row["codec"], if is_lz4 { "lz4" } else { "none" }, "{row}");
            assert_eq!(figure("stored_share") < 0.8, is_lz4, "{row}");
        }
    }
}
