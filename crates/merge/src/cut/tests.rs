use super::*;

/// Places entries of one logical size; `.` joins, `b` starts a block, `F` a file.
fn picture(recipe: &Recipe, keys: &str, value_len: usize) -> String {
    let mut cut = Cut::default();
    let mut last = None;
    keys.bytes()
        .map(|k| {
            let new_key = last.replace(k) != Some(k);
            match cut.place(recipe, &[k], value_len, new_key, true) {
                Start::Within => '.',
                Start::Block => 'b',
                Start::File => 'F',
            }
        })
        .collect()
}

fn recipe(block: u32, file: u64) -> Recipe {
    Recipe { block_bytes: block, file_bytes: file, ..Recipe::new(1) }
}

#[test]
fn blocks_and_files_follow_the_grid() {
    // L = 1 + 8 + 19 + 4 = 32: two entries per cell of 64, four per file.
    assert_eq!(picture(&recipe(64, 128), "abcdefghij", 19), "F.b.F.b.F.");
    // Larger entries than blocks: each starts its own.
    assert_eq!(picture(&recipe(16, 128), "abcdefgh", 19), "FbbbFbbb");
}

#[test]
fn versions_of_a_key_never_straddle_files() {
    assert_eq!(picture(&recipe(64, 128), "abccccccde", 19), "F.b.b.b.F.");
}

#[test]
fn hard_splits_always_cut_and_soft_splits_cut_long_pieces() {
    let mut r = recipe(64, 1024);
    r.hard_splits = vec![b"b"[..].into()];
    assert_eq!(picture(&r, "abcdefgh", 19), "FFb.b.b.");
    r.soft_splits = vec![b"d"[..].into(), b"h"[..].into()];
    // The piece from b to d has 64 of 1024 bytes, less than an eighth; b to h has 192.
    assert_eq!(picture(&r, "abcdefgh", 19), "FFbbb.bF");
}
