//! Guesses the TCP stack of a host from the initial TTL and the order of TCP options in its SYN.
//!
//! The order is fixed in the code of a stack and known for common stacks. The result is only a guess, because settings,
//! middleboxes and tunnels can change a SYN. A SYN-ACK contains only options that the SYN offered, so a SYN-ACK often
//! shows less than a SYN.

use crate::accounts::{INITIAL_TTLS, SynShape};

/// A family of TCP stacks, in the order of `STACKS` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Stack {
    Linux,
    Apple,
    FreeBsd,
    OpenBsd,
    Windows,
    Solaris,
}

/// The options in a SYN, the initial TTL and the family. Sources: `tcp_options_write` (Linux), `tcp_addoptions`
/// (FreeBSD), `tcp_output` (XNU, OpenBSD), captures (Windows, Solaris).
const SIGNATURES: [(&str, u8, Stack); 13] = [
    ("mss,sackOK,TS,nop,wscale", 64, Stack::Linux),
    ("mss,nop,nop,sackOK,nop,wscale", 64, Stack::Linux),
    ("mss,sackOK,TS", 64, Stack::Linux),
    ("mss,nop,wscale,nop,nop,TS,sackOK,eol", 64, Stack::Apple),
    ("mss,nop,wscale,nop,nop,TS,sackOK,eol,eol", 64, Stack::Apple),
    ("mss,sackOK,eol,eol", 64, Stack::Apple),
    ("mss,nop,wscale,sackOK,TS", 64, Stack::FreeBsd),
    ("mss,nop,nop,sackOK,nop,wscale,nop,nop,TS", 64, Stack::OpenBsd),
    ("mss,nop,wscale,nop,nop,sackOK", 128, Stack::Windows),
    ("mss,nop,nop,sackOK", 128, Stack::Windows),
    ("mss,nop,wscale,sackOK,TS", 128, Stack::Windows),
    ("mss,nop,wscale,nop,nop,TS,nop,nop,sackOK", 128, Stack::Windows),
    ("sackOK,TS,mss,nop,wscale", 64, Stack::Solaris),
];

/// The family of stacks that sends such a SYN.
#[must_use]
pub fn stack(syn: &SynShape) -> Option<Stack> {
    family(&syn.option_names(), syn.ttl)
}

/// The initial TTL is the smallest of the common initial TTLs that are not below the captured TTL.
fn family(options: &str, ttl: u8) -> Option<Stack> {
    let start = INITIAL_TTLS.into_iter().find(|start| ttl <= *start)?;
    SIGNATURES.iter().find(|(names, initial, _)| *names == options && *initial == start).map(|(_, _, stack)| *stack)
}

#[cfg(test)]
mod tests {
    use super::{Stack, family};

    #[test]
    fn equal_options_are_distinguished_by_the_initial_ttl() {
        let options = "mss,nop,wscale,sackOK,TS";
        let table = [
            (1, Some(Stack::FreeBsd)),
            (64, Some(Stack::FreeBsd)),
            (65, Some(Stack::Windows)),
            (128, Some(Stack::Windows)),
            (129, None),
        ];
        for (ttl, expected) in table {
            assert_eq!(family(options, ttl), expected, "{ttl}");
        }
        assert_eq!(family("mss", 64), None);
        assert_eq!(family("", 64), None);
    }
}
