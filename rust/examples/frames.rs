//! Reads captures as the engine does, and prints their frames.
//!
//! `frames FILE…` prints number, time in nanoseconds, original length, captured length and link type of each frame,
//! with `-` for an unknown value. `frames --count FILE…` prints only the number of frames and the time of reading.
//! Errors go to stderr.

use std::io::Write;
use std::time::Instant;

use tcptrace_lab_core::capture::Capture;

fn main() -> std::process::ExitCode {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let count_only = paths.first().is_some_and(|first| first == "--count");
    if count_only {
        paths.remove(0);
    }
    let begin = Instant::now();
    let mut capture = match Capture::open(&paths) {
        Ok(capture) => capture,
        Err(error) => {
            eprintln!("{error}");
            return 3.into();
        }
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let (mut frames, mut bytes, mut failed) = (0_u64, 0_u64, false);
    loop {
        match capture.advance() {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                eprintln!("{error}");
                failed = true;
                continue;
            }
        }
        let frame = capture.frame();
        frames += 1;
        bytes += frame.data.len() as u64 + frame.ts_ns.unwrap_or(0) as u64 % 2;
        if !count_only {
            let or_dash = |number: Option<i64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
            let (ts_ns, link) = (or_dash(frame.ts_ns), or_dash(frame.link_type.map(i64::from)));
            let (number, original, captured) = (frame.number, frame.original_bytes, frame.data.len());
            if writeln!(out, "{number} {ts_ns} {original} {captured} {link}").is_err() {
                return 1.into();
            }
        }
    }
    if count_only {
        let seconds = begin.elapsed().as_secs_f64();
        println!("{frames} frames, {bytes} bytes, {seconds:.4} s, {:.1} M frames/s", frames as f64 / seconds / 1e6);
    }
    for problem in capture.problems() {
        eprintln!("{problem:?}");
    }
    eprintln!("{:?}", capture.info());
    if failed { 4.into() } else { 0.into() }
}
