use lithify_env::sync::Arc;
use lithify_env::{MemFs, OpenOpts};

use super::*;

fn dir(fs: &MemFs, path: &str) -> Dir {
    Dir::new(Arc::new(fs.clone()), path).create(0).unwrap()
}

fn table(dir: &Dir, name: FileName) {
    let file = dir.create_file(name, OpenOpts::write()).unwrap();
    lithify_env::write_all_at(&*file, b"table", 0).unwrap();
}

#[test]
fn tables_are_found_where_they_are() {
    let fs = MemFs::new();
    let home = dir(&fs, "/db");
    // Clones are handles on the same directories.
    let handle = home.clone();
    for (path, name) in [("/fast", FileName::Table(5)), ("/db/slow", FileName::LevelDbTable(6))] {
        let place = dir(&fs, path);
        table(&place, name);
        home.add_place(place.clone());
        home.add_place(place);
    }
    table(&home, FileName::Table(4));
    assert_eq!(handle.places().len(), 2);
    for (number, path) in [(4, "/db"), (5, "/fast"), (6, "/db/slow")] {
        let (there, name, _) = handle.open_table_there(number, OpenOpts::read()).unwrap();
        let found = handle.find_table(number).unwrap().unwrap();
        assert_eq!((there.path(), found.dir.path()), (Path::new(path), Path::new(path)));
        assert_eq!((found.name, found.len), (name, 5));
        assert!(handle.paths_of(name).contains(&there.path_of(name)));
        handle.remove_table(number).unwrap();
        assert!(handle.find_table(number).unwrap().is_none());
        handle.remove_table(number).unwrap();
    }
    assert!(handle.open_table(7, OpenOpts::read()).is_err_and(|e| e.is_corruption()));
}

#[test]
fn a_directory_is_known_by_any_of_its_spellings() {
    let fs = MemFs::new();
    let home = dir(&fs, "/db");
    home.add_place(dir(&fs, "/fast"));
    assert_eq!(home.place_at(Path::new("/db")).path(), home.path());
    assert_eq!(home.place_at(Path::new("/fast")).path(), Path::new("/fast"));
    assert_eq!(home.place_at(Path::new("/other")).path(), Path::new("/other"));
}

#[test]
fn a_deed_and_an_owner_are_one_line_each() {
    let fs = MemFs::new();
    let (home, place) = (dir(&fs, "/db"), dir(&fs, "/fast"));
    assert_eq!((home.read_deed().unwrap(), place.read_owner().unwrap()), (None, None));
    assert_eq!(
        (home.whereabouts(), dir(&fs, "/a\n b").whereabouts()),
        ("/db".into(), "/a\\n b".into())
    );
    assert!(dir(&fs, &format!("/{}", "long".repeat(1000))).whereabouts().len() < 4000);
    let owner =
        Owner { deed: "c-1".to_owned(), db_id: "id-1".to_owned(), home: "/a b  c".to_owned() };
    let deed = Deed { name: owner.deed.clone(), dirs: 1 };
    home.write_deed(&deed).unwrap();
    place.write_owner(&owner).unwrap();
    assert_eq!(home.read_deed().unwrap(), Some(deed));
    assert_eq!(place.read_owner().unwrap(), Some(owner));
    place.replace(FileName::Owner, FileName::Temp(0), b" \n").unwrap();
    assert!(place.read_owner().unwrap_err().is_corruption());
    // Without the directories that it has tables in, a table that is missing is no damage.
    let e = home.open_table(7, OpenOpts::read()).err().unwrap();
    assert!(!e.is_corruption() && e.to_string().contains("table_dirs"), "{e}");
}
