//! Copies between device memory and the host's, and who else may touch the latter.

use crate::whole::kernel;
use std::sync::atomic::AtomicBool;
use vramlab_device::cpu::{self, Options};
use vramlab_device::{Device, DeviceRange, LaunchError, Operand};
use vramlab_ir::kernel::{Body, Cumulative, Start, Transfer, TransferEnd};
use vramlab_ir::{DType, MemorySpace, ReduceKind};
use vramlab_memory::MIB;

#[test]
fn slices_go_into_a_stack_on_the_host_and_out_of_it() {
    let (device, mut driver) = cpu::open(Options { capacity: Some(MIB), ..Options::default() });
    let region = driver.obtain(1024).expect("room");
    let part = |at: u64, bytes| DeviceRange::new(region.base() + at, bytes);
    let stack = device.host_memory(64).expect("a little of the host's memory");
    assert_eq!(device.host_figures().bytes_in_use, 64);
    assert_eq!(driver.figures().held, 1024, "it takes nothing of the device");
    let never = AtomicBool::new(false);
    let start = || Some(Start { buffer: 1, limit: 3, stride: 16 });
    let into = Transfer {
        bytes: 16,
        to: MemorySpace::PinnedHost,
        read: TransferEnd::whole(0),
        write: TransferEnd { buffer: 2, start: start() },
    };
    let into = device.prepare(&kernel(3, Body::Transfer(into))).expect("an image");
    // A position behind the last slice is the last one's.
    for (at, byte) in [(0i32, 1u8), (1, 2), (2, 3), (9, 4)] {
        device.upload(part(0, 16), &[byte; 16]).expect("inside");
        let counter = Operand::Scalar(u64::from(at as u32).to_le());
        let operands = [Operand::Memory(part(0, 16)), counter, Operand::Host(stack.part(0, 64))];
        into.run_on(&operands, &never).expect("it runs");
    }
    let mut bytes = [0; 64];
    device.read_host(stack.part(0, 64), &mut bytes).expect("inside");
    let wanted: Vec<u8> = (1..=4).flat_map(|byte| [byte; 16]).collect();
    assert_eq!(bytes[..], wanted[..]);
    let out = Transfer {
        bytes: 16,
        to: MemorySpace::Device,
        read: TransferEnd { buffer: 0, start: start() },
        write: TransferEnd::whole(2),
    };
    let out = device.prepare(&kernel(3, Body::Transfer(out))).expect("an image");
    let counter = Operand::Scalar(2u64.to_le());
    let operands = [Operand::Host(stack.part(0, 64)), counter, Operand::Memory(part(512, 16))];
    out.run_on(&operands, &never).expect("it runs");
    let mut slice = [0; 16];
    device.download(part(512, 16), &mut slice).expect("inside");
    assert_eq!(slice, [3; 16]);
    // Beyond the block, and behind its end of life.
    let beyond = [Operand::Host(stack.part(0, 65)), counter, Operand::Memory(part(512, 16))];
    assert!(matches!(out.run_on(&beyond, &never), Err(LaunchError::Outside { .. })));
    drop(stack);
    assert_eq!(device.host_figures().bytes_in_use, 0);
    assert!(matches!(out.run_on(&operands, &never), Err(LaunchError::Outside { .. })));
    driver.release(region);
}

#[test]
fn what_computes_may_not_touch_host_memory() {
    let (device, mut driver) = cpu::open(Options { capacity: Some(MIB), ..Options::default() });
    let region = driver.obtain(1024).expect("room");
    let host = device.host_memory(16).expect("a little of the host's memory");
    let (outer, length, inner) = (1, 4, 1);
    let (kind, dtype, reverse) = (ReduceKind::Sum, DType::F32, false);
    let sum = Cumulative { kind, dtype, reverse, outer, length, inner, read: 0, write: 1 };
    let sum = device.prepare(&kernel(2, Body::Cumulative(sum))).expect("an image");
    let on_device = Operand::Memory(DeviceRange::new(region.base(), 16));
    let operands = [Operand::Host(host.part(0, 16)), on_device];
    let refused = sum.run_on(&operands, &AtomicBool::new(false));
    assert!(matches!(refused, Err(LaunchError::Outside { .. })), "{refused:?}");
    driver.release(region);
}
