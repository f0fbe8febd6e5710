//! Encodes waits in few bytes. A number is stored only if it differs from its prediction, which is computed from the
//! previous wait.
//!
//! A record begins with a bit set that shows which numbers differ. The numbers that differ follow in a fixed order. The
//! record of a segment within a burst takes about 8 bytes, the record of a segment released by an ACK about 35 bytes.

#![expect(clippy::inline_always, reason = "measured: otherwise the numbers of a record are not kept in registers")]

use super::record::WaitRecord;
use super::tokens::{MAX_TOKEN_BYTES, put_token, take_token};
use crate::connection::{Kind, RetransmitTrigger};
use crate::nullable::Nullable;
use crate::sender::{LastSmall, Wait};
use crate::wire::TcpFlags;

/// All kinds of segments, indexed by their codes.
const KINDS: [Kind; 21] = [
    Kind::New,
    Kind::Ack,
    Kind::Retransmit,
    Kind::FastRetransmit,
    Kind::RtoRetransmit,
    Kind::TailProbe,
    Kind::Spurious,
    Kind::OutOfOrder,
    Kind::CaptureDuplicate,
    Kind::Keepalive,
    Kind::KeepaliveAck,
    Kind::ZeroWindowProbe,
    Kind::WindowUpdate,
    Kind::DuplicateAck,
    Kind::Reset,
    Kind::LinkDamaged,
    Kind::RecoveryRetransmit,
    Kind::SynRetransmit,
    Kind::NetworkDuplicate,
    Kind::ZeroWindowProbeAck,
    Kind::PartialAck,
];
/// The triggers of a retransmission, indexed by their codes.
const RETRANSMIT_TRIGGERS: [RetransmitTrigger; 6] = [
    RetransmitTrigger::Fast,
    RetransmitTrigger::Recovery,
    RetransmitTrigger::Timeout,
    RetransmitTrigger::TailProbe,
    RetransmitTrigger::Handshake,
    RetransmitTrigger::Unknown,
];
/// The token for null.
const NULL: u64 = 0;
/// The token before a number that is stored in eight bytes, because the difference is too large for a token.
const WHOLE: u64 = 1;
/// A difference is written as its zigzag value plus this number, because smaller tokens have another meaning.
const FIRST_DIFFERENCE: u64 = 2;
/// Maximum size of the numbers of a record in bytes: 64 numbers, each with a token of one byte and eight more bytes.
const MAX_NUMBERS_BYTES: usize = 64 * (1 + size_of::<i64>());

/// Visits the numbers of a record in a fixed order, to write or to read them.
trait Coder {
    /// True for a reader, which changes the previous record into the next one; false for a writer.
    const READS: bool;

    /// Writes or reads `value`. A value equal to `expected` takes no bytes.
    fn number(&mut self, value: &mut Nullable, expected: Nullable);

    /// Writes or reads `value`. A value equal to the value in the previous record takes no bytes. In a reader, `value`
    /// still has the value of the previous record when this function is called.
    fn kept(&mut self, value: &mut Nullable, before: Nullable);
}

/// Encodes records. The encoder's buffer is reused for each record.
#[derive(Debug)]
pub(super) struct Encoder {
    numbers: [u8; MAX_NUMBERS_BYTES],
}

impl Default for Encoder {
    fn default() -> Self {
        Self { numbers: [0; MAX_NUMBERS_BYTES] }
    }
}

impl Encoder {
    /// Appends `record` to `bytes`; `before` is the record appended just before it.
    #[inline]
    pub(super) fn put(&mut self, record: &mut WaitRecord, before: &WaitRecord, bytes: &mut Vec<u8>) {
        let mut writer = Writer { different: 0, place: 0, numbers: &mut self.numbers, length: 0 };
        code(&mut writer, record, before);
        let (different, length) = (writer.different, writer.length);
        let mut head = [0; MAX_TOKEN_BYTES];
        let head_length = put_token(different, &mut head);
        bytes.extend_from_slice(head.get(..head_length).unwrap_or_default());
        bytes.extend_from_slice(self.numbers.get(..length).unwrap_or_default());
    }
}

struct Writer<'a> {
    different: u64,
    place: u32,
    numbers: &'a mut [u8],
    length: usize,
}

impl Writer<'_> {
    #[inline(always)]
    fn put(&mut self, token: u64) {
        self.length += put_token(token, self.numbers.get_mut(self.length..).unwrap_or_default());
    }
}

