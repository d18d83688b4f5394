//! Reads the two output pipes of a program together, so that neither fills up, with limits for time and size.

use std::io::{self, PipeReader, Read};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Reads both pipes to their ends; `None` if that takes too long or is too much.
pub(crate) fn read_both(
    output: PipeReader,
    errors: PipeReader,
    limit: Duration,
    bytes_max: usize,
) -> io::Result<Option<(String, String)>> {
    let until = Instant::now() + limit;
    let mut pipes = [(Some(output), Vec::new()), (Some(errors), Vec::new())];
    let mut buffer = [0u8; 16 * 1024];
    while pipes.iter().any(|(pipe, _)| pipe.is_some()) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || pipes.iter().any(|(_, bytes)| bytes.len() > bytes_max) {
            return Ok(None);
        }
        let open = pipes.iter_mut().filter(|(pipe, _)| pipe.is_some());
        for (pipe, bytes) in open {
            let Some(reader) = pipe else { continue };
            // Waits only briefly for each pipe: the other one may be full.
            let moment = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            let mut watched = [PollFd::new(&*reader, PollFlags::IN)];
            match poll(&mut watched, Some(&moment)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match reader.read(&mut buffer) {
                Ok(0) => *pipe = None,
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    let [(_, output), (_, errors)] = pipes;
    Ok(Some((String::from_utf8_lossy(&output).into_owned(), String::from_utf8_lossy(&errors).into_owned())))
}
