//! `serve`: the page, its figures and those for Prometheus, beside a program that writes; requests that are slow, long,
//! garbage or meant for another host; and the page in a browser, where there is one.
//!
//! To look at it: `LITHIFY_SCREENSHOTS=DIR cargo test -p lithify-cli --test program serve::` leaves pictures there. It takes
//! `chromium` (`apt install chromium`).
#![allow(clippy::disallowed_methods, reason = "a test sets up its world by itself")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lithify::{Db, Settings};
use serde_json::Value;

use crate::common::lithify;

/// A server; it ends with the test.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn of(dir: &str, more: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lithify"))
            .args([&["serve", dir, "--listen", "127.0.0.1:0"], more].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let address = address.and_then(|text| text.parse().ok());
        Server { child, address: address.unwrap_or_else(|| panic!("{line}")) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends `bytes` as they are; all that comes back, or nothing if the connection was cut.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        let mut back = Vec::new();
        let _ = stream.read_to_end(&mut back);
        String::from_utf8_lossy(&back).into_owned()
    }

    /// The status and the body of an answer.
    fn get(&self, path: &str) -> (u16, String) {
        let said = self.raw(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
        let (head, body) = said.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{said:?}"));
        (status(head), body.to_owned())
    }

    fn state(&self) -> Value {
        let (status, body) = self.get("/state.json");
        assert_eq!(status, 200);
        serde_json::from_str(&body).unwrap()
    }

    /// Asks again until `what` is so.
    fn until(&self, what: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let state = self.state();
            if what(&state) {
                return state;
            }
            assert!(Instant::now() < end, "never so: {state}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

/// A database of some levels, with a family whose name and keys would act on a page.
fn filled(dir: &str, writes: u64) -> Db {
    let settings = Settings::default()
        .memtable_bytes(256 << 10)
        .file_bytes(64 << 10)
        .level_base_bytes(256 << 10)
        .compaction_threads(1);
    let db = Db::open(dir, settings).unwrap();
    let name = "<img src=x onerror=alert(1)>\u{202e}";
    let trees = db.open_column_family(name, lithify::ColumnFamilyOptions::new()).unwrap();
    trees.put("</script><script>alert(1)</script>", "x").unwrap();
    trees.flush().unwrap();
    more(&db, 0, writes);
    db
}

fn more(db: &Db, from: u64, to: u64) {
    for n in from..to {
        let key = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        db.put(key, [n as u8; 100]).unwrap();
    }
}

fn runs(state: &Value) -> u64 {
    state["trees"][0]["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["files"].as_u64().unwrap())
        .sum()
}

#[test]
fn the_state_follows_a_program_that_writes() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db").to_str().unwrap().to_owned();
    let db = filled(&dir, 20_000);
    db.wait_idle(None).unwrap();
    let server = Server::of(&dir, &[]);
    let first = server.state();
    assert_eq!(first["owner"], std::process::id());
    assert!(
        first["session"]["policy"].is_string() && first["session"]["flushes"].as_u64() > Some(0)
    );
    assert!(runs(&first) > 0 && first["families"] == 2, "{first}");
    assert_eq!(first["trees"][1]["first"], "</script><script>alert(1)</script>");
    assert!(!first["trees"][1]["family"].as_str().unwrap().contains('\u{202e}'));
    // What is written is seen: the logs grow, there are more tables, and it stays in the history.
    let tables = first["tables"]["bytes"].as_u64().unwrap();
    let written = std::cell::Cell::new(20_000);
    let state = server.until(|state| {
        more(&db, written.get(), written.get() + 2000);
        written.set(written.get() + 2000);
        let history = state["history"].as_array().unwrap();
        let sum = |of: usize| history.iter().map(|s| s[of].as_u64().unwrap()).sum::<u64>();
        state["tables"]["bytes"].as_u64() > Some(tables) && sum(2) > 300_000 && sum(3) > 300_000
    });
    assert!(state["amplification"]["write"].as_f64() >= Some(1.0), "{state}");
    assert!(state["amplification"]["read"].as_u64() > Some(0));
    // Only what is new is sent to who has the rest.
    let after = state["at_ms"].as_u64().unwrap();
    let (_, body) = server.get(&format!("/state.json?after={after}"));
    let rest: Value = serde_json::from_str(&body).unwrap();
    let rest = rest["history"].as_array().unwrap();
    assert!(rest.iter().all(|sample| sample[0].as_u64() > Some(after)), "{rest:?}");
    db.close().unwrap();
    server.until(|state| state["owner"].is_null());
    // A directory that is gone is told, and one that comes in its place is seen.
    std::fs::remove_dir_all(&dir).unwrap();
    server.until(|state| state["trouble"].is_string());
    filled(&dir, 10).close().unwrap();
    server.until(|state| state["trouble"].is_null() && state["families"] == 2);
}

#[test]
fn figures_are_served_to_prometheus() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db").to_str().unwrap().to_owned();
    let db = filled(&dir, 20_000);
    db.wait_idle(None).unwrap();
    let server = Server::of(&dir, &[]);
    let (status, text) = server.get("/metrics");
    assert_eq!(status, 200);
    let value = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse::<f64>().unwrap()
    };
    let stats = db.stats();
    assert_eq!(value("lithify_open"), 1.0);
    assert_eq!(value("lithify_seen"), 1.0);
    // Its event log is written a moment later than things happen.
    assert!(value("lithify_flushes_total") > 0.0);
    for level in stats.levels.iter().filter(|level| level.files > 0) {
        let labels = format!("{{family=\"default\",level=\"{}\"}}", level.level);
        assert_eq!(value(&format!("lithify_level_files{labels}")), level.files as f64, "{text}");
        assert_eq!(value(&format!("lithify_level_bytes{labels}")), level.bytes as f64);
    }
    // Every name has its head once, and before its samples.
    let mut heads = std::collections::BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with("# HELP")) {
        match line.strip_prefix("# TYPE ") {
            Some(head) => assert!(heads.insert(head.split(' ').next().unwrap()), "{head} twice"),
            None => assert!(heads.contains(line.split(['{', ' ']).next().unwrap()), "{line}"),
        }
    }
}

/// What a process leaves that was killed while its writes were held back and a job ran. Before, both went on for ever.
#[test]
fn nothing_of_a_program_that_is_gone_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db").to_str().unwrap().to_owned();
    filled(&dir, 10).close().unwrap();
    let mut log = std::fs::OpenOptions::new().append(true).open(format!("{dir}/EVENTS")).unwrap();
    log.write_all(
        b"{\"at_us\":1,\"event\":\"flush_start\",\"job\":9,\"to\":0,\"bytes\":7}\n\
          {\"at_us\":1,\"event\":\"stall_begin\",\"cause\":\"l0_files\",\"kind\":\"stop\"}\n",
    )
    .unwrap();
    let server = Server::of(&dir, &[]);
    let held = || {
        let text = server.get("/metrics").1;
        assert!(!text.contains("lithify_stalled{"), "{text}");
        assert!(text.contains("\nlithify_running_jobs 0\n") && text.contains("lithify_open 0"));
        let held = text.lines().filter(|line| line.starts_with("lithify_held_back_seconds_total"));
        held.map(str::to_owned).collect::<Vec<_>>()
    };
    let first = held();
    assert_eq!(first.len(), 2);
    let looked = server.state()["at_ms"].as_u64();
    let state = server.until(|state| state["at_ms"].as_u64() > looked.map(|ms| ms + 2000));
    assert_eq!(held(), first);
    let history = state["history"].as_array().unwrap();
    assert!(!history.is_empty() && history.iter().all(|s| s[4] == 0 && s[7] == 0), "{history:?}");
}

