use waypost_text::{LogLineKind, is_protocol_line};

#[test]
fn a_line_is_an_error_where_it_says_so_and_not_where_it_counts_none() {
    for (line, wanted) in [
        ("error: no disk", LogLineKind::Error),
        ("ERROR something", LogLineKind::Error),
        ("thread 'main' panicked at src/main.rs:1", LogLineKind::Error),
        ("test a::b ... FAILED", LogLineKind::Error),
        ("Traceback (most recent call last):", LogLineKind::Error),
        ("error[E0308]: mismatched types", LogLineKind::Error),
        ("see E0308 for more", LogLineKind::Error),
        ("assertion `left == right` failed", LogLineKind::Error),
        ("warning: unused variable", LogLineKind::Warning),
        ("0 errors, 2 warnings", LogLineKind::Plain),
        ("no errors, 1 warning", LogLineKind::Warning),
        ("error: 0", LogLineKind::Plain),
        ("failed=0 ok=3", LogLineKind::Plain),
        ("test result: ok. 3 passed; 0 failed", LogLineKind::Plain),
        ("compiling error-chain v1", LogLineKind::Plain),
        ("all is well", LogLineKind::Plain),
        ("", LogLineKind::Plain),
        ("日本語 error", LogLineKind::Error),
    ] {
        assert_eq!(LogLineKind::of(line), wanted, "{line}");
    }
}

#[test]
fn lines_of_the_protocol_with_the_worker_are_told_apart() {
    assert!(is_protocol_line("waypost:progress 1 of 2"));
    assert!(is_protocol_line("waypost:output"));
    assert!(!is_protocol_line("waypost:outputs"));
    assert!(!is_protocol_line(" waypost:output"));
}
