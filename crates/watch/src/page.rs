//! What is answered: the page, which is part of the program and asks for nothing from elsewhere, the figures that it
//! draws, and the same for Prometheus.

use std::time::Duration;

use lithify_base::foreign;
use lithify_env::sync::Mutex;

use crate::http::Request;
use crate::watch::Watch;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn ok(kind: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status: 200, kind, body: body.into() }
    }
    /// A sentence.
    pub(crate) fn said(status: u16, sentence: &str) -> Answer {
        let body = format!("{sentence}\n").into_bytes();
        Answer { status, kind: "text/plain; charset=utf-8", body }
    }

    /// The whole of it as bytes, without the body if only the head is wanted.
    pub(crate) fn bytes(&self, is_head: bool) -> Vec<u8> {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            _ => "Service Unavailable",
        };
        let allow = if self.status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        // A page of another site can neither read, frame nor embed this one; and this one loads from here alone.
        let mut bytes = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
             Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
             Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
             connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'\r\n{allow}\r\n",
            self.status,
            self.kind,
            self.body.len(),
        )
        .into_bytes();
        if !is_head {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

/// A database under observation, and why the newest look at it failed, if it did.
pub struct Seen {
    /// The database.
    pub watch: Watch,
    /// Why the newest look failed.
    pub trouble: Option<String>,
}

/// What `request` is answered.
pub(crate) fn answer(request: &Request, seen: &Mutex<Seen>) -> Answer {
    match &*request.path {
        "/" => Answer::ok("text/html; charset=utf-8", include_str!("page/index.html")),
        "/page.css" => Answer::ok("text/css; charset=utf-8", include_str!("page/page.css")),
        "/page.js" => Answer::ok("text/javascript; charset=utf-8", include_str!("page/page.js")),
        "/state.json" => {
            let after = request.value("after").and_then(|ms| ms.parse().ok()).unwrap_or(0);
            let seen = seen.lock();
            let state = seen.watch.state(Duration::from_millis(after), seen.trouble.as_deref());
            drop(seen);
            Answer::ok("application/json", foreign::json(state.to_string()))
        }
        "/metrics" => {
            let seen = seen.lock();
            let text = seen.watch.prometheus(seen.trouble.is_none());
            drop(seen);
            Answer::ok("text/plain; version=0.0.4; charset=utf-8", text)
        }
        _ => Answer::said(404, "There are /, /state.json and /metrics."),
    }
}
