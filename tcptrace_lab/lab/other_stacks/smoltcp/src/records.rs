//! The records: one JSON line per event.
//!
//! smoltcp keeps the state of its sender private, but prints it: a `Socket` implements `Debug`, and two debug messages say why a segment is
//! sent again. Both are public, so the stack stays as it is published.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use log::{LevelFilter, Log, Metadata, Record};
use serde::Serialize;
use smoltcp::socket::tcp::Socket;

const IP_AND_TCP_BYTES: usize = 40;
const TIMESTAMP_BYTES: usize = 12;

static LINES: Mutex<String> = Mutex::new(String::new());

/// The sender's state.
#[derive(Serialize)]
struct State {
    snd_una: u32,
    /// SND.NXT. After a timeout, smoltcp sets it back to SND.UNA, and sends all again.
    snd_nxt: u32,
    snd_wnd: usize,
    /// Congestion window in bytes; None without congestion control. The same applies to `ssthresh`.
    snd_cwnd: Option<usize>,
    ssthresh: Option<usize>,
    mss: usize,
    rcv_nxt: u32,
    srtt_ms: u32,
    duplicate_acks: usize,
}

/// Return the time of the realtime clock.
pub fn now_ns() -> u128 {
    std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos()
}

/// Begin to record the stack's own messages.
pub fn begin() -> Result<(), Box<dyn Error>> {
    log::set_boxed_logger(Box::new(Messages))?;
    log::set_max_level(LevelFilter::Debug);
    Ok(())
}

/// Add an event.
pub fn add(kind: &str, numbers: &[(&str, usize)]) {
    let now_ns = now_ns();
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = write!(lines, r#"{{"time_ns": {now_ns}, "kind": "{kind}""#);
    for (name, number) in numbers {
        let _ = write!(lines, r#", "{name}": {number}"#);
    }
    lines.push_str("}\n");
}

/// Add the state of the sender, after the stack has done all that is due.
pub fn settled(socket: &Socket, mtu: usize) -> Result<(), Box<dyn Error>> {
    let now_ns = now_ns();
    let mut printed = WithoutLists::default();
    write!(printed, "{socket:?}")?;
    let text = printed.text.as_str();
    let options = if socket.timestamp_enabled() { TIMESTAMP_BYTES } else { 0 };
    let remote: usize = number(text, "remote_mss: ")?;
    let state = serde_json::to_string(&State {
        snd_una: sequence(text, "local_seq_no: ")?,
        snd_nxt: sequence(text, "remote_last_seq: ")?,
        snd_wnd: number(text, "remote_win_len: ")?,
        snd_cwnd: number(text, "cwnd: ").ok(),
        ssthresh: number(text, "ssthresh: ").ok(),
        mss: remote.min(mtu - IP_AND_TCP_BYTES) - options,
        rcv_nxt: sequence(text, "remote_seq_no: ")?.wrapping_add(socket.recv_queue() as u32),
        srtt_ms: number(text, "srtt: ")?,
        duplicate_acks: number(text, "local_rx_dup_acks: ")?,
    })?;
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(lines, r#"{{"time_ns": {now_ns}, "kind": "settled", "state": {state}}}"#)?;
    Ok(())
}

/// Write the records to a file.
pub fn save(path: &str) -> Result<(), Box<dyn Error>> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    std::fs::File::create(path)?.write_all(lines.as_bytes())?;
    Ok(())
}

/// Return the number that follows `name`. No name may be the end of an earlier one in the printed text.
fn number<T: std::str::FromStr>(text: &str, name: &str) -> Result<T, Box<dyn Error>>
where
    T::Err: Error + 'static,
{
    let (_, rest) = text.split_once(&format!(" {name}")).ok_or_else(|| format!("smoltcp prints no {name}"))?;
    let end = rest.find([',', ' ', ')']).unwrap_or(rest.len());
    Ok(rest[..end].parse::<T>()?)
}

fn sequence(text: &str, name: &str) -> Result<u32, Box<dyn Error>> {
    number::<i32>(text, &format!("{name}SeqNumber(")).map(i32::cast_unsigned)
}

/// Printed text without the contents of lists: they are the buffers, which are long.
#[derive(Default)]
struct WithoutLists {
    text: String,
    depth: usize,
}

impl fmt::Write for WithoutLists {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        match part {
            "[" => self.depth += 1,
            "]" => self.depth -= 1,
            _ if self.depth == 0 => self.text.push_str(part),
            _ => {}
        }
        Ok(())
    }
}

/// Records the messages of smoltcp that say why it sends a segment again.
struct Messages;

impl Log for Messages {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        match record.args().as_str() {
            Some("retransmitting after rto") => add("timeout", &[]),
            Some("retransmitting for fast-retransmit") => add("fast-retransmit", &[]),
            _ => {}
        }
    }

    fn flush(&self) {}
}
