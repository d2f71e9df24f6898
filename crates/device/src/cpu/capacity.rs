//! How large the CPU device is when nobody says.

use std::fs;
use vramlab_memory::{GIB, MIB, format_bytes};

/// The device's size on every machine that can hold it, so that figures match from laptop to laptop.
const USUAL: u64 = 4 * GIB;

/// A default size and, where it is not the usual one, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Size of the device in bytes.
    pub bytes: u64,
    /// Why it is less than 4 GiB; `None` when it is not.
    pub reason: Option<String>,
}

/// 4 GiB, or half of the machine's memory or of the control group's limit where that is less.
pub fn capacity() -> Capacity {
    choose(machine_bytes(), group_limit())
}

/// What this machine or its control group holds, in bytes; `None` where the system does not say. A device above it
/// could not be filled.
pub fn most() -> Option<u64> {
    [machine_bytes(), group_limit()].into_iter().flatten().min()
}

fn choose(machine: Option<u64>, group: Option<u64>) -> Capacity {
    let of_machine = machine.map(|bytes| (bytes, "machine has"));
    let of_group = group.map(|bytes| (bytes, "control group allows"));
    let Some((bytes, whose)) = [of_machine, of_group].into_iter().flatten().min() else {
        return Capacity { bytes: USUAL, reason: None };
    };
    // Machines report a little less than they were sold with: 8 GB boards show about 7.6 GiB.
    let half = (bytes / 2).div_ceil(256 * MIB) * 256 * MIB;
    if half >= USUAL {
        return Capacity { bytes: USUAL, reason: None };
    }
    let reason = format!("this {whose} {}: the device takes half", format_bytes(bytes));
    Capacity { bytes: half.min(bytes), reason: Some(reason) }
}

/// Physical memory in bytes.
fn machine_bytes() -> Option<u64> {
    // SAFETY: `sysconf` takes a name and touches no memory of ours.
    let (pages, size) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    (pages > 0 && size > 0).then(|| pages as u64 * size as u64)
}

/// The least memory limit among the control groups above this process, of either version.
fn group_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if controllers.is_empty() {
            limits.extend(limits_above("/sys/fs/cgroup", path, "memory.max"));
        } else if controllers.split(',').any(|name| name == "memory") {
            limits.extend(limits_above("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
        }
    }
    limits.into_iter().min()
}

/// The limits in `file` of the group `path` and of each group above it. `max` is no limit.
fn limits_above(root: &str, path: &str, file: &str) -> Vec<u64> {
    let mut limits = Vec::new();
    let mut path = path.trim_end_matches('/');
    loop {
        let text = fs::read_to_string(format!("{root}{path}/{file}"));
        limits.extend(text.ok().and_then(|text| text.trim().parse::<u64>().ok()));
        let Some(slash) = path.rfind('/') else { return limits };
        path = &path[..slash];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_machine_gets_the_usual_size() {
        assert_eq!(choose(Some(16 * GIB), None), Capacity { bytes: 4 * GIB, reason: None });
        assert_eq!(choose(Some(7800 * MIB), Some(u64::MAX)).bytes, 4 * GIB);
        assert_eq!(choose(None, None).bytes, 4 * GIB);
    }

    #[test]
    fn a_small_machine_or_group_gets_half_and_a_reason() {
        let small = choose(Some(4 * GIB), None);
        assert_eq!(small.bytes, 2 * GIB);
        assert_eq!(
            small.reason.as_deref(),
            Some("this machine has 4.0 GiB: the device takes half")
        );
        let group = choose(Some(64 * GIB), Some(GIB));
        assert_eq!(group.bytes, 512 * MIB);
        assert!(group.reason.is_some_and(|reason| reason.contains("control group")));
    }

    #[test]
    fn this_machine_has_a_size() {
        assert!(capacity().bytes >= 64 * MIB);
    }
}
