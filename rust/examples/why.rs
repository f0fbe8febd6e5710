//! Explains the cause of a wait. `why FILE FRAME` prints the wait before this frame, all evidence about the wait, and
//! the answer of each gate. The gates appear in the order in which the judge asks them. `docs/how-it-decides.md`
//! explains the gates.

use std::error::Error;

use tcptrace_lab_core::capture::Capture;
use tcptrace_lab_core::flows::{Accounting, Connections};
use tcptrace_lab_core::ledger::evidence::Evidence;
use tcptrace_lab_core::ledger::gates::Closed;
use tcptrace_lab_core::ledger::summary::wait_before;
use tcptrace_lab_core::ledger::{Cause, DirectionFacts, LiveWaits, WaitRecord, gates, judge};
use tcptrace_lab_core::sender::{SenderTotals, Wait};
use tcptrace_lab_core::wire::{Dissector, Packet};

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, frame] = &arguments[..] else {
        eprintln!("usage: why FILE FRAME");
        return 2.into();
    };
    match frame.parse().map_err(Into::into).and_then(|frame| find(path, frame)) {
        Ok(Some((record, direction))) => {
            print!("{}", explained(&record, &direction));
            0.into()
        }
        Ok(None) => {
            eprintln!("frame {frame} ends no wait: it has no data, SYN or FIN, or is the first of its direction");
            1.into()
        }
        Err(error) => {
            eprintln!("{error}");
            1.into()
        }
    }
}

/// The wait before a frame, with the facts of its direction.
fn find(path: &str, frame: u64) -> Result<Option<(WaitRecord, DirectionFacts)>, Box<dyn Error>> {
    let mut capture = Capture::open(&[path])?;
    let (mut dissector, mut packets) = (Dissector::default(), Vec::new());
    let (mut connections, mut rows) = (Connections::of(None, Accounting::Kept), Vec::new());
    let mut waits = LiveWaits::default();
    let mut ended = Vec::new();
    while capture.advance()? {
        // A frame without a segment has no wait, so the stop does not matter.
        let _ = dissector.read(&capture.frame(), &mut packets);
        for packet in packets.drain(..) {
            let Packet::Tcp(segment) = packet else { continue };
            connections.take(&segment, &mut rows);
            for row in rows.drain(..) {
                waits.add(&row);
                waits.revise(row.conn, connections.take_revisions().as_slice());
            }
        }
        ended.extend(connections.take_closed().into_iter().flatten());
    }
    while let Some(rest) = connections.take_rest() {
        ended.extend(rest);
    }
    let ended = ended.into_iter().map(|row| {
        let waits = waits.end(row.conn);
        (row, waits)
    });
    Ok(wait_before(frame, ended)?)
}

/// The judgement of a wait, with everything behind it.
fn explained(record: &WaitRecord, direction: &DirectionFacts) -> String {
    let (wait, judged) = (Evidence::of(record, direction), judge(record, direction));
    let sender = if direction.from_client { "client" } else { "server" };
    let owner = judged.cause.map_or("no gate was closed", Cause::name);
    let spans = judged.spans.iter().filter(|(_, ns)| *ns != 0).map(|(cause, ns)| format!("{} {ns} ns", cause.name()));
    // The direction's last wait would look like a second wait in the output, so it is left out.
    let totals = SenderTotals { ending: Wait::default(), ..direction.totals };
    let direction = DirectionFacts { totals, ..direction.clone() };
    let queued = format!("answer_queued_ns: {}", wait.answer_queued_ns(wait.queueing_delay_ns()));
    let gates = gates::answers(&wait).into_iter().map(|(name, closed)| match closed {
        Some(Closed { cause, confidence, opened_ago_ns, rivals }) => {
            let opened = opened_ago_ns.map_or(String::new(), |ns| format!(", opened {ns} ns before the departure"));
            let rivals = rivals.names().map_or(String::new(), |names| format!(", one of {names}"));
            format!("{name}: closed, {}, {confidence:?}{opened}{rivals}", cause.name())
        }
        None => format!("{name}: open"),
    });
    [
        section(&format!("Frame {}, sent by the {sender}: {owner}, {:?}", record.frame, judged.confidence), spans),
        section("The wait (sender/wait.rs, ledger/waits/record.rs)", known(&format!("{record:?}"))),
        section("Queues in which it and the data before it stood (ledger/evidence/path.rs)", [queued]),
        section("Its direction (ledger/direction.rs, sender/wait.rs)", known(&format!("{direction:?}"))),
        section("Predicates that are true (ledger/evidence/)", wait.true_predicates()),
        section("Gates in the order of the judge (ledger/gates/)", gates),
    ]
    .join("\n")
}

fn section(title: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let lines = lines.into_iter().map(|line| format!("  {}\n", line.as_ref()));
    format!("{title}\n{}", lines.collect::<String>())
}

/// The fields of a struct with known values, one per line, from the debug text of the struct. Fields of an inner struct
/// are printed without the name of this struct. False flags are left out.
fn known(text: &str) -> Vec<String> {
    let (mut fields, mut field, mut depth) = (Vec::new(), String::new(), 0_usize);
    for letter in text.chars() {
        match letter {
            '{' => (field, depth) = (String::new(), 0),
            '}' => fields.push(std::mem::take(&mut field)),
            ',' if depth == 0 => fields.push(std::mem::take(&mut field)),
            _ => {
                depth = if letter == '(' { depth + 1 } else { depth.saturating_sub(usize::from(letter == ')')) };
                field.push(letter);
            }
        }
    }
    let unknown = |field: &String| field.ends_with(": None") || field.ends_with(": false") || !field.contains(": ");
    fields.into_iter().map(|field| field.trim().to_owned()).filter(|field| !unknown(field)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTURE: &str = "../captures/ethernet-small-send-buffer.pcapng";

    #[test]
    fn a_wait_of_a_small_send_buffer_is_explained() {
        let (record, direction) = find(CAPTURE, 74).unwrap().unwrap();
        let text = explained(&record, &direction);
        for line in [
            "frame: 74",
            "from_client: true",
            "is_on_plateau",
            "nagle::gate: open",
            "send_buffer::gate: closed, send-buffer, Possible",
        ] {
            assert!(text.lines().any(|found| found.trim().starts_with(line)), "{line} is not in\n{text}");
        }
        let direction = "DirectionFacts { line: Line { own: Some((0, 1448)), peer: None }, first: Some(First { ack: 3 }), near: true }";
        assert_eq!(known(direction), ["own: Some((0, 1448))", "ack: 3", "near: true"]);
    }

    #[test]
    fn the_first_closed_gate_owns_the_wait_unless_the_judge_calls_it_unknown() {
        let mut waits = 0;
        for frame in 1..=200 {
            let Some((record, direction)) = find(CAPTURE, frame).unwrap() else { continue };
            let first = gates::answers(&Evidence::of(&record, &direction)).into_iter().find_map(|(_, closed)| closed);
            let cause = judge(&record, &direction).cause;
            assert!(cause == Some(Cause::Unknown) || cause == first.map(|first| first.cause), "frame {frame}");
            waits += 1;
        }
        assert!(waits > 100);
    }
}