#[test]
fn a_page_loads_nothing_from_elsewhere() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db").to_str().unwrap().to_owned();
    filled(&dir, 10).close().unwrap();
    let server = Server::of(&dir, &[]);
    for path in ["/", "/page.css", "/page.js"] {
        let (code, body) = server.get(path);
        assert_eq!(code, 200, "{path}");
        for elsewhere in ["http://", "https://", "src=\"//", "@import", "url("] {
            assert!(!body.contains(elsewhere), "{path} has {elsewhere}");
        }
    }
    let said = server.raw(b"HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    assert!(said.ends_with("\r\n\r\n") && said.contains("default-src 'none'"), "{said}");
    assert_eq!(server.get("/EVENTS").0, 404);
    assert_eq!(server.get("/../../etc/passwd").0, 404);
}

#[test]
fn hostile_requests_are_refused_and_harm_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db").to_str().unwrap().to_owned();
    let db = filled(&dir, 1000);
    let server = Server::of(&dir, &[]);
    let before = server.state()["families"].clone();
    // A connection that is cut says nothing.
    let refused = |bytes: &[u8]| status(server.raw(bytes).lines().next().unwrap_or(""));
    assert_eq!(refused(b"GET /state.json HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403);
    assert_eq!(
        refused(b"GET /state.json HTTP/1.1\r\nHost: localhost.evil.example:80\r\n\r\n"),
        403
    );
    assert_eq!(refused(b"GET /state.json HTTP/1.1\r\n\r\n"), 400);
    assert_eq!(
        refused(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nwhatever!"),
        405
    );
    assert_eq!(refused(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"), 400);
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(100_000));
    assert_eq!(refused(long.as_bytes()), 431);
    let lines = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "A: b\r\n".repeat(500));
    assert_eq!(refused(lines.as_bytes()), 431);
    for after in ["99999999999999999999999", "-1", "x", "%00", "18446744073709551615"] {
        assert_eq!(server.get(&format!("/state.json?after={after}")).0, 200, "{after}");
    }
    // Many that say nothing: those beyond the places are told so at once, and the places come back.
    let idle: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
    let full = refused(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(matches!(full, 0 | 200 | 503), "{full}");
    drop(idle);
    let places_are_free = || {
        let end = Instant::now() + Duration::from_secs(120);
        while refused(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") != 200 {
            assert!(Instant::now() < end, "the places come back");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    places_are_free();
    // One that is slow for ever is let go.
    let mut slow = server.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    let mut said = String::new();
    let _ = slow.read_to_string(&mut said);
    assert_eq!(status(&said), 408, "{said}");
    places_are_free();
    assert_eq!(server.state()["families"], before);
    // The program that has it open noticed nothing.
    more(&db, 1000, 2000);
    db.close().unwrap();
}

#[test]
fn another_name_is_served_if_it_is_allowed_and_a_taken_port_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db").to_str().unwrap().to_owned();
    filled(&dir, 10).close().unwrap();
    let server = Server::of(&dir, &["--host", "box.lan"]);
    let said = server.raw(b"GET / HTTP/1.1\r\nHost: box.lan:7878\r\n\r\n");
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    let out = lithify(&["serve", &dir, "--listen", &server.address.to_string()]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1));
    assert!(said.contains("can't listen on 127.0.0.1:") && said.contains("--listen"), "{said}");
}

/// What Chromium makes of the page: its document after some seconds, or a picture of it.
fn chromium(profile: &Path, more: &[&str], url: &str) -> Option<Vec<u8>> {
    let profile = format!("--user-data-dir={}", profile.display());
    let quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", &profile];
    let out =
        Command::new("chromium").args(quiet).args(more).arg(url).stderr(Stdio::null()).output();
    match out {
        Ok(out) => Some(out.stdout),
        Err(_) => {
            let said = "serve: no chromium here, so the page was not looked at in a browser";
            let _ = writeln!(std::io::stderr(), "{said}");
            None
        }
    }
}

#[test]
fn a_browser_draws_the_page() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("db").to_str().unwrap().to_owned();
    let db = filled(&dir, 60_000);
    let server = Server::of(&dir, &[]);
    let url = format!("http://{}/", server.address);
    let profile = scratch.path().join("profile");
    let wait = ["--virtual-time-budget=4000", "--dump-dom"];
    let Some(page) = chromium(&profile, &wait, &url) else { return };
    let page = String::from_utf8_lossy(&page);
    let drawn: Vec<u64> = page
        .split("data-drawn=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next()?.parse().ok())
        .collect();
    assert_eq!(drawn.len(), 2, "a canvas for each family: {page}");
    assert!(drawn[0] > 3 && drawn[1] == 1, "{drawn:?}");
    assert!(page.contains("has it open, policy "), "{page}");
    assert!(!page.contains("<img") && page.contains("&lt;img src=x onerror=alert(1)&gt;"));
    let Ok(to) = std::env::var("LITHIFY_SCREENSHOTS") else { return };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| more(&db, 60_000, 1_500_000));
        server.until(|state| state["history"].as_array().unwrap().len() > 20);
        for (name, size) in [("wide", "1280,1500"), ("phone", "390,2600")] {
            let args = [
                format!("--screenshot={to}/{name}.png"),
                format!("--window-size={size}"),
                "--virtual-time-budget=4000".to_owned(),
            ];
            chromium(&profile, &args.each_ref().map(|arg| &**arg), &url);
        }
        writer.join().unwrap();
    });
}
