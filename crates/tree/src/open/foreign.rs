//! Opening a directory of RocksDB or LevelDB as ours.

use lithify_base::{CfId, Result, shown_path};
use lithify_env::{Env, Random};
use lithify_files::dir::{self, Dir};
use lithify_store::foreign::{self, Depth, Maker, Survey, survey};
use lithify_store::manifest::Recovered;

use lithify_opening::OpenOptions;

/// Looks at a foreign directory that is about to be opened for writing; its manifest, completed.
pub(super) fn admit(
    with: &OpenOptions,
    env: &Env,
    dir: &Dir,
    found: Recovered,
) -> Result<Recovered> {
    if foreign::maker(dir, &found)? == Maker::LevelDb && !with.upgrade {
        return Err(foreign::upgrade_first(dir));
    }
    let orders = |cf: CfId, name: &str, recorded: Option<&str>| {
        with.family(cf, name).order_of(name, recorded)
    };
    let mut found = found;
    with.locate(dir, &mut found.state)?;
    // Operands are looked at by every open.
    let mut survey = survey(dir, found, &orders, &|_, _| true, Depth::Properties, &mut |_, _| {})?;
    let id = identity(&survey, env, dir)?;
    if dir.read_identity()?.is_none() {
        dir.write_identity(&id)?;
    }
    survey.found.state.db_id = Some(id);
    Ok(survey.found)
}

/// The directory's own id, else a new one: LevelDB has none.
pub fn identity(found: &Survey, env: &Env, dir: &Dir) -> Result<String> {
    if let Some(id) = found.found.state.db_id.clone().or(dir.read_identity()?) {
        return Ok(id);
    }
    let who = format!("identity of {}", shown_path(dir.path()));
    Ok(dir::fresh_identity(&mut Random::from_seed(env.rt.seed(&who))))
}