impl Coder for Writer<'_> {
    const READS: bool = false;

    #[inline(always)]
    fn number(&mut self, value: &mut Nullable, expected: Nullable) {
        if *value != expected {
            self.different |= 1 << self.place;
            put_number(self, *value, expected);
        }
        self.place += 1;
    }

    #[inline(always)]
    fn kept(&mut self, value: &mut Nullable, before: Nullable) {
        self.number(value, before);
    }
}

#[derive(Debug)]
pub(super) struct Decoder<'a> {
    rest: &'a [u8],
    /// The last record. The next record is decoded in the place of the last one, so that unchanged numbers need no
    /// work.
    record: WaitRecord,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, record: WaitRecord::default() }
    }

    /// Calls `take` with each record, in order.
    pub(super) fn each(mut self, mut take: impl FnMut(&WaitRecord)) {
        while let Some(rest) = next(self.rest, &mut self.record) {
            self.rest = rest;
            take(&self.record);
        }
    }
}

/// Decodes the record at the front of `bytes`. `record` is the previous record, and becomes the decoded one. Returns
/// the bytes after the decoded record; `None` if there are no more records.
#[inline]
fn next<'a>(mut bytes: &'a [u8], record: &mut WaitRecord) -> Option<&'a [u8]> {
    let different = take_token(&mut bytes)?;
    let before = *record;
    let mut reader = Reader { rest: bytes, different, place: 0 };
    code(&mut reader, record, &before);
    Some(reader.rest)
}

struct Reader<'a> {
    rest: &'a [u8],
    different: u64,
    place: u32,
}

impl Reader<'_> {
    /// Whether the next number differs from the one that is expected.
    #[inline(always)]
    fn differs(&mut self) -> bool {
        let differs = self.different & 1 << self.place != 0;
        self.place += 1;
        differs
    }
}

impl Coder for Reader<'_> {
    const READS: bool = true;

    #[inline(always)]
    fn number(&mut self, value: &mut Nullable, expected: Nullable) {
        *value = if self.differs() { take_number(expected, &mut self.rest) } else { expected };
    }

    #[inline(always)]
    fn kept(&mut self, value: &mut Nullable, _before: Nullable) {
        if self.differs() {
            *value = take_number(*value, &mut self.rest);
        }
    }
}

#[inline]
fn put_number(writer: &mut Writer<'_>, value: Nullable, expected: Nullable) {
    let Some(number) = value.get() else { return writer.put(NULL) };
    let difference = number.wrapping_sub(expected.get().unwrap_or(0));
    let zigzag = ((difference << 1) ^ (difference >> 63)) as u64;
    if let Some(token) = zigzag.checked_add(FIRST_DIFFERENCE) {
        writer.put(token);
    } else {
        writer.put(WHOLE);
        if let Some(place) = writer.numbers.get_mut(writer.length..).and_then(<[u8]>::first_chunk_mut) {
            *place = number.to_le_bytes();
            writer.length += place.len();
        }
    }
}

#[inline(always)]
fn take_number(expected: Nullable, rest: &mut &[u8]) -> Nullable {
    match take_token(rest) {
        None | Some(NULL) => Nullable::NULL,
        Some(WHOLE) => {
            let Some((number, behind)) = rest.split_first_chunk::<8>() else { return Nullable::NULL };
            *rest = behind;
            Some(i64::from_le_bytes(*number)).into()
        }
        Some(token) => {
            let zigzag = token - FIRST_DIFFERENCE;
            let difference = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
            Some(expected.get().unwrap_or(0).wrapping_add(difference)).into()
        }
    }
}

#[inline(always)]
fn later(value: Nullable, ns: i64) -> Nullable {
    value.get().map(|value| value.wrapping_add(ns)).into()
}

#[inline(always)]
fn or(value: Nullable, other: Nullable) -> Nullable {
    if value.is_some() { value } else { other }
}

/// Codes a number that is never null and is often equal to the number in the previous record.
#[inline(always)]
fn kept_whole(coder: &mut impl Coder, value: &mut i64, before: i64) {
    let mut number = Nullable::from(Some(*value));
    coder.kept(&mut number, Some(before).into());
    *value = number.value();
}

/// Codes a number that is never null.
#[inline(always)]
fn whole(coder: &mut impl Coder, value: &mut i64, expected: i64) {
    let mut number = Nullable::from(Some(*value));
    coder.number(&mut number, Some(expected).into());
    *value = number.value();
}

