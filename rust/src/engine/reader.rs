//! The reading thread turns frames into packets, and counts the frames without a readable packet.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use super::pipe::Spread;
use super::summary::Summary;
use crate::capture::{Capture, Granularity, LinkType};
use crate::error::{CaptureError, ErrorKind, Problem};
use crate::flows::Only;
use crate::wire::{self, Dissector, Packet, Stop};

/// Maximum number of reasons for unread packets that are counted separately. Above this number, all further unknown
/// link types count as one reason.
const MAX_STOPS: usize = 64;

pub(super) struct FrameReader {
    capture: Capture,
    /// The connections whose packets are kept, or `None` to keep all packets.
    only: Option<Arc<Only>>,
    pub(super) dissector: Dissector,
    summary: Summary,
    /// Each reason why packets were not read, with the problem that reports it.
    stops: Vec<(Stop, Problem)>,
    /// Errors that ended a file early.
    ends: Vec<Problem>,
    previous_ts_ns: Option<i64>,
    granularity: Granularity,
    /// The link type of the latest frames, and the number of consecutive frames with this link type.
    linked: (Option<LinkType>, u64),
}

impl FrameReader {
    pub(super) fn new(capture: Capture, only: Option<Arc<Only>>) -> Self {
        Self {
            capture,
            only,
            dissector: Dissector::default(),
            summary: Summary::default(),
            stops: Vec::new(),
            ends: Vec::new(),
            previous_ts_ns: None,
            granularity: Granularity::default(),
            linked: (None, 0),
        }
    }

    /// Reads until the capture ends or the receiver is dropped.
    pub(super) fn run(mut self, to_workers: &mut Spread) -> Summary {
        loop {
            match self.capture.advance() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.ends.push(ended_early(&error));
                    continue;
                }
            }
            self.read_frame(to_workers.packets());
            if !to_workers.pass_on_if_full() {
                break;
            }
        }
        to_workers.pass_on();
        self.account()
    }

    #[inline]
    fn read_frame(&mut self, packets: &mut Vec<Packet>) {
        let frame = self.capture.frame();
        let summary = &mut self.summary;
        summary.packets += 1;
        if let Some(ts_ns) = frame.ts_ns {
            summary.first_ts_ns = Some(summary.first_ts_ns.map_or(ts_ns, |first| first.min(ts_ns)));
            summary.last_ts_ns = Some(summary.last_ts_ns.map_or(ts_ns, |last| last.max(ts_ns)));
            if let Some(previous) = self.previous_ts_ns.replace(ts_ns) {
                let step_ns = ts_ns.saturating_sub(previous);
                self.granularity.take(step_ns);
                if step_ns < 0 {
                    summary.backward_timestamps += 1;
                    summary.largest_step_back_ns = summary.largest_step_back_ns.max(step_ns.saturating_neg());
                }
            }
        }
        summary.truncated_packets += u64::from((frame.data.len() as u64) < u64::from(frame.original_bytes));
        match frame.link_type {
            link_type if link_type == self.linked.0 => self.linked.1 += 1,
            link_type => count_linked(&mut self.linked, link_type, summary),
        }
        if let Some(only) = &self.only
            && wire::usual_flow(&frame).is_some_and(|flow| !only.wants_flow(&flow))
        {
            summary.tcp_segments += 1;
            return;
        }
        let before = packets.len();
        match self.dissector.read(&frame, packets) {
            Ok(()) => {
                for packet in packets.get(before..).unwrap_or_default() {
                    match packet {
                        Packet::Tcp(segment) => {
                            self.summary.tcp_segments += 1;
                            if segment.bad_data_offset {
                                stopped(&mut self.stops, Stop::BadDataOffset, frame.number, self.capture.place());
                            }
                        }
                        Packet::Udp(_) => self.summary.udp_datagrams += 1,
                    }
                }
            }
            // A fragment is no problem in itself. A packet whose fragments remain incomplete is reported at the end of
            // the capture.
            Err(Stop::NotTcp | Stop::Fragment) => {}
            Err(stop) => stopped(&mut self.stops, stop, frame.number, self.capture.place()),
        }
        if let Some(only) = &self.only {
            while packets.len() > before && packets.last().is_some_and(|packet| !only.wants(packet)) {
                packets.pop();
            }
        }
        for (stop, number) in self.dissector.asides() {
            if !matches!(stop, Stop::NotTcp | Stop::Fragment) {
                // The place in the file is known only for the current frame.
                stopped(&mut self.stops, stop, number, self.capture.place().filter(|_| number == frame.number));
            }
        }
    }

    fn account(mut self) -> Summary {
        count_linked(&mut self.linked, None, &mut self.summary);
        let mut problems = self.ends;
        problems.extend(self.capture.problems());
        problems.extend(self.dissector.incidents().into_iter().map(|incident| Problem {
            what: incident.what.into(),
            path: OsString::new(),
            frame: Some(incident.first_frame),
            offset: None,
            count: incident.count,
            loses_data: true,
        }));
        problems.extend(self.stops.into_iter().map(|(_, problem)| problem));
        let tick_ns = self.granularity.tick_ns();
        Summary { capture: self.capture.info(), problems, tick_ns, ..self.summary }
    }
}

