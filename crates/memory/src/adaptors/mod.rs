//! Adaptors: each does one deed and forwards the rest.

mod fail_nth;
mod limit;
mod poison;
mod reclaim;

pub use fail_nth::FailNth;
pub use limit::Limit;
pub use poison::{Mark, MarkKind, Poison};
pub use reclaim::Reclaim;

/// The part of [`crate::MemoryResource`] that an adaptor passes on unchanged.
macro_rules! forward {
    () => {
        fn synchronize(&mut self, driver: &mut dyn crate::Driver) {
            self.inner.synchronize(driver);
        }
        fn trim(&mut self, driver: &mut dyn crate::Driver) -> crate::Trimmed {
            self.inner.trim(driver)
        }
        fn reset_peak(&mut self) {
            self.inner.reset_peak();
        }
        fn upstream(&self) -> Option<&dyn crate::MemoryResource> {
            Some(&self.inner)
        }
        fn regions(&self) -> Vec<crate::RegionFigures> {
            self.inner.regions()
        }
        fn chunks(&self) -> Vec<crate::Chunk> {
            self.inner.chunks()
        }
        fn check(&self) -> Result<(), crate::Broken> {
            self.inner.check()
        }
    };
}
pub(crate) use forward;