/// Codes all numbers of `record`, beginning with the numbers that differ from their prediction most often. The expected
/// value of each number is computed from the record `before` and from the numbers already coded.
#[inline(always)]
fn code(coder: &mut impl Coder, record: &mut WaitRecord, before: &WaitRecord) {
    let none = Nullable::NULL;
    let mut frame = record.frame as i64;
    whole(coder, &mut frame, (before.frame as i64).wrapping_add(1));
    record.frame = frame as u64;
    let (wait, last) = (&mut record.wait, &before.wait);
    coder.number(&mut wait.wait_ns, none);
    let wait_ns = wait.wait_ns.get().unwrap_or(0);
    coder.number(&mut wait.since_ack_ns, none);
    let acked = wait.since_ack_ns;
    coder.number(&mut wait.ack_frame, acked.get().map(|_| frame.wrapping_sub(1)).into());
    coder.number(&mut wait.ack_lag_ns, if acked.is_some() { last.ack_lag_ns } else { none });
    coder.number(&mut wait.flight_before_bytes, later(last.flight_after_bytes, before.payload_bytes));
    let unacked_before = wait.flight_before_bytes;
    coder.number(&mut wait.flight_after_bytes, if acked.is_some() { last.flight_after_bytes } else { unacked_before });
    let unacked = wait.flight_after_bytes;
    code_words(coder, record, before);
    let (wait, last) = (&mut record.wait, &before.wait);
    coder.kept(&mut wait.rtt_sample_ns, last.rtt_sample_ns);
    let resampled = wait.rtt_sample_ns != last.rtt_sample_ns;
    coder.number(
        &mut wait.previous_rtt_sample_ns,
        if resampled { last.rtt_sample_ns } else { last.previous_rtt_sample_ns },
    );
    coder.kept(&mut wait.srtt_ns, last.srtt_ns);
    coder.kept(&mut wait.queueing_delay_ns, last.queueing_delay_ns);
    coder.kept(&mut wait.queue_grew_ns, last.queue_grew_ns);
    coder.number(&mut wait.sent_ticks, last.sent_ticks.get().map(|_| 0).into());
    let echo = if acked.is_some() { acked } else { later(last.echo_ns, wait_ns) };
    coder.number(&mut wait.echo_ns, if last.echo_ns.is_some() { echo } else { none });
    coder.number(&mut wait.window_opened_ns, if last.usable_window_before_bytes.is_some() { acked } else { none });
    coder.number(&mut wait.peer_first_ns, none);
    coder.number(&mut wait.peer_last_ns, wait.peer_first_ns);
    coder.number(&mut wait.peer_data_ns, wait.peer_last_ns);
    coder.number(
        &mut wait.peer_payload_bytes,
        if wait.peer_first_ns.is_some() { last.peer_payload_bytes } else { none },
    );
    coder.number(&mut wait.since_all_acked_ns, if unacked == Some(0).into() { acked } else { none });
    coder.number(
        &mut wait.usable_window_before_bytes,
        later(before.usable_window_bytes, before.payload_bytes.wrapping_neg()),
    );
    let acked_bytes = unacked_before.get().unwrap_or(0).wrapping_sub(unacked.get().unwrap_or(0));
    coder.number(&mut record.usable_window_bytes, later(wait.usable_window_before_bytes, acked_bytes));
    let as_captured = before.in_flight_bytes == last.flight_after_bytes;
    let in_flight = if as_captured { unacked } else { later(before.in_flight_bytes, before.payload_bytes) };
    coder.number(&mut record.in_flight_bytes, in_flight);
    coder.number(&mut record.since_last_ack_ns, or(acked, later(before.since_last_ack_ns, wait_ns)));
    coder.number(&mut record.since_last_data_ns, or(wait.peer_last_ns, later(before.since_last_data_ns, wait_ns)));
    kept_whole(coder, &mut record.payload_bytes, before.payload_bytes);
    whole(coder, &mut record.seq, before.seq.wrapping_add(before.payload_bytes));
    whole(coder, &mut record.ts_ns, before.ts_ns.wrapping_add(wait_ns));
    coder.kept(&mut wait.previous_round_flight_bytes, last.previous_round_flight_bytes);
    coder.kept(&mut wait.flown_bytes, last.flown_bytes);
    coder.number(&mut wait.missed_bytes, Some(0).into());
    coder.number(&mut wait.missed_acked_ns, Nullable::default());
    coder.kept(&mut wait.left_out_segments, last.left_out_segments);
    coder.number(&mut wait.loss_signalled_ns, later(last.loss_signalled_ns, wait_ns));
    coder.number(&mut wait.payload_before_bytes, Some(before.payload_bytes).into());
    coder.number(&mut wait.frame_before, Some(before.frame as i64).into());
    coder.kept(&mut wait.smss_bytes, last.smss_bytes);
}

