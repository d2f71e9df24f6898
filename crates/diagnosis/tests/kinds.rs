//! Kinds of text beside those with known answers: one text, and what must be said of it.

use vramlab_diagnosis::{Diagnosis, Kind, Name, diagnose};

const GIB: u64 = 1 << 30;

/// Verdict, kind and figures, nothing else.
fn check(text: &str, kind: Kind, verdict: &str, figures: &[(Name, u64)]) -> Diagnosis {
    let d = diagnose(text.as_bytes());
    assert_eq!((d.kind, d.verdict.key()), (kind, verdict), "{text}\n{d}");
    let found: Vec<(Name, u64)> = d.figures.iter().map(|(name, q)| (name, q.bytes)).collect();
    assert_eq!(found, figures, "{text}\n{d}");
    d
}

#[test]
fn bare_errors_have_no_figures() {
    for text in [
        "RuntimeError: CUDA error: out of memory",
        "cudaErrorMemoryAllocation: out of memory",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
        "RuntimeError: HIP error: out of memory",
        "ggml_cuda: cudaMalloc failed: out of memory",
    ] {
        check(text, Kind::DeviceError, "cannot_tell", &[]);
    }
    for text in [
        "Killed",
        "./run.sh: line 3: 4242 Killed   python train.py",
        "exit code 137",
        "  exitcode  : -9 (pid: 4242)",
    ] {
        check(text, Kind::HostError, "cannot_tell", &[]);
    }
}

#[test]
fn the_driver_may_name_the_request() {
    let text = "E0000 cuda_driver.cc:1000] failed to allocate 2.00G (2147483648 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory";
    check(text, Kind::DeviceError, "cannot_tell", &[(Name::Asked, 2 * GIB)]);
}

#[test]
fn host_memory_is_not_the_devices() {
    let cpu = "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 68719476736 bytes. Error code 12 (Cannot allocate memory)";
    check(cpu, Kind::HostError, "host_memory", &[(Name::Asked, 64 * GIB)]);
    let numpy = "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.50 GiB for an array with shape (1, 2) and data type float64";
    check(numpy, Kind::HostError, "host_memory", &[(Name::Asked, 15 * GIB / 2)]);
    check(
        "Traceback (most recent call last):\n  File \"a.py\", line 1\nMemoryError",
        Kind::HostError,
        "host_memory",
        &[],
    );
    check(
        "terminate called after throwing an instance of 'std::bad_alloc'",
        Kind::HostError,
        "host_memory",
        &[],
    );
    let worker = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.";
    check(worker, Kind::HostError, "host_memory", &[]);
    let group = "Memory cgroup out of memory: Killed process 7 (python) total-vm:4096kB, anon-rss:2048kB, file-rss:0kB";
    check(group, Kind::HostError, "host_memory", &[(Name::InUse, 2 << 20)]);
}

#[test]
fn other_failures_are_not_out_of_memory() {
    for text in [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: device-side assert triggered",
        "ValueError: shapes (3,4) and (5,6) not aligned",
        "NCCL WARN Timeout waiting for 8 ranks",
        "torch.cuda.memory_allocated() is 3 GB, all is well",
        "Everything fits in 24 GiB.",
    ] {
        let d = diagnose(text.as_bytes());
        assert!(["not_oom", "no_failure"].contains(&d.verdict.key()), "{text}\n{d}");
    }
}

#[test]
fn a_program_against_hbm() {
    let text = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 20.00G of 16.00G hbm. Exceeded hbm capacity by 4.00G.";
    let figures = [(Name::Limit, 16 * GIB), (Name::Total, 20 * GIB), (Name::Needed, 20 * GIB)];
    check(text, Kind::JaxError, "too_big", &figures);
}

#[test]
fn statistics_beside_an_error_tell_what_the_sentence_does_not() {
    let text = "{'bytes_in_use': 6442450944, 'peak_bytes_in_use': 7516192768, 'bytes_limit': 8589934592}\n\
        jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4.00GiB.\n";
    let figures = [
        (Name::Asked, 4 * GIB),
        (Name::Limit, 8 * GIB),
        (Name::InUse, 6 * GIB),
        (Name::PeakInUse, 7 * GIB),
    ];
    check(text, Kind::JaxError, "limit", &figures);
}

#[test]
fn an_error_with_a_table_is_weighed_against_the_device() {
    let text = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 42949672960 bytes.\n\
        |   0  NVIDIA A10           On  | 00000000:1B:00.0 Off |                    0 |\n\
        | N/A   41C    P0   98W / 400W |   1024MiB /  24576MiB |      0%      Default |\n";
    let figures = [
        (Name::Asked, 40 * GIB),
        (Name::Limit, 24 * GIB),
        (Name::DeviceTotal, 24 * GIB),
        (Name::Free, 23 * GIB),
    ];
    check(text, Kind::JaxError, "too_big", &figures);
}

