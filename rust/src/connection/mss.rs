//! Derives the largest payload of a segment from the options of the SYNs.

use super::figures::{DirectionFigures, SynOptions};

/// Bytes that the timestamps option with its padding adds to each segment (RFC 7323, appendix A).
const TIMESTAMPS_BYTES: u32 = 12;
/// Default MSS over IPv4 for a host that sends no MSS option (RFC 9293, 3.7.1).
const DEFAULT_MSS: u32 = 536;
/// Default MSS over IPv6 for a host that sends no MSS option (RFC 9293, 3.7.1).
const DEFAULT_MSS_V6: u32 = 1220;

/// Largest payload of a segment between two hosts whose SYNs have these options, in bytes; 0 while neither SYN is
/// known.
///
/// The smaller MSS of the two SYNs limits both directions, because each host derives its MSS option from the MTU of its
/// own link. Timestamps reduce the payload, because every segment contains them (RFC 6691). The result is 0 if the
/// capture truncated options that are needed.
pub(crate) fn segment_bytes(offers: [Option<SynOptions>; 2], v6: bool) -> u32 {
    let default = if v6 { DEFAULT_MSS_V6 } else { DEFAULT_MSS };
    let known = offers.iter().flatten();
    let timestamps = || offers.map(|offer| offer.map_or(Some(false), |offer| offer.offers_timestamps()));
    if known.clone().any(|offer| offer.cut && (offer.mss.is_none() || !timestamps().contains(&Some(false)))) {
        return 0;
    }
    let mss = known.map(|offer| offer.mss.map_or(default, u32::from)).min().unwrap_or(0);
    if timestamps() == [Some(true); 2] { mss.saturating_sub(TIMESTAMPS_BYTES) } else { mss }
}

/// Largest payload of a segment in bytes, if both hosts sent an MSS option; otherwise `None`.
pub(crate) fn full_segment_bytes(client: &DirectionFigures, server: &DirectionFigures) -> Option<u16> {
    let offers = [client.syn_options, server.syn_options];
    let named = offers.iter().all(|offer| offer.is_some_and(|offer| offer.mss.is_some()));
    Some(segment_bytes(offers, false)).filter(|bytes| named && *bytes > 0).and_then(|bytes| bytes.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::{SynOptions, segment_bytes};

    fn offer(mss: u16, timestamps: bool) -> SynOptions {
        SynOptions { mss: Some(mss), timestamps, ..SynOptions::default() }
    }

    #[test]
    fn timestamps_that_both_offer_take_twelve_bytes_of_each_segment() {
        assert_eq!(segment_bytes([Some(offer(1460, true)), Some(offer(1460, true))], false), 1448);
        assert_eq!(segment_bytes([Some(offer(1460, true)), Some(offer(9140, false))], false), 1460);
    }

    #[test]
    fn a_syn_without_mss_means_536_and_no_syn_nothing() {
        assert_eq!(segment_bytes([Some(SynOptions::default()), Some(offer(1460, false))], false), 536);
        assert_eq!(segment_bytes([None, None], false), 0);
        assert_eq!(segment_bytes([None, Some(offer(1460, false))], false), 1460);
    }
}
