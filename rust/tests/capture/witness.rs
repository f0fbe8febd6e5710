//! Compares this engine with Wireshark: other people's captures frame by frame, and files merged by `mergecap`.

use std::path::{Path, PathBuf};

use tcptrace_lab_core::capture::Capture;

use crate::support::*;

/// Link types whose pseudo-header Wireshark removes, so that it reports smaller lengths.
const SUNATM: u32 = 123;
const ERF: u32 = 197;

/// Files that Wireshark and this engine read differently, with the reason.
const EXCEPTIONS: [(&str, &str); 5] = [
    ("the-tcpdump-group-tcpdump__brcm-tag.pcap", "tshark refuses the file for its link type; the frames are there"),
    ("the-tcpdump-group-tcpdump__dsa.pcap", "tshark refuses the file for its link type; the frames are there"),
    ("seladb-PcapPlusPlus__solaris.snoop", "snoop is refused, by its name"),
    (
        "the-tcpdump-group-tcpdump__timestamp_invalid_micro.pcap",
        "tshark multiplies the sub-second field in 32 bits; here it is carried over",
    ),
    (
        "the-tcpdump-group-tcpdump__timestamp_invalid_nano.pcap",
        "tshark takes the sub-second field for a signed number; here it is carried over",
    ),
];

/// Other people's captures, in the folder `CAPTURES`, or in `../shared/captures` beside the project. Continuous
/// integration fails without these captures.
fn shared_captures() -> Vec<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/captures");
    let shared = std::env::var_os("CAPTURES").filter(|named| !named.is_empty()).map_or_else(beside, PathBuf::from);
    assert!(shared.is_dir() || !in_ci(), "{} is needed for this test", shared.display());
    let mut files = Vec::new();
    for directory in [shared.clone(), shared.join("malformed"), shared.join("derived")] {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        files.extend(entries.map(|entry| entry.path()).filter(|path| path.is_file()));
    }
    files.retain(|path| !matches!(path.extension().and_then(|end| end.to_str()), Some("tsv" | "md")));
    files.sort();
    files
}

/// A frame: (number, time, original length, captured length).
type Line = (u64, Option<i128>, u64, u64);

/// Converts seconds with nine decimals to nanoseconds.
fn nanoseconds(epoch: &str) -> Option<i128> {
    let (seconds, fraction) = epoch.split_once('.')?;
    Some(seconds.parse::<i128>().ok()? * 1_000_000_000 + format!("{fraction:0<9}").parse::<i128>().ok()?)
}

fn tshark_lines(path: &str) -> Option<Vec<Line>> {
    let fields = ["frame.number", "frame.time_epoch", "frame.len", "frame.cap_len"];
    let mut arguments = vec!["-n", "-r", path, "-T", "fields"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let lines = wireshark_tool("tshark", &arguments)?;
    let line = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        (fields[0].parse().unwrap(), nanoseconds(fields[1]), fields[2].parse().unwrap(), fields[3].parse().unwrap())
    };
    Some(lines.lines().map(line).collect())
}

/// Length of the record header, the extension headers, and the bytes that the record type puts before the packet.
fn erf_headers_bytes(record: &[u8]) -> u32 {
    let (mut bytes, mut more) = (16, record[8] >= 0x80);
    while more {
        more = record[bytes] >= 0x80;
        bytes += 8;
    }
    let multi_channel = [5, 6, 7, 8, 9, 12, 17, 18].contains(&(record[8] & 0x7F));
    let ethernet = [2, 11, 16, 20].contains(&(record[8] & 0x7F));
    bytes as u32 + 4 * u32::from(multi_channel) + 2 * u32::from(ethernet)
}

/// A frame of this engine, with the lengths and the time that Wireshark would report.
fn said_like_wireshark(frame: &Owned, theirs: &Line) -> Line {
    let Some(link_type) = frame.link_type else {
        // A numbered block without a packet has no length in this engine. Wireshark reports the length of the block's
        // content, and the time of a journal entry.
        return (frame.number, theirs.1, theirs.2, theirs.3);
    };
    let taken = match link_type {
        SUNATM => 4,
        ERF => erf_headers_bytes(&frame.data),
        _ => 0,
    };
    let mut lengths = (frame.original_bytes - taken, frame.data.len() as u32 - taken);
    if link_type == ERF {
        lengths.1 = lengths.1.min(lengths.0); // padding follows the packet in a record
    }
    // A time beyond 64 bits of nanoseconds is unknown in this engine.
    let ts_ns = match (frame.ts_ns, theirs.1) {
        (None, Some(ns)) if i64::try_from(ns).is_err() => Some(ns),
        (ts_ns, _) => ts_ns.map(i128::from),
    };
    (frame.number, ts_ns, u64::from(lengths.0), u64::from(lengths.1))
}