#[test]
fn tables_of_other_forms() {
    let csv =
        "index, name, memory.total [MiB], memory.used [MiB]\n0, NVIDIA A10, 24576 MiB, 1024 MiB\n";
    let figures = [
        (Name::Limit, 24 * GIB),
        (Name::DeviceTotal, 24 * GIB),
        (Name::InUse, GIB),
        (Name::Free, 23 * GIB),
    ];
    check(csv, Kind::DriverTable, "no_failure", &figures);
    let apps = "pid, process_name, used_gpu_memory [MiB]\n77, python, 1024 MiB\n";
    let d = check(apps, Kind::DriverTable, "no_failure", &[]);
    assert_eq!(d.processes[0].pid, 77);
    let long = "    FB Memory Usage\n        Total                             : 24576 MiB\n        Reserved                          : 0 MiB\n        Used                              : 1024 MiB\n        Free                              : 23552 MiB\n    Processes\n        Process ID                        : 77\n            Type                          : C\n            Name                          : python\n            Used GPU Memory               : 1000 MiB\n";
    let d = check(long, Kind::DriverTable, "no_failure", &figures);
    assert_eq!(d.processes[0].held.expect("a figure").bytes, 1000 << 20);
    assert_eq!(d.processes[0].name.as_deref(), Some("python"));
}

#[test]
fn a_sentence_without_a_list_takes_the_tables_processes() {
    let text = "RuntimeError: CUDA out of memory. Tried to allocate 4.00 GiB (GPU 0; 24.00 GiB total capacity; 8.00 GiB already allocated; 1.00 GiB free; 8.25 GiB reserved in total by PyTorch)\n\
        |   0  NVIDIA A10           On  | 00000000:1B:00.0 Off |                    0 |\n\
        | N/A   41C    P0   98W / 400W |  23552MiB /  24576MiB |      0%      Default |\n\
        |  GPU   GI   CI        PID   Type   Process name            GPU Memory |\n\
        |    0   N/A  N/A        77      C   python                   14336MiB |\n\
        |    0   N/A  N/A        88      C   python                    8704MiB |\n";
    let d = diagnose(text.as_bytes());
    assert_eq!(d.verdict.key(), "other_process", "{d}");
    assert_eq!(d.figures.bytes(Name::OtherProcesses), Some(14 * GIB));
    assert_eq!(d.figures.bytes(Name::OwnProcess), Some(8704 << 20));
}

#[test]
fn a_dump_of_plain_numbers_is_read() {
    let text = "2020-01-01 12:00:00.000000: W tensorflow/core/common_runtime/bfc_allocator.cc:1] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.50GiB (rounded to 1610612736).  Current allocation summary follows.\n\
        2020-01-01 12:00:00.000000: I tensorflow/core/common_runtime/bfc_allocator.cc:1] Stats: \n\
        Limit:                  8589934592\n\
        InUse:                  8053063680\n\
        MaxInUse:               8321499136\n\
        NumAllocs:                    4242\n\
        MaxAllocSize:           1073741824\n";
    let figures = [
        (Name::Asked, 1_610_612_736),
        (Name::AskedUnrounded, 1_610_612_736),
        (Name::Limit, 8 * GIB),
        (Name::InUse, 8_053_063_680),
        (Name::PeakInUse, 8_321_499_136),
    ];
    check(text, Kind::BfcDump, "limit", &figures);
}

#[test]
fn a_limit_on_the_pool_that_is_not_printed_is_not_a_full_device() {
    let text = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacty of 24.00 GiB of which 20.00 GiB is free. Including non-PyTorch memory, this process has 4.00 GiB memory in use. Of the allocated memory 3.00 GiB is allocated by PyTorch, and 256.00 MiB is reserved by PyTorch but unallocated.";
    let d = diagnose(text.as_bytes());
    assert_eq!((d.verdict.key(), d.sub), ("cannot_tell", Some("limit_not_printed")));
}

#[test]
fn several_failures_are_told_in_order() {
    let sentence = |asked: &str| {
        format!(
            "RuntimeError: CUDA out of memory. Tried to allocate {asked} (GPU 0; 8.00 GiB total capacity; 7.00 GiB already allocated; 0 bytes free; 7.25 GiB reserved in total by PyTorch)\n"
        )
    };
    let text = sentence("1.00 GiB") + &sentence("9.00 GiB") + &sentence("1.00 GiB");
    let d = diagnose(text.as_bytes());
    assert_eq!((d.figures.bytes(Name::Asked), d.verdict.key()), (Some(GIB), "limit"));
    let later: Vec<_> = d.later.iter().map(|d| d.verdict.key()).collect();
    assert_eq!(later, ["too_big"]);
}

#[test]
fn a_plan_tells_donated_arguments() {
    let text = "BufferAssignment:\n\
        allocation 0: size 1024, parameter 0, shape |f32[256]| at ShapeIndex {}, maybe-live-out:\n \
        value: <1 x @0> (size=1024,offset=0): f32[256]{0}\n\
        allocation 1: size 16, constant:\n \
        value: <2 c @0> (size=16,offset=0): f32[4]{0}\n";
    let figures = [
        (Name::Total, 1040),
        (Name::Needed, 1040),
        (Name::Argument, 1024),
        (Name::Output, 1024),
        (Name::Temp, 0),
        (Name::ConstantAndThreadLocal, 16),
        (Name::Donated, 1024),
        (Name::LargestValue, 1024),
    ];
    check(text, Kind::BufferAssignment, "no_failure", &figures);
}