/// Codes the flags and enumerations of a record as one number. The bits of the number show what differs from the
/// previous record.
#[inline(always)]
fn code_words<C: Coder>(coder: &mut C, record: &mut WaitRecord, before: &WaitRecord) {
    let expected = packed(before);
    let mut different = if C::READS { 0 } else { (packed(record) ^ expected) as i64 };
    whole(coder, &mut different, 0);
    if C::READS && different != 0 {
        unpack(different as u64 ^ expected, record);
    }
}

/// First bit of the TCP flags in a packed word.
const TCP_FLAGS_AT: u32 = 13;
/// First bit of the kind of segment in a packed word.
const KIND_AT: u32 = TCP_FLAGS_AT + 16;
/// First bit of the trigger of this retransmission in a packed word.
const RESENT_BY_AT: u32 = KIND_AT + 8;
/// First bit of the trigger of the loss repair in a packed word.
const REPAIRED_BY_AT: u32 = RESENT_BY_AT + 3;

/// The flags and enumerations of a record in one word; flags that change often are in the low bits.
#[inline(always)]
fn packed(record: &WaitRecord) -> u64 {
    let Wait { flown_before, window_closed, small, small_before, held_before, pushed_before, .. } = record.wait;
    let Wait { last_small, small_passes, recovering, after_loss, fills_unscaled, kept_alive, repaired_by, .. } =
        record.wait;
    let flags = [
        small,
        small_before,
        pushed_before,
        last_small.was_in_flight(),
        flown_before,
        held_before,
        window_closed,
        small_passes,
        recovering,
        after_loss,
        fills_unscaled,
        kept_alive,
        last_small == LastSmall::JustAcked,
    ];
    let bits = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u64::from(*flag));
    let code = |retransmit_trigger: Option<RetransmitTrigger>| retransmit_trigger.map_or(0, |by| by as u64 + 1);
    bits | u64::from(record.flags.0) << TCP_FLAGS_AT
        | (record.kind as u64) << KIND_AT
        | code(record.retransmit_trigger) << RESENT_BY_AT
        | code(repaired_by) << REPAIRED_BY_AT
}

