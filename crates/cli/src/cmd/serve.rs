//! `serve`: what `top` shows, as a page for a browser, with history, and figures for Prometheus.
//!
//! Keeps: it listens on this machine alone unless another address is typed. The database is only looked at.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use lithify_base::shown_path;
use lithify_env::sync::Mutex;
use lithify_watch::Watch;
use lithify_watch::http::Hosts;
use lithify_watch::server::{Seen, serve, watch_on};

use crate::failure::stuck;
use crate::open::DirArg;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  lithify serve fruit                           then open the address that it prints
  lithify serve fruit --listen 127.0.0.1:9000
  lithify serve fruit --listen 0.0.0.0:7878     to be seen from other machines, by anybody there
  curl http://127.0.0.1:7878/metrics            figures as Prometheus reads them

The page shows the tree, jobs, stalls and their causes, throughput and amplification, and how they were
since it began. It needs no network and works beside the program that writes, which it costs nothing but
the time to read names and sizes of files, the manifest and the event log. Nothing is locked and nothing
changes. Requests must name an address in numbers, localhost, or a name that --host allows.";

/// `lithify serve`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    #[command(flatten)]
    dir: DirArg,
    /// Address and port; port 0 is one that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// A name by which browsers may ask for the page, as `box.lan`
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Seconds from one look to the next
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
}

impl Serve {
    pub(crate) fn run(self) -> Result<()> {
        let path = self.dir.dir()?;
        let mut watch = Watch::new(&path)?;
        let began = Instant::now();
        watch.look(Duration::ZERO)?;
        let listener = match TcpListener::bind(self.listen) {
            Ok(listener) => listener,
            Err(e) => {
                return stuck(
                    format!("can't listen on {}: {e}", self.listen),
                    "name another address or port with --listen; port 0 is one that is free",
                );
            }
        };
        let address = listener.local_addr()?;
        let hosts = Hosts { names: self.host, is_open: !address.ip().is_loopback() };
        let seen = Arc::new(Mutex::new(Seen { watch, trouble: None }));
        let shown = shown_path(&path);
        output::line(&format!("http://{address}/ shows {shown} until Ctrl-C"))?;
        let looked_at = seen.clone();
        let every = Duration::from_secs(self.every);
        thread::spawn(move || watch_on(&looked_at, began, every));
        serve(&listener, hosts, seen)
    }
}