/// Adds the frames in `linked` to the summary, because the link type changes.
#[cold]
fn count_linked(linked: &mut (Option<LinkType>, u64), link_type: Option<LinkType>, summary: &mut Summary) {
    if let (Some(before), packets) = std::mem::replace(linked, (link_type, 1)) {
        *summary.link_types.entry(before).or_default() += packets;
    }
}

/// Counts a reason. The first occurrence of a reason also records the frame, and the file and offset if known.
fn stopped(stops: &mut Vec<(Stop, Problem)>, stop: Stop, frame: u64, place: Option<(&OsStr, u64)>) {
    let is_one_of_many = stops.len() >= MAX_STOPS && matches!(stop, Stop::UnknownLink(_));
    let stop =
        if is_one_of_many && stops.iter().all(|(known, _)| *known != stop) { Stop::MoreUnknownLinks } else { stop };
    if let Some((_, problem)) = stops.iter_mut().find(|(known, _)| *known == stop) {
        problem.count += 1;
        return;
    }
    let (what, loses_data) = describe(stop);
    let path = place.map_or_else(OsString::new, |(path, _)| path.to_owned());
    let offset = place.map(|(_, offset)| offset);
    let problem = Problem { what, path, frame: Some(frame), offset, count: 1, loses_data };
    stops.push((stop, problem));
}

fn ended_early(error: &CaptureError) -> Problem {
    let rest = match error.kind {
        ErrorKind::Damaged => ", the rest is lost (copy or capture it again)",
        _ => "",
    };
    Problem {
        what: format!("{}{}; everything before it was read{rest}", error.what, error.shortfall()),
        path: error.path.clone(),
        frame: error.frame,
        offset: error.offset,
        count: 1,
        loses_data: true,
    }
}

/// Text for the reason why a packet was not read. The second value is true if TCP data is possibly lost.
fn describe(stop: Stop) -> (String, bool) {
    match stop {
        Stop::NotTcp | Stop::Fragment => ("not TCP".into(), false),
        Stop::Cut(header) => (
            format!("the capture contains only part of the {header} (snaplen too small?): the frame is not analyzed"),
            true,
        ),
        Stop::Malformed(header) => (
            format!(
                "the fields of the {header} contradict each other or the frame's length: the frame is not analyzed"
            ),
            false,
        ),
        Stop::UnknownLink(link_type) => {
            let name = wire::link_name(link_type);
            (format!("link type {link_type} ({name}) is not supported: the frame is not analyzed"), true)
        }
        Stop::BadDataOffset => {
            let what =
                "the TCP header's length contradicts itself or the packet: the segment is analyzed without its data";
            (what.into(), false)
        }
        Stop::DamagedPdu => {
            let what = "the link damaged an AAL5 PDU including its headers: its content is not analyzed";
            (what.into(), true)
        }
        Stop::MoreUnknownLinks => ("another link type that is not supported: the frame is not analyzed".into(), true),
        Stop::NotRead(what) => (format!("{what}: the frame is not analyzed"), true),
        Stop::TooDeep => ("more nested headers than any real packet has: the frame is not analyzed".into(), false),
    }
}