fn assert_like_tshark(path: &str) -> Option<usize> {
    let theirs = tshark_lines(path)?;
    let ours = Capture::open(&[path.to_owned()]).map(read_all).map(|all| all.frames).unwrap_or_default();
    assert_eq!(ours.len(), theirs.len(), "frames of {path}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(said_like_wireshark(ours, theirs), *theirs, "{path}");
    }
    Some(theirs.len())
}

#[test]
fn the_shared_captures_are_read_as_tshark_reads_them() {
    let mut files = shared_captures();
    files.retain(|file| EXCEPTIONS.iter().all(|(exception, _)| !file.ends_with(exception)));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let read = |file: &PathBuf| assert_like_tshark(file.to_str().unwrap()).unwrap_or(0);
    let frames: usize = std::thread::scope(|scope| {
        let parts = files.chunks(files.len().div_ceil(workers).max(1));
        let workers: Vec<_> = parts.map(|part| scope.spawn(move || part.iter().map(read).sum::<usize>())).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    eprintln!("{} files, {frames} frames", files.len());
}

/// Handwritten files for cases that other people's captures lack.
fn written_by_hand() -> Vec<(&'static str, Vec<u8>)> {
    let mut files = Vec::new();
    let packet = |order, id, ticks| enhanced(order, id, ticks, &[0x45; 30], 99, &[]);
    for order in BOTH_ORDERS {
        // Ixia's 0x1C0001AC is left out, because tshark 4.0 reads its nanoseconds as microseconds. Later versions of
        // tshark read nanoseconds.
        for magic in [MICROSECONDS, NANOSECONDS, 0x1C00_01AB] {
            let mut file = pcap_header(order, magic, 0, RAW);
            if magic >> 16 == 0x1C00 {
                file.extend(order.u32(0));
            }
            for second in 0..4 {
                file.extend(pcap_record(order, 0xFFFF_FFF0 + second, 999_999, &[0x45; 40], 1500));
            }
            files.push(("pcap", file));
        }
        for extra_bytes in [8, 12] {
            let mut file = pcap_header(order, MODIFIED, 1500, RAW);
            for second in 0..5 {
                file.extend(order.words(&[second, 7, 6, 60]));
                file.extend([order.u32(2).to_vec(), order.u16(0x0800).to_vec(), vec![0; extra_bytes - 6]].concat());
                file.extend([0x45; 6]);
            }
            files.push(("modified pcap", file));
        }
        for version in [(2, 2), (2, 3), (2, 4), (3, 1), (543, 0)] {
            let mut file = pcap_header_of_version(order, MICROSECONDS, version, 1500, RAW);
            for second in 0..4 {
                file.extend(order.words(&[second, 0, 20, 20]));
                file.extend([0x45; 20]);
            }
            file.extend(order.words(&[9, 0, 40, 20]));
            file.extend([0x45; 20]);
            files.push(("pcap of another version", file));
        }
        let resolutions = [0, 3, 6, 7, 9, 12, 0x80 + 3, 0x80 + 20, 0x80 + 30];
        let interfaces: Vec<u8> =
            resolutions.iter().flat_map(|value| interface(order, 101, 0, &[option(order, 9, &[*value])])).collect();
        let offset = option(order, 14, &order.u64(1_700_000_000));
        let mut file = [section(order), interfaces, interface(order, 101, 0, &[offset])].concat();
        for id in 0..=resolutions.len() as u32 {
            file.extend(packet(order, id, 1_234_567_891));
        }
        files.push(("resolutions", file.clone()));
        // Lengths that are not a multiple of four, a wrong length at the end, a block that is too short, an undefined
        // interface.
        let mut odd = packet(order, 2, 5);
        let end = odd.len() - 4;
        odd[4..8].copy_from_slice(&order.u32(end as u32 + 3));
        odd[end..].copy_from_slice(&order.u32(end as u32 + 3));
        let mut wrong_end = packet(order, 2, 5);
        wrong_end[end..].copy_from_slice(&order.u32(64));
        let too_short = block(order, 6, &[0; 8]);
        for (what, tail) in [("odd", odd), ("end", wrong_end), ("short", too_short), ("id", packet(order, 99, 0))] {
            files.push((what, [file.clone(), tail, packet(order, 2, 6)].concat()));
        }
        for kind in [4, 9, 10, 0x0BAD, 0x4000_0BAD, 0x8000_0000, 0x204, 0x216, 0x221, 0x1234] {
            let body = if kind == 9 { b"__REALTIME_TIMESTAMP=5\nMESSAGE=hello\n".to_vec() } else { vec![0; 40] };
            files.push(("no packet", [file.clone(), block(order, kind, &body), packet(order, 2, 6)].concat()));
        }
        let other = if order == Order::Little { Order::Big } else { Order::Little };
        let second = [section(other), interface(other, 101, 16, &[]), simple(other, &[0x45; 16], 99)].concat();
        files.push(("sections", [file, second, packet(other, 0, 7)].concat()));
    }
    files.extend(erf_files());
    files
}

/// ERF records of all types, with and without extension headers, with various times, with lengths that are too small,
/// and truncated.
fn erf_files() -> Vec<(&'static str, Vec<u8>)> {
    let types: Vec<u8> = (1..=25)
        .chain(27..=29)
        .flat_map(|kind| {
            let plain = erf_record(&Erf::of(kind), &[0; 60], 54);
            let cut_by_snaplen = erf_record(&Erf::of(kind), &[0; 32], 1500);
            let padding = erf_record(&Erf::of(48), &[0; 8], 0);
            let extended = erf_record(&Erf { extensions: vec![[3; 8], [4; 8]], ..Erf::of(kind) }, &[0; 60], 54);
            [plain, padding, cut_by_snaplen, extended].concat()
        })
        .collect();
    let ethernet = |seconds, fraction| erf_record(&Erf { seconds, fraction, ..Erf::of(2) }, &[7; 66], 64);
    let start: Vec<u8> = (0..4).flat_map(|fraction| ethernet(1_700_000_000, fraction)).collect();
    let times = [(0, 5), (u32::MAX, u32::MAX), (1, 0x8000_0000), (5, 0xAAAA_AAAA), (1_700_000_001, 0xFFFF_FFFD)];
    let far: Vec<u8> = times.iter().flat_map(|(seconds, fraction)| ethernet(*seconds, *fraction)).collect();
    let odd = [erf_record(&Erf::of(0), &[1; 9], 9), erf_record(&Erf::of(0x7F), &[1; 9], 9)].concat();
    let mut files = vec![("erf-types", types), ("erf-times", [start.clone(), far, odd].concat())];
    for record_bytes in [0, 15, 16, 18, 19, 90] {
        let mut record = ethernet(1_700_000_002, 0);
        record[10..12].copy_from_slice(&u16::to_be_bytes(record_bytes));
        files.push(("erf-length", [start.clone(), record, start.clone()].concat()));
    }
    files.push(("erf-cut", start[..start.len() - 9].to_vec()));
    files
}

#[test]
fn files_written_by_hand_are_read_as_tshark_reads_them() {
    for (index, (what, bytes)) in written_by_hand().into_iter().enumerate() {
        let file = Temporary::new(&format!("{index}-{}", what.replace(' ', "-")), &bytes);
        if assert_like_tshark(&file.path()).is_none() {
            return;
        }
    }
}

/// The variants of pcap that Wireshark can write.
const PCAP_VARIANTS: [&str; 5] = ["nsecpcap", "modpcap", "nokiapcap", "rh6_1pcap", "suse6_3pcap"];

#[test]
fn variants_that_wireshark_writes_are_read_as_it_reads_them() {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures");
    for name in ["ethernet-reordering.pcapng", "atm9180-nagle-on.pcapng"] {
        let original = captures.join(name);
        for variant in PCAP_VARIANTS {
            let file = Temporary::new(&format!("{variant}-{name}"), b"");
            let arguments = ["-F", variant, original.to_str().unwrap(), &file.path()];
            if wireshark_tool("editcap", &arguments).is_none() {
                return;
            }
            assert!(assert_like_tshark(&file.path()).unwrap() > 50, "{variant} of {name}");
        }
    }
}

#[test]
fn merged_captures_are_what_mergecap_makes_of_them() {
    // No time occurs in both files, because mergecap orders equal times differently (see `capture/merge.rs`). In one of
    // the files, time runs backward.
    let of = |first: u32, steps: &[u32]| {
        let mut file = pcap_header(Order::Little, MICROSECONDS, 1500, RAW);
        let mut ms = first;
        for (index, step) in steps.iter().cycle().take(200).enumerate() {
            ms += 5 * step;
            if index % 50 == 49 {
                ms -= 400;
            }
            let data = [0x45, first as u8, index as u8, 0];
            file.extend(pcap_record(Order::Little, 1_000 + ms / 1000, ms % 1000 * 1000, &data, 60));
        }
        file
    };
    let files = [of(1, &[1, 7, 2]), of(2, &[3]), of(3, &[1, 1, 90])];
    let files: Vec<_> = files.iter().enumerate().map(|(i, b)| Temporary::new(&format!("part-{i}"), b)).collect();
    let merged = Temporary::new("merged", b"");
    let paths: Vec<String> = files.iter().map(Temporary::path).collect();
    let mut arguments = vec!["-F", "pcap", "-w"];
    let merged_path = merged.path();
    arguments.push(&merged_path);
    arguments.extend(paths.iter().map(String::as_str));
    if wireshark_tool("mergecap", &arguments).is_some() {
        let theirs = read_all(Capture::open(&[merged.path()]).unwrap()).frames;
        let ours = read_all(Capture::open(&paths).unwrap()).frames;
        assert_eq!(ours.len(), 600);
        assert!(ours == theirs);
    }
}
