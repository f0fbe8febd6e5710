#![no_main]
#![allow(missing_docs, reason = "see the library")]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    tcptrace_lab_fuzz::ledger(input);
});
