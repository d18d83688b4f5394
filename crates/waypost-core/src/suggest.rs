//! Finds the most similar known name, for "did you mean".

/// Maximum candidates compared; beyond this a suggestion is not worth the search.
const CANDIDATES_MAX: usize = 20_000;
/// Maximum edit distance of a suggestion, for a name of any length.
const EDITS_MAX: usize = 4;

/// Returns the candidate closest to `wanted`, ignoring case, if one is close enough.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let allowed = (wanted.chars().count() / 3).clamp(1, EDITS_MAX);
    let wanted = wanted.to_lowercase();
    candidates
        .into_iter()
        .take(CANDIDATES_MAX)
        .filter(|name| name.len().abs_diff(wanted.len()) <= EDITS_MAX)
        .map(|name| (strsim::osa_distance(&wanted, &name.to_lowercase()), name))
        .filter(|&(edits, _)| edits <= allowed)
        .min()
        .map(|(_, name)| name.to_owned())
}
