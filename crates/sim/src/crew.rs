//! Clients that work at the same time, one at a time.
//!
//! A call of the database blocks its caller, so each client is a thread. Only one of them moves: it
//! hands the *baton* back where it waits for a ticket, and at every call of the file system, where on a
//! real machine others would go on. Who gets the baton next, a client or a background job, is the
//! pump's choice; so equal choices do the same.
//!
//! Keeps: the thread that moves has the baton. No lock of the database is held where it is handed over, as no
//! lock is held across a call of the environment; if one were, the next to need it would hang.
//! Leaves to others: which of them moves (`pump`).

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lithify_env::sync::{Arc, Condvar, LazyLock, Mutex};
use lithify_env::{Class, Job, Mono, OsRt, Rt, RtOptions, Step, Ticket, Wake, panic_message};

/// Most clients at a time.
pub const MOST: usize = 4;

/// Threads for clients, enough for as many worlds as tests run at a time; they outlive the worlds.
static THREADS: LazyLock<OsRt> = LazyLock::new(|| {
    OsRt::new(RtOptions { io_threads: 16 * MOST, seed: Some(0), ..RtOptions::default() })
});

thread_local! {
    /// The client that this thread is.
    static ME: RefCell<Option<(Arc<Crew>, usize)>> = const { RefCell::new(None) };
}

/// What a client does.
pub type Story = Box<dyn FnOnce() + Send>;

/// The clients of one moment.
pub struct Crew {
    state: Mutex<State>,
    moved: Condvar,
}

struct State {
    /// Who has the baton; `None` is the pump.
    baton: Option<usize>,
    clients: Vec<Client>,
    /// Nothing can go on: the waiters give up.
    hopeless: bool,
}

enum Client {
    /// Has not begun, or was interrupted by others.
    Ready,
    Waits(Ticket, Option<Mono>),
    /// It is over; with what it said if it panicked.
    Over(Option<String>),
}

impl Crew {
    /// Begins with these, which wait for the baton.
    pub fn new(stories: Vec<Story>) -> Arc<Crew> {
        assert!(stories.len() <= MOST, "there is a thread for each client");
        let clients = stories.iter().map(|_| Client::Ready).collect();
        let state = Mutex::new(State { baton: None, clients, hopeless: false });
        let crew = Arc::new(Crew { state, moved: Condvar::new() });
        for (number, story) in stories.into_iter().enumerate() {
            let thread = Thread { crew: crew.clone(), number, story: Some(story) };
            THREADS.spawn(Class::Io, Box::new(thread));
        }
        crew
    }

    /// Those who could go on at `now`.
    pub fn ready(&self, now: Mono) -> Vec<usize> {
        let state = self.state.lock();
        let goes_on = |client: &Client| match client {
            Client::Ready => true,
            Client::Waits(ticket, deadline) => {
                ticket.is_done() || deadline.is_some_and(|at| at <= now)
            }
            Client::Over(_) => false,
        };
        (0..state.clients.len()).filter(|&i| goes_on(&state.clients[i])).collect()
    }

    /// The next instant for which one of them waits.
    pub fn next_deadline(&self) -> Option<Mono> {
        let state = self.state.lock();
        let due = state.clients.iter().filter_map(|client| match client {
            Client::Waits(_, deadline) => *deadline,
            _ => None,
        });
        due.min()
    }

    /// True once all are over.
    pub fn is_over(&self) -> bool {
        self.state.lock().clients.iter().all(|client| matches!(client, Client::Over(_)))
    }

    /// What those said who panicked.
    pub fn panics(&self) -> Vec<String> {
        let said = |client: &Client| match client {
            Client::Over(said) => said.clone(),
            _ => None,
        };
        self.state.lock().clients.iter().filter_map(said).collect()
    }

    /// Lets one of those that are ready go on until it waits.
    pub fn step(&self, number: usize) {
        let mut state = self.state.lock();
        state.clients[number] = Client::Ready;
        state.baton = Some(number);
        self.moved.notify_all();
        self.moved.wait_while(&mut state, |state| state.baton.is_some());
    }

    /// Nothing can go on any more: ends all that wait.
    pub fn give_up(&self) {
        self.state.lock().hopeless = true;
        loop {
            let left = |client: &Client| !matches!(client, Client::Over(_));
            let next = self.state.lock().clients.iter().position(left);
            match next {
                Some(number) => self.step(number),
                None => return,
            }
        }
    }

    /// Hands the baton back as `client` and waits to get it again.
    fn hand_over(&self, number: usize, client: Client) {
        let mut state = self.state.lock();
        let over = matches!(client, Client::Over(_));
        state.clients[number] = client;
        state.baton = None;
        self.moved.notify_all();
        if over {
            return;
        }
        self.moved.wait_while(&mut state, |state| state.baton != Some(number));
        let hopeless = state.hopeless;
        drop(state);
        if hopeless && !std::thread::panicking() {
            panic!("a client waits for ever: a hang");
        }
    }
}

/// Lets others go on here, if this thread is a client.
pub fn breathe() {
    if let Some((crew, number)) = ME.with_borrow(Option::clone) {
        crew.hand_over(number, Client::Ready);
    }
}

/// Waits as a client; `None` if this thread is none.
pub fn park(ticket: &Ticket, deadline: Option<Mono>, now: impl Fn() -> Mono) -> Option<Wake> {
    let (crew, number) = ME.with_borrow(Option::clone)?;
    loop {
        if ticket.is_done() {
            return Some(Wake::Done);
        }
        if deadline.is_some_and(|at| at <= now()) {
            return Some(Wake::TimedOut);
        }
        crew.hand_over(number, Client::Waits(ticket.clone(), deadline));
    }
}

/// The thread of a client.
struct Thread {
    crew: Arc<Crew>,
    number: usize,
    story: Option<Story>,
}

impl Job for Thread {
    fn step(&mut self) -> Step {
        let Some(story) = self.story.take() else { return Step::Done };
        {
            let mut state = self.crew.state.lock();
            let number = self.number;
            self.crew.moved.wait_while(&mut state, |state| state.baton != Some(number));
        }
        ME.set(Some((self.crew.clone(), self.number)));
        let told = catch_unwind(AssertUnwindSafe(story));
        ME.set(None);
        let said = told.err().map(|payload| panic_message(&*payload));
        self.crew.hand_over(self.number, Client::Over(said));
        Step::Done
    }
}
