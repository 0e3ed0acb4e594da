//! A manifest's first state, out of the trees of a database.

use lithify_base::{CfId, FileId, Seq};
use lithify_journal::manifest::{FamilyState, ManifestState};
use lithify_lsm::Version;

use super::translate;

/// What a manifest of these families and their trees says.
pub fn manifest_state(
    trees: &[(CfId, &str, &Version)],
    db_id: &str,
    next_file: FileId,
    last_seq: Seq,
) -> ManifestState {
    let family = |&(cf, name, version): &(CfId, &str, &Version)| {
        let family = FamilyState {
            name: name.to_owned(),
            comparator: Some(version.order().name().to_owned()),
            log_number: version.log_number(),
            files: version.files().map(|f| (f.id.0, translate::wire_file(f))).collect(),
            ..FamilyState::default()
        };
        (cf, family)
    };
    ManifestState {
        db_id: Some(db_id.to_owned()),
        next_file: next_file.0,
        // What is taken in from outside is in the tree a moment before its number is published.
        last_seq: trees.iter().flat_map(|t| t.2.files()).map(|f| f.seqs.1).fold(last_seq, Ord::max),
        max_cf: trees.iter().map(|(cf, ..)| cf.0).max().unwrap_or(0),
        families: trees.iter().map(family).collect(),
        ..ManifestState::default()
    }
}
