//! The page's server: a thread for each request, few of them, none of them for long.
//!
//! Keeps: a request has `PATIENCE` from its first byte to the last of its answer, however slowly it comes; at most
//! [`REQUESTS_MAX`] are at work, and one beyond them is told so and closed. Whatever happens to a request stays with its
//! thread. Nothing of it reaches the database, which is only looked at by [`watch_on`].

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lithify_env::sync::Mutex;

use crate::http::{HEAD_MAX, Hosts, parse};
use crate::page::{Answer, answer};

pub use crate::page::Seen;

/// Requests at work at once, at most: each has a thread and some KiB.
pub const REQUESTS_MAX: usize = 32;
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long what a refused client still sends is taken, so that it gets to read why.
const FAREWELL: Duration = Duration::from_millis(200);
/// How long nothing is accepted after an accept failed, as when there are no more file descriptors.
const REST: Duration = Duration::from_millis(50);

/// Looks at the database of `seen` again and again, `every` so often, for ever.
pub fn watch_on(seen: &Mutex<Seen>, began: Instant, every: Duration) -> ! {
    loop {
        thread::sleep(every);
        let mut seen = seen.lock();
        let looked = seen.watch.look(began.elapsed()).map(drop);
        seen.trouble = looked.err().map(|error| format!("{error:#}"));
    }
}

/// Answers requests for ever.
pub fn serve(listener: &TcpListener, hosts: Hosts, seen: Arc<Mutex<Seen>>) -> ! {
    let (hosts, at_work) = (Arc::new(hosts), Arc::new(AtomicUsize::new(0)));
    loop {
        let Ok((mut stream, _)) = listener.accept() else {
            thread::sleep(REST);
            continue;
        };
        let place = Place(at_work.clone());
        if at_work.fetch_add(1, Ordering::SeqCst) >= REQUESTS_MAX {
            let full = Answer::said(503, "Too many requests are at work here; try again.");
            // It fits the socket's own buffer, so nothing is waited for.
            let _ = stream.set_nonblocking(true).and_then(|()| stream.write(&full.bytes(false)));
            continue;
        }
        let (hosts, seen) = (hosts.clone(), seen.clone());
        let work = move || {
            let _place = place;
            // A client that goes away is none of ours.
            let _ = one(&mut stream, &hosts, &seen);
        };
        // Without a thread the stream is closed, and its place is free again.
        let _ = thread::Builder::new().name("request".into()).spawn(work);
    }
}

/// One of the places of requests at work.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Reads a request and answers it.
fn one(stream: &mut TcpStream, hosts: &Hosts, seen: &Mutex<Seen>) -> std::io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let (mut head, mut part) = (Vec::new(), [0; 2048]);
    let (found, is_head) = loop {
        match parse(&head, hosts) {
            Ok(Some(request)) => break (answer(&request, seen), request.is_head),
            Ok(None) => {}
            Err((status, sentence)) => break (Answer::said(status, sentence), false),
        }
        let room = part.len().min(HEAD_MAX - head.len());
        let late = || Answer::said(408, "The request came too slowly.");
        let Ok(time) = left(end) else { break (late(), false) };
        stream.set_read_timeout(Some(time))?;
        match stream.read(&mut part[..room]) {
            Ok(0) => return Ok(()),
            Ok(count) => head.extend_from_slice(&part[..count]),
            Err(e) if is_late(&e) => break (late(), false),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    };
    write(stream, &found.bytes(is_head), end.max(Instant::now() + FAREWELL))?;
    stream.shutdown(Shutdown::Write)?;
    let end = Instant::now() + FAREWELL;
    if found.status == 200 {
        return Ok(());
    }
    loop {
        stream.set_read_timeout(Some(left(end)?))?;
        if stream.read(&mut part)? == 0 {
            return Ok(());
        }
    }
}

/// Writes all of `bytes`, or fails at `end`.
fn write(stream: &mut TcpStream, mut bytes: &[u8], end: Instant) -> std::io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(end)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The time up to `end`.
fn left(end: Instant) -> std::io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn is_late(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
