//! Tokens: numbers encoded in as few bytes as they need.

#![expect(clippy::inline_always, reason = "measured: otherwise the numbers of a record are not kept in registers")]

pub(super) const MAX_TOKEN_BYTES: usize = 9;

/// Writes a token and returns its length in bytes. A number below 2^56 is stored with seven bits per byte; a larger one
/// takes a zero byte and eight more bytes. The number of trailing zero bits of the first byte shows how many bytes
/// follow, so a reader need not inspect each byte.
#[inline(always)]
pub(super) fn put_token(token: u64, bytes: &mut [u8]) -> usize {
    let length = (70 - (token | 1).leading_zeros()) / 7;
    if length < 9 {
        if let Some(place) = bytes.first_chunk_mut() {
            *place = ((token << 1 | 1) << (length - 1)).to_le_bytes();
        }
        length as usize
    } else {
        if let Some((first, place)) =
            bytes.split_first_mut().and_then(|(first, rest)| Some((first, rest.first_chunk_mut()?)))
        {
            (*first, *place) = (0, token.to_le_bytes());
        }
        MAX_TOKEN_BYTES
    }
}

/// Removes a token from the front of `rest` and returns its number; `None` if the token is incomplete.
#[inline(always)]
pub(super) fn take_token(rest: &mut &[u8]) -> Option<u64> {
    let word = if let Some(word) = rest.first_chunk() {
        u64::from_le_bytes(*word)
    } else {
        let mut word = [0; 8];
        word.get_mut(..rest.len())?.copy_from_slice(rest);
        u64::from_le_bytes(word)
    };
    let length = word.trailing_zeros() + 1;
    if length < 9 {
        *rest = rest.get(length as usize..)?;
        Some(word << (64 - 8 * length) >> (64 - 7 * length))
    } else {
        let (token, behind) = rest.get(1..)?.split_first_chunk()?;
        *rest = behind;
        Some(u64::from_le_bytes(*token))
    }
}

#[cfg(test)]
mod tests {
    use super::{put_token, take_token};

    #[test]
    fn tokens_of_all_lengths_come_back_and_none_that_is_cut_off() {
        for token in (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, u64::MAX >> bit]) {
            let mut bytes = [0; 32];
            let length = put_token(token, &mut bytes);
            assert_eq!(
                length,
                if token < 1 << 56 { (64 - (token | 1).leading_zeros()).div_ceil(7) as usize } else { 9 }
            );
            let mut rest = bytes.as_slice();
            assert_eq!((take_token(&mut rest), rest.len()), (Some(token), bytes.len() - length));
            assert_eq!(take_token(&mut &bytes[..length]), Some(token));
            assert_eq!(take_token(&mut &bytes[..length - 1]), None);
        }
    }
}
