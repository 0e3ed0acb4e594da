//! Requests: which are understood, and which are answered.
//!
//! Keeps: only `GET` and `HEAD` without a body, of a head of at most [`HEAD_MAX`] bytes, for a host that was meant.
//! A page of another site whose name was made to lead here (DNS rebinding) sends that name as `Host` and is refused;
//! an address in numbers can't be made to lead elsewhere, so it is taken.
//! Leaves to others: what is answered (`page`), sockets and time ([`server`](crate::server)).

use std::net::IpAddr;

/// Longest head of a request, bytes.
pub const HEAD_MAX: usize = 8 << 10;
/// Most lines of a head.
const LINES_MAX: usize = 64;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The path, as it stands.
    pub path: String,
    /// What follows `?`.
    pub query: String,
    /// Only the head of the answer is wanted.
    pub is_head: bool,
}

impl Request {
    /// The value of `name` in the query.
    pub fn value(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(found, _)| *found == name).map(|(_, value)| value).next()
    }
}

/// Why a request is not answered, as a status and a sentence.
pub type Refusal = (u16, &'static str);

/// Names under which the page may be asked for.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// Beside `localhost` and addresses in numbers.
    pub names: Vec<String>,
    /// Addresses of other machines' networks are taken, too.
    pub is_open: bool,
}

impl Hosts {
    /// Whether `host`, as a request has it, is meant.
    fn allows(&self, host: &str) -> bool {
        let port = |text: &str| text.parse::<u16>().is_ok();
        let name = match host.rsplit_once(':') {
            Some((name, digits)) if port(digits) => name,
            _ => host,
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        match bare.parse::<IpAddr>() {
            Ok(address) => self.is_open || address.is_loopback(),
            Err(_) => {
                let mut names = self.names.iter().map(String::as_str).chain(["localhost"]);
                names.any(|meant| meant.eq_ignore_ascii_case(name))
            }
        }
    }
}

/// Reads the head of a request; `None` if more of it must come.
///
/// # Errors
/// Why it is not answered.
pub fn parse(head: &[u8], hosts: &Hosts) -> Result<Option<Request>, Refusal> {
    let mut lines = [httparse::EMPTY_HEADER; LINES_MAX];
    let mut request = httparse::Request::new(&mut lines);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() < HEAD_MAX => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err((431, "The head of the request is too long."));
        }
        Err(_) => return Err((400, "This is no request that is understood here.")),
    }
    let is_head = request.method == Some("HEAD");
    if !is_head && request.method != Some("GET") {
        return Err((405, "Only GET and HEAD are answered: nothing can be changed here."));
    }
    let mut named = request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("host"));
    let host = match (named.next(), named.next()) {
        (Some(host), None) => std::str::from_utf8(host.value).unwrap_or(""),
        _ => return Err((400, "A request names one host.")),
    };
    if !hosts.allows(host.trim()) {
        return Err((
            403,
            "This host is not served here; `lithify serve --host NAME` allows a name.",
        ));
    }
    let target = request.path.filter(|target| target.starts_with('/'));
    let Some(target) = target else { return Err((400, "A request names a path.")) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Some(Request { path: path.to_owned(), query: query.to_owned(), is_head }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Option<Request>, u16> {
        parse(text.as_bytes(), &Hosts::default()).map_err(|(status, _)| status)
    }

    #[test]
    fn a_request_comes_in_pieces() {
        let whole =
            "GET /state.json?after=7&x=1 HTTP/1.1\r\nHost: localhost:7878\r\nAccept: */*\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(of(&whole[..end]), Ok(None), "{end}");
        }
        let request = of(whole).unwrap().unwrap();
        assert_eq!((&*request.path, request.is_head), ("/state.json", false));
        assert_eq!((request.value("after"), request.value("y")), (Some("7"), None));
        assert!(of(&whole.replace("GET", "HEAD")).unwrap().unwrap().is_head);
    }

    #[test]
    fn what_is_no_such_request_is_refused() {
        let with = |line: &str, lines: &str| of(&format!("{line} HTTP/1.1\r\n{lines}\r\n"));
        let host = "Host: localhost\r\n";
        assert_eq!(with("POST /", host), Err(405));
        assert_eq!(with("DELETE /", host), Err(405));
        assert_eq!(with("GET http://localhost/", host), Err(400));
        assert_eq!(with("GET *", host), Err(400));
        assert_eq!(with("GET /", ""), Err(400), "no host");
        assert_eq!(with("GET /", "Host: localhost\r\nHost: evil\r\n"), Err(400), "two hosts");
        assert_eq!(with("GET /", &"A: b\r\n".repeat(100)), Err(431));
        assert_eq!(of(&format!("GET /{} HTTP/1.1\r\n", "x".repeat(HEAD_MAX))), Err(431));
        for garbage in ["\x16\x03\x01\x02\0\x01\0", "hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"] {
            assert_eq!(of(garbage), Err(400), "{garbage:?}");
        }
    }

    #[test]
    fn only_hosts_that_were_meant_are_served() {
        let mut hosts = Hosts::default();
        for good in
            ["localhost", "LOCALHOST:80", "127.0.0.1:7878", "127.9.9.9", "[::1]:7878", "[::1]"]
        {
            assert!(hosts.allows(good), "{good}");
        }
        for evil in [
            "evil.example",
            "localhost.evil.example:80",
            "",
            ":80",
            "127.0.0.1.evil",
            "[::1",
            "10.0.0.1",
        ] {
            assert!(!hosts.allows(evil), "{evil}");
        }
        hosts = Hosts { names: vec!["box.lan".into()], is_open: true };
        for good in ["box.lan:7878", "Box.Lan", "10.0.0.1:7878", "[fe80::1]:1"] {
            assert!(hosts.allows(good), "{good}");
        }
        assert!(!hosts.allows("evil.example"));
    }

    /// Every cut and every changed byte of a request, and bytes of any kind.
    #[test]
    fn no_bytes_make_it_panic() {
        let mut random = fastrand::Rng::with_seed(3);
        let whole = b"GET /state.json?after=7 HTTP/1.1\r\nHost: [::1]:7878\r\n\r\n";
        for _ in 0..20_000 {
            let mut bytes = whole[..random.usize(..=whole.len())].to_vec();
            for _ in 0..random.usize(..4) {
                if !bytes.is_empty() {
                    let at = random.usize(..bytes.len());
                    bytes[at] = random.u8(..);
                }
            }
            let _ = parse(&bytes, &Hosts::default());
        }
    }
}
