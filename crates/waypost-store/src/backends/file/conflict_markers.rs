//! The marks that version control leaves in a file whose two sides it could not merge. Knows no file.

/// What a line or a file is that has them.
pub(super) const CONFLICT: &str = "a merge left a conflict marker here, and the lines of both sides";

/// The beginnings of such lines. No JSON begins like that.
const MARKERS: [&[u8]; 4] = [b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>"];

/// Whether a line, with or without its end, is a conflict marker.
pub(super) fn is_conflict_marker(line: &[u8]) -> bool {
    MARKERS.iter().any(|marker| {
        line.strip_prefix(*marker).is_some_and(|rest| rest.is_empty() || rest[0].is_ascii_whitespace())
    })
}

/// Returns the number of the first line that is a conflict marker.
pub(super) fn first_conflict_line(bytes: &[u8]) -> Option<u64> {
    let at = bytes.split(|&byte| byte == b'\n').position(is_conflict_marker)?;
    Some(at as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_told_from_json() {
        for marker in ["<<<<<<< HEAD", "=======", "=======\n", ">>>>>>> other\r\n", "||||||| 3f2a1c0"] {
            assert!(is_conflict_marker(marker.as_bytes()), "{marker:?}");
        }
        for line in ["", "{\"a\":\"<<<<<<< HEAD\"}", "<<<<<<", "<<<<<<<<", "  <<<<<<< HEAD"] {
            assert!(!is_conflict_marker(line.as_bytes()), "{line:?}");
        }
        assert_eq!(first_conflict_line(b"{\n<<<<<<< HEAD\n=======\n"), Some(2));
        assert_eq!(first_conflict_line(b"{}\n"), None);
    }
}
