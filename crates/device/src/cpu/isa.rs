//! Which instructions the block functions are compiled for, chosen once.

/// An instruction set that the block functions have a version for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// AVX2 with FMA.
    Avx2,
    /// What every processor of the target has: SSE2, NEON.
    Baseline,
}

impl Isa {
    /// Every version, best first.
    pub const ALL: [Isa; 3] = [Isa::Avx512, Isa::Avx2, Isa::Baseline];

    /// The best one that this machine can run.
    pub fn best() -> Isa {
        Isa::ALL.into_iter().find(|isa| isa.available()).unwrap_or(Isa::Baseline)
    }

    /// Whether this machine can run it.
    pub fn available(self) -> bool {
        match self {
            Isa::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && Isa::Avx2.available()
            }
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx2 | Isa::Avx512 => false,
        }
    }

    /// Whether a multiplication and an addition contract to one rounding.
    pub fn contracts(self) -> bool {
        self != Isa::Baseline || BASELINE_FMA
    }

    /// The name in greetings.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Avx512 => "AVX-512",
            Isa::Avx2 => "AVX2",
            Isa::Baseline if cfg!(target_arch = "aarch64") => "NEON",
            Isa::Baseline => "baseline instructions",
        }
    }
}

/// Whether every processor of the target has a fused multiply-add.
pub(crate) const BASELINE_FMA: bool = cfg!(target_arch = "aarch64");
