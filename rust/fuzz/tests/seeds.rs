//! Runs the seeds, and mutations of the seeds, without libFuzzer. The run takes a few seconds, or `FUZZ_SECONDS` per
//! target. A generator with a fixed seed makes the mutations, so failures can be repeated. A failing input is written
//! to `artifacts/TARGET/`.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tcptrace_lab_fuzz::{TARGETS, Target};

/// Mutations per seed, unless a time is given.
const CHANGES: usize = 40;
/// Seeds without readable TCP.
const WITHOUT_TCP: [&str; 10] = [
    "file/empty",
    "file/snoop",
    "file/text",
    "merge/refused-00",
    "merge/refused-14",
    "engine/refused-00",
    "engine/refused-14",
    "ethernet/udp",
    "wifi_ppp_other/802.11-management",
    "wifi_ppp_other/unknown",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Names and bytes of the seeds in order of their names.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = root().join("seeds").join(target);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &Path| format!("{target}/{}", path.file_name().unwrap().to_string_lossy());
    paths.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

/// Runs `input`, and saves it if it violates an invariant.
fn run(target: Target, name: &str, input: &[u8]) -> u64 {
    match catch_unwind(|| target(input)) {
        Ok(account) => account.segments,
        Err(panic) => {
            let folder = root().join("artifacts").join(name.split('/').next().unwrap());
            fs::create_dir_all(&folder).unwrap();
            let kept = folder.join(format!("changed-{}", name.replace('/', "-")));
            fs::write(&kept, input).unwrap();
            eprintln!("{name}: the input is in {}", kept.display());
            std::panic::resume_unwind(panic);
        }
    }
}

/// `SplitMix64` by Steele et al. (OOPSLA 2014), a small generator that is good enough to choose mutations.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, or 0 if `bound` is 0.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() as usize).checked_rem(bound).unwrap_or(0)
    }
}

/// Mutates `input` in one place: changes a bit, a byte or a number (often to a limit), truncates the input, or removes,
/// duplicates or replaces a part. A new part is copied from `other`.
fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    const NUMBERS: [u32; 8] = [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff];
    let at = random.below(input.len());
    let end = at + random.below((input.len() - at).min(64));
    match random.below(7) {
        0 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        1 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.next() as u8),
        2 => {
            let number = NUMBERS[random.below(NUMBERS.len())];
            let bytes = if random.below(2) == 0 { number.to_le_bytes() } else { number.to_be_bytes() };
            let width = [1, 2, 4][random.below(3)];
            input.iter_mut().skip(at).zip(&bytes[4 - width..]).for_each(|(byte, new)| *byte = *new);
        }
        3 => input.truncate(at),
        4 => drop(input.drain(at..end)),
        5 => input.splice(at..at, input[at..end].to_vec()).for_each(drop),
        _ => {
            let from = random.below(other.len());
            let part = &other[from..from + random.below((other.len() - from).min(256))];
            input.splice(at..end, part.iter().copied()).for_each(drop);
        }
    }
}

/// Runs the seeds of `name`, and then mutations of these seeds.
fn fuzz(name: &str) {
    let target = TARGETS.iter().find(|(known, _)| *known == name).unwrap().1;
    let seeds = seeds(name);
    let without_tcp: Vec<&str> = seeds
        .iter()
        .filter(|(seed, input)| run(target, seed, input) == 0 && !seed.contains("/found-"))
        .map(|(seed, _)| seed.as_str())
        .collect();
    let expected: Vec<&str> = WITHOUT_TCP.into_iter().filter(|seed| seed.starts_with(&format!("{name}/"))).collect();
    assert_eq!(without_tcp, expected, "seeds without TCP");
    let seconds = std::env::var("FUZZ_SECONDS").ok().map(|seconds| seconds.parse().expect("a number of seconds"));
    let (started, mut random, mut executions) = (Instant::now(), Random(1), 0);
    let is_done = |executions| match seconds {
        Some(seconds) => started.elapsed() >= Duration::from_secs(seconds),
        None => executions >= CHANGES * seeds.len(),
    };
    while !is_done(executions) {
        let (seed, input) = &seeds[executions % seeds.len()];
        let mut input = input.clone();
        for _ in 0..=random.below(4) {
            let other = random.below(seeds.len());
            change(&mut input, &seeds[other].1, &mut random);
        }
        run(target, seed, &input);
        executions += 1;
    }
    println!("{name}: {executions} changed inputs in {:.1} s", started.elapsed().as_secs_f64());
}

#[test]
fn any_file_gives_rows_or_an_error() {
    fuzz("file");
}

#[test]
fn any_ethernet_frame_gives_rows_or_a_reason() {
    fuzz("ethernet");
}

#[test]
fn any_loopback_cooked_or_raw_frame_gives_rows_or_a_reason() {
    fuzz("loopback_cooked_raw");
}

#[test]
fn any_atm_frame_gives_rows_or_a_reason() {
    fuzz("atm");
}

#[test]
fn any_erf_record_gives_rows_or_a_reason() {
    fuzz("erf");
}

#[test]
fn any_other_frame_gives_rows_or_a_reason() {
    fuzz("wifi_ppp_other");
}

#[test]
fn any_segments_give_as_many_rows() {
    fuzz("segments");
}

#[test]
fn any_segments_end_waits_that_fill_the_life_of_their_connection() {
    fuzz("sender");
}

#[test]
fn any_waits_are_judged_and_fill_the_life_of_their_direction() {
    fuzz("ledger");
}

#[test]
fn any_files_together_give_the_frames_of_each() {
    fuzz("merge");
}

#[test]
fn any_files_give_the_engine_the_rows_of_one_thread() {
    fuzz("engine");
}

#[test]
fn any_frame_with_a_tools_header_gives_rows_or_a_reason() {
    fuzz("pseudo");
}

#[test]
fn any_frame_of_junipers_routers_gives_rows_or_a_reason() {
    fuzz("juniper");
}
