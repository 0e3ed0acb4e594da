//! Times the read paths of one table in memory: `cargo run --release -p lithify-tables --example
//! reads [entries]`. One thread, 16-byte keys, 100-byte values, everything cached.

use std::sync::Arc;
use std::time::Duration;

use lithify_base::{Kind, MAX_SEQ, Tag, bytewise};
use lithify_env::{BufPool, MemFs, OpenOpts, OsRt, Rt, RtOptions};
use lithify_files::Dir;
use lithify_format::filter::key_hash;
use lithify_format::table::tail::{TableIdentity, TableSpec};
use lithify_merge::kernel::Kernel;
use lithify_merge::products::{Item, Products};
use lithify_merge::recipe::Recipe;
use lithify_merge::workload::Choices;
use lithify_tables::cache::BlockCache;
use lithify_tables::sst::{
    Assembler, AssemblerOptions, DeletionTrigger, FullIndex, OpenTable, TableIter, TableReader,
    WriteMode,
};

fn main() -> lithify_base::Result<()> {
    let entries: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(500_000);
    let rt = OsRt::new(RtOptions::default());
    let dir = Dir::new(Arc::new(MemFs::new()), "/db");
    dir.create(0)?;
    let started = rt.now();
    write(&dir, entries)?;
    report("write", entries, rt.now().since(started));

    let cache = BlockCache::new(1 << 30, 8);
    let (name, file) = dir.open_table(1, OpenOpts::read())?;
    let mut spec = OpenTable::new(file, name.to_string(), bytewise());
    spec.cache = Some(cache.clone());
    let table = TableReader::open(spec)?;
    let full = FullIndex::of(table.clone())?;
    println!("{} blocks, {} KiB resident", full.block_fences().len(), table.memory() >> 10);

    for round in ["get cold", "get hit", "get hit"] {
        let mut choices = Choices::new(1);
        let started = rt.now();
        let mut found = 0;
        for _ in 0..entries {
            let key = key_of(choices.bits() % entries);
            found += u64::from(table.get(&key, key_hash(&key), MAX_SEQ)?.is_some());
        }
        report(round, found, rt.now().since(started));
    }
    let mut choices = Choices::new(2);
    let started = rt.now();
    let mut missing = 0;
    for _ in 0..entries {
        let mut key = key_of(choices.bits() % entries);
        key[15] = b'x';
        missing += u64::from(table.get(&key, key_hash(&key), MAX_SEQ)?.is_none());
    }
    report("get miss", missing, rt.now().since(started));

    let mut choices = Choices::new(3);
    let started = rt.now();
    let mut iter = TableIter::new(table.clone());
    for _ in 0..entries / 10 {
        iter.seek(&key_of(choices.bits() % entries), Tag::seek(MAX_SEQ));
        (0..10).for_each(|_| {
            iter.next();
        });
    }
    report("seek + 10", entries / 10, rt.now().since(started));

    for (what, cached) in [("scan cached", true), ("scan read-ahead", false)] {
        if !cached {
            table.forget_blocks();
        }
        let started = rt.now();
        let mut iter = TableIter::new(table.clone());
        let (mut count, mut bytes) = (0, 0);
        iter.seek_to_first();
        while iter.valid() {
            count += 1;
            bytes += iter.value().len();
            iter.next();
        }
        iter.status()?;
        assert_eq!(bytes as u64, 100 * count);
        report(what, count, rt.now().since(started));
    }
    Ok(())
}

fn key_of(i: u64) -> Vec<u8> {
    format!("{:016}", i * 7).into_bytes()
}

fn write(dir: &Dir, entries: u64) -> lithify_base::Result<()> {
    let identity = TableIdentity { db_id: "x".into(), file_number: 1, ..Default::default() };
    let spec = TableSpec { identity, ..TableSpec::default() };
    let options = AssemblerOptions {
        pool: BufPool::new(8 << 20),
        buffer: 1 << 20,
        mode: WriteMode::Sync,
        direct: false,
        reserve: 0,
        deletions: DeletionTrigger::default(),
    };
    let mut table = Assembler::create(dir, spec, bytewise(), options)?;
    let mut recipe = Recipe::new(1);
    recipe.file_bytes = 1 << 40;
    let mut kernel = Kernel::new(Arc::new(recipe))?;
    let mut products = Products::default();
    let value = [b'v'; 100];
    for i in 0..entries {
        kernel.push(&key_of(i), Tag::new(i + 1, Kind::Value), &value, 0)?;
        if kernel.ready_bytes() > 1 << 20 {
            kernel.drain(&mut products);
            absorb(&mut table, &products)?;
        }
    }
    kernel.finish()?;
    kernel.drain(&mut products);
    absorb(&mut table, &products)?;
    table.finish().map(drop)
}

fn absorb(table: &mut Assembler, products: &Products) -> lithify_base::Result<()> {
    for item in products.items() {
        if let Item::Block(block) = item {
            table.push_product(products, block)?;
        }
    }
    Ok(())
}

fn report(what: &str, count: u64, took: Duration) {
    println!(
        "{what:16} {count:8} in {took:8.1?}: {:6.0} ns each",
        took.as_nanos() as f64 / count.max(1) as f64
    );
}