#[inline(always)]
fn unpack(word: u64, record: &mut WaitRecord) {
    let flag = |place: u32| word >> place & 1 == 1;
    let retransmit_trigger = |place: u32| {
        ((word >> place & 7) as usize).checked_sub(1).and_then(|code| RETRANSMIT_TRIGGERS.get(code).copied())
    };
    record.wait.small = flag(0);
    record.wait.small_before = flag(1);
    record.wait.pushed_before = flag(2);
    record.wait.last_small = match (flag(3), flag(12)) {
        (false, _) => LastSmall::Acked,
        (true, false) => LastSmall::InFlight,
        (true, true) => LastSmall::JustAcked,
    };
    record.wait.flown_before = flag(4);
    record.wait.held_before = flag(5);
    record.wait.window_closed = flag(6);
    record.wait.small_passes = flag(7);
    record.wait.recovering = flag(8);
    record.wait.after_loss = flag(9);
    record.wait.fills_unscaled = flag(10);
    record.wait.kept_alive = flag(11);
    record.flags = TcpFlags((word >> TCP_FLAGS_AT) as u16);
    record.kind = KINDS.get((word >> KIND_AT & 0xff) as usize).copied().unwrap_or_default();
    record.retransmit_trigger = retransmit_trigger(RESENT_BY_AT);
    record.wait.repaired_by = retransmit_trigger(REPAIRED_BY_AT);
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::{Decoder, Encoder, KINDS, RETRANSMIT_TRIGGERS};
    use crate::ledger::WaitRecord;
    use crate::nullable::Nullable;
    use crate::sender::{LastSmall, Wait};
    use crate::wire::TcpFlags;

    /// Random numbers of all sizes, and null.
    fn number() -> impl Strategy<Value = Option<i64>> {
        prop_oneof![
            Just(None),
            any::<i64>().prop_map(Some),
            (-5_i64..5).prop_map(Some),
            (0_i64..1_000_000).prop_map(Some)
        ]
    }

    /// A random record. Every field is named, so that the compiler reports a new field that is missing here.
    pub(crate) fn record() -> impl Strategy<Value = WaitRecord> {
        let codes = (0..KINDS.len(), 0..=RETRANSMIT_TRIGGERS.len(), 0..=RETRANSMIT_TRIGGERS.len());
        (prop::collection::vec(number(), 37), any::<u64>(), codes).prop_map(|(numbers, flags, codes)| {
            let mut numbers = numbers.into_iter();
            let mut number = || Nullable::from(numbers.next().flatten());
            let mut places = 0..64;
            let mut flag = || flags >> places.next().unwrap() & 1 == 1;
            let wait = Wait {
                wait_ns: number(),
                frame_before: number(),
                sent_ticks: number(),
                queueing_delay_ns: number(),
                queue_grew_ns: number(),
                since_all_acked_ns: number(),
                since_ack_ns: number(),
                ack_frame: number(),
                ack_lag_ns: number(),
                rtt_sample_ns: number(),
                previous_rtt_sample_ns: number(),
                srtt_ns: number(),
                loss_signalled_ns: number(),
                echo_ns: number(),
                window_opened_ns: number(),
                peer_first_ns: number(),
                peer_last_ns: number(),
                peer_data_ns: number(),
                peer_payload_bytes: number(),
                payload_before_bytes: number(),
                flight_before_bytes: number(),
                flight_after_bytes: number(),
                missed_bytes: number(),
                missed_acked_ns: number(),
                left_out_segments: number(),
                usable_window_before_bytes: number(),
                previous_round_flight_bytes: number(),
                flown_bytes: number(),
                smss_bytes: number(),
                flown_before: flag(),
                window_closed: flag(),
                small: flag(),
                small_before: flag(),
                held_before: flag(),
                pushed_before: flag(),
                last_small: match (flag(), flag()) {
                    (false, _) => LastSmall::Acked,
                    (true, false) => LastSmall::InFlight,
                    (true, true) => LastSmall::JustAcked,
                },
                small_passes: flag(),
                recovering: flag(),
                after_loss: flag(),
                fills_unscaled: flag(),
                kept_alive: flag(),
                repaired_by: RETRANSMIT_TRIGGERS.get(codes.1).copied(),
            };
            WaitRecord {
                wait,
                frame: number().value() as u64,
                ts_ns: number().value(),
                seq: number().value(),
                flags: TcpFlags((flags >> 48) as u16),
                payload_bytes: number().value(),
                kind: KINDS[codes.0],
                retransmit_trigger: RETRANSMIT_TRIGGERS.get(codes.2).copied(),
                in_flight_bytes: number(),
                usable_window_bytes: number(),
                since_last_ack_ns: number(),
                since_last_data_ns: number(),
            }
        })
    }

    pub(crate) fn described(records: &[WaitRecord]) -> Vec<String> {
        records.iter().map(|record| format!("{record:?}")).collect()
    }

    fn decoded(bytes: &[u8]) -> Vec<WaitRecord> {
        let mut records = Vec::new();
        Decoder::new(bytes).each(|record| records.push(*record));
        records
    }

    proptest! {
        #[test]
        fn every_record_comes_back(records in prop::collection::vec(record(), 1..6)) {
            let (mut encoder, mut bytes, mut before) = (Encoder::default(), Vec::new(), WaitRecord::default());
            for record in &records {
                let mut record = *record;
                encoder.put(&mut record, &before, &mut bytes);
                before = record;
            }
            prop_assert_eq!(described(&decoded(&bytes)), described(&records));
        }

        #[test]
        fn bytes_that_are_no_record_end_the_reading(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(decoded(&bytes).len() <= bytes.len());
        }
    }

    #[test]
    fn a_record_as_expected_takes_few_bytes() {
        let mut before = WaitRecord {
            frame: 7,
            payload_bytes: 1448,
            seq: 1,
            ts_ns: 1_700_000_000_000_000_000,
            ..WaitRecord::default()
        };
        before.wait.flight_after_bytes = Some(1448).into();
        before.in_flight_bytes = Some(1448).into();
        let mut next = WaitRecord {
            frame: 8,
            seq: 1449,
            ts_ns: before.ts_ns + 5000,
            in_flight_bytes: Some(2896).into(),
            ..before
        };
        next.wait.wait_ns = Some(5000).into();
        next.wait.frame_before = Some(7).into();
        next.wait.payload_before_bytes = Some(1448).into();
        next.wait.missed_bytes = Some(0).into();
        (next.wait.flight_before_bytes, next.wait.flight_after_bytes) = (Some(2896).into(), Some(2896).into());
        let mut bytes = Vec::new();
        Encoder::default().put(&mut next, &before, &mut bytes);
        assert_eq!(bytes.len(), 3);
    }
}
