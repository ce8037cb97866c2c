//! The system calls in which threads wait, and what each waits for. Pure.
//!
//! `/proc/PID/task/TID/syscall` gives the number and the arguments of the call that a thread is blocked in: proc(5).
//! Numbers: `asm/unistd_64.h` of x86_64 and `asm-generic/unistd.h`, which aarch64 uses.

use narrows_model::series::ThreadState;

/// Object that a blocked thread waits for, as far as the call tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// The call says it.
    For(ThreadState),
    /// Object of this descriptor.
    Descriptor(u32),
    /// The only descriptor of a list in the process's memory, at this address.
    Listed(u64),
    /// A call of no interest, or none: a page fault.
    Unknown,
}

/// The kinds of call, by what their arguments mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    For(ThreadState),
    /// Its first argument is a descriptor.
    Descriptor,
    /// `poll` and `ppoll`: a list of descriptors, and their number.
    Poll,
    /// `select` and `pselect6`: one more than the highest descriptor.
    Select,
    /// `fcntl`: a file lock, by its second argument.
    Control,
}

use Call::{Control, Descriptor, For, Poll, Select};
use ThreadState::{Disk, Events, Lock, Sleep};

/// `F_SETLKW` and `F_OFD_SETLKW`, the commands of `fcntl` that wait.
const LOCKING: [u64; 2] = [7, 38];

/// Calls in which threads wait: what they wait for, the number on x86_64, the number on aarch64. A call that an
/// architecture does not have has the number [`NONE`].
const CALLS: &[(Call, u64, u64)] = &[
    (Descriptor, 0, 63),      // read
    (Descriptor, 1, 64),      // write
    (Descriptor, 17, 67),     // pread64
    (Descriptor, 18, 68),     // pwrite64
    (Descriptor, 19, 65),     // readv
    (Descriptor, 20, 66),     // writev
    (Descriptor, 40, 71),     // sendfile
    (Descriptor, 42, 203),    // connect
    (Descriptor, 44, 206),    // sendto
    (Descriptor, 45, 207),    // recvfrom
    (Descriptor, 46, 211),    // sendmsg
    (Descriptor, 47, 212),    // recvmsg
    (Descriptor, 295, 69),    // preadv
    (Descriptor, 296, 70),    // pwritev
    (Descriptor, 299, 243),   // recvmmsg
    (Descriptor, 307, 269),   // sendmmsg
    (Descriptor, 327, 286),   // preadv2
    (Descriptor, 328, 287),   // pwritev2
    (Poll, 7, NONE),          // poll
    (Poll, 271, 73),          // ppoll
    (Select, 23, NONE),       // select
    (Select, 270, 72),        // pselect6
    (Control, 72, 25),        // fcntl
    (For(Disk), 26, 227),     // msync
    (For(Disk), 74, 82),      // fsync
    (For(Disk), 75, 83),      // fdatasync
    (For(Disk), 162, 81),     // sync
    (For(Disk), 277, 84),     // sync_file_range
    (For(Disk), 306, 267),    // syncfs
    (For(Lock), 65, 193),     // semop
    (For(Lock), 73, 32),      // flock
    (For(Lock), 202, 98),     // futex
    (For(Lock), 220, 192),    // semtimedop
    (For(Lock), 449, 449),    // futex_waitv
    (For(Sleep), 35, 101),    // nanosleep
    (For(Sleep), 230, 115),   // clock_nanosleep
    (For(Events), 34, NONE),  // pause
    (For(Events), 43, 202),   // accept
    (For(Events), 61, 260),   // wait4
    (For(Events), 128, 137),  // rt_sigtimedwait
    (For(Events), 130, 133),  // rt_sigsuspend
    (For(Events), 208, 4),    // io_getevents
    (For(Events), 232, NONE), // epoll_wait
    (For(Events), 247, 95),   // waitid
    (For(Events), 281, 22),   // epoll_pwait
    (For(Events), 288, 242),  // accept4
    (For(Events), 426, 426),  // io_uring_enter
    (For(Events), 441, 441),  // epoll_pwait2
];

/// No call has this number.
const NONE: u64 = u64::MAX;

/// Object that a thread waits for by its `syscall` file; `None` if it is not blocked.
pub(super) fn wait(text: &[u8]) -> Option<Wait> {
    wait_of(text, |(_, x86_64, aarch64)| if cfg!(target_arch = "aarch64") { *aarch64 } else { *x86_64 })
}

