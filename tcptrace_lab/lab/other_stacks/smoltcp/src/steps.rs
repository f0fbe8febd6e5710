//! The application: it performs the script's steps, and then closes the connection.

use std::time::{Duration, Instant};

use serde::Deserialize;
use smoltcp::socket::tcp::Socket;

use crate::records;

/// One step: it writes `write` bytes, then reads `read` bytes, then sleeps for `sleep_ms`.
#[derive(Clone, Deserialize)]
pub struct Step {
    write: usize,
    read: usize,
    sleep_ms: f64,
}

/// The program of this end.
pub struct Program {
    steps: Vec<Step>,
    left: usize,
    now: Option<Step>,
    last: Instant,
    is_blocked: bool,
    sleeps_until: Option<Instant>,
    is_shut: bool,
}

impl Program {
    /// Repeat `steps` `times` times. No step begins after `last`.
    pub fn new(steps: Vec<Step>, times: usize, last: Instant) -> Self {
        let left = steps.len() * times;
        Self { steps, left, now: None, last, is_blocked: false, sleeps_until: None, is_shut: false }
    }

    /// Return how long the program still sleeps, or None if it waits for the stack.
    pub fn sleeps_for(&self) -> Option<Duration> {
        self.sleeps_until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Write or read once, if possible: the stack sends after each call. Return whether the socket may have changed.
    pub fn act(&mut self, socket: &mut Socket) -> bool {
        while let Some(step) = self.step() {
            if step.write > 0 {
                if self.is_blocked && socket.send_queue() == socket.send_capacity() {
                    return false;
                }
                records::add("write", &[("bytes", step.write)]);
                let Ok(taken) = socket.send_slice(&vec![0; step.write]) else { return self.give_up() };
                self.is_blocked = taken < step.write;
                records::add("written", &[("bytes", taken), ("no_space", usize::from(self.is_blocked))]);
                self.now = Some(Step { write: step.write - taken, ..step });
                return true;
            }
            if step.read > 0 {
                let Ok(got) = socket.recv_slice(&mut vec![0; step.read]) else { return self.give_up() };
                if got > 0 {
                    records::add("read", &[("bytes", got)]);
                    self.now = Some(Step { read: step.read - got, ..step });
                }
                return got > 0;
            }
            let sleep = Duration::from_secs_f64(step.sleep_ms / 1_000.0);
            if Instant::now() < *self.sleeps_until.get_or_insert(Instant::now() + sleep) {
                return false;
            }
            self.sleeps_until = None;
            self.now = None;
        }
        if !self.is_shut {
            records::add("shutdown", &[]);
            socket.close();
            self.is_shut = true;
            return true;
        }
        // The peer closes the connection when it has read all bytes.
        matches!(socket.recv_slice(&mut [0; 65_536]), Ok(1..))
    }

    fn step(&mut self) -> Option<Step> {
        if self.now.is_none() && self.left > 0 && Instant::now() < self.last {
            self.now = Some(self.steps[self.steps.len() - 1 - (self.left - 1) % self.steps.len()].clone());
            self.left -= 1;
        }
        self.now.clone()
    }

    /// The connection takes or gives no more: no step is left.
    fn give_up(&mut self) -> bool {
        self.left = 0;
        self.now = None;
        true
    }
}