fn wait_of(text: &[u8], number: impl Fn(&(Call, u64, u64)) -> u64) -> Option<Wait> {
    let text = std::str::from_utf8(text).unwrap_or_default();
    if text.starts_with("running") {
        return None;
    }
    let mut fields = text.split_ascii_whitespace();
    let called: Option<u64> = fields.next().and_then(|field| field.parse().ok());
    let mut argument = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
    let (first, second) = (argument().unwrap_or(0), argument().unwrap_or(0));
    let call = CALLS.iter().find(|entry| called == Some(number(entry))).map(|(call, _, _)| *call);
    Some(match call {
        Some(For(state)) => Wait::For(state),
        // The kernel takes the lower half of the register.
        Some(Descriptor) => Wait::Descriptor(first as u32),
        Some(Poll) if second == 0 => Wait::For(Sleep),
        Some(Poll) if second == 1 => Wait::Listed(first),
        Some(Select) if first == 0 => Wait::For(Sleep),
        Some(Poll | Select) => Wait::For(Events),
        Some(Control) if LOCKING.contains(&second) => Wait::For(Lock),
        Some(Control) | None => Wait::Unknown,
    })
}

/// The same by the kernel's function that a thread sleeps in (`wchan`), where its call may not be read.
pub(super) fn wait_in(function: &[u8]) -> Wait {
    let function = std::str::from_utf8(function).unwrap_or_default();
    let has = |parts: &[&str]| parts.iter().any(|part| function.contains(part));
    let state = if has(&["futex", "flock", "posix_lock"]) {
        Lock
    } else if has(&["nanosleep"]) {
        Sleep
    } else if has(&["ep_poll", "epoll", "poll_schedule", "do_select", "accept", "pipe", "do_wait", "sigtimedwait"]) {
        Events
    } else if has(&["io_schedule", "wait_on_page", "folio_wait", "jbd2", "blk_", "fsync", "writeback"]) {
        Disk
    } else {
        return Wait::Unknown;
    };
    Wait::For(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_call_says_what_is_waited_for() {
        let rest = "0x1 0x0 0x0 0x0 0x7ffd 0x7fa2";
        let cases = [
            ("running\n".to_owned(), None),
            (format!("202 0x7fad {rest}"), Some(Wait::For(Lock))),
            (format!("230 0x0 {rest}"), Some(Wait::For(Sleep))),
            (format!("74 0x5 {rest}"), Some(Wait::For(Disk))),
            (format!("232 0x5 {rest}"), Some(Wait::For(Events))),
            (format!("0 0x5 {rest}"), Some(Wait::Descriptor(5))),
            (format!("45 0xffffffff00000007 {rest}"), Some(Wait::Descriptor(7))),
            ("7 0x7f10 0x1 0x2710 0x0".to_owned(), Some(Wait::Listed(0x7f10))),
            ("7 0x7f10 0x0 0x2710 0x0".to_owned(), Some(Wait::For(Sleep))),
            ("7 0x7f10 0x2 0x2710 0x0".to_owned(), Some(Wait::For(Events))),
            ("23 0x0 0x0 0x0 0x0".to_owned(), Some(Wait::For(Sleep))),
            ("72 0x4 0x7 0x0".to_owned(), Some(Wait::For(Lock))),
            ("72 0x4 0x3 0x0".to_owned(), Some(Wait::Unknown)),
            ("257 0x0 0x0".to_owned(), Some(Wait::Unknown)),
            ("-1 0x7ffd 0x7fa2".to_owned(), Some(Wait::Unknown)),
            (String::new(), Some(Wait::Unknown)),
        ];
        for (text, expected) in cases {
            assert_eq!(wait_of(text.as_bytes(), |entry| entry.1), expected, "{text}");
        }
        assert_eq!(wait_of(b"98 0x0 0x0\n", |entry| entry.2), Some(Wait::For(Lock)), "aarch64");
    }

    #[test]
    fn no_number_stands_for_two_calls() {
        for number in [|entry: &(Call, u64, u64)| entry.1, |entry: &(Call, u64, u64)| entry.2] {
            let mut numbers: Vec<u64> = CALLS.iter().map(number).filter(|number| *number != NONE).collect();
            let all = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), all);
        }
    }

    #[test]
    fn the_function_says_it_where_the_call_may_not_be_read() {
        let cases = [
            ("futex_wait_queue", Wait::For(Lock)),
            ("hrtimer_nanosleep", Wait::For(Sleep)),
            ("do_epoll_wait", Wait::For(Events)),
            ("inet_csk_accept", Wait::For(Events)),
            ("jbd2_log_wait_commit", Wait::For(Disk)),
            ("0", Wait::Unknown),
        ];
        for (function, expected) in cases {
            assert_eq!(wait_in(function.as_bytes()), expected, "{function}");
        }
    }

    proptest! {
        #[test]
        fn random_texts_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), text in "[0-9a-fx -]{0,60}") {
            for text in [bytes.as_slice(), text.as_bytes()] {
                wait(text);
                wait_in(text);
            }
        }
    }
}
