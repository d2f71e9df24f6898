//! What a session is started with: text from flags and the environment in, settings out. A value
//! that is not understood is refused with the valid words; nothing is ignored.

use crate::event::Watch;
use std::collections::BTreeMap;
use vramlab_memory::modes::{ModeName, ModeSpec, from_jax, from_torch_variables, parse_capacity};
use vramlab_memory::{format_bytes, nearest};
use vramlab_runtime::{SharedDevice, USUAL_DRY_CAPACITY, check_device_name, usual_folders};

/// Flags as the user wrote them, and the environment. A flag wins over `VRAMLAB_…`, which wins over
/// JAX's variables.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `cpu`, `dry:80GiB`, or with a name that sessions share: `cpu:lab`, `dry:16GiB:lab`.
    pub device: Option<String>,
    /// `1GiB`.
    pub capacity: Option<String>,
    /// As `%mode` takes it: `ondemand gc=on`.
    pub mode: Option<String>,
    /// `off`, `brief`, `full` or `live`.
    pub watch: Option<String>,
    pub env: BTreeMap<String, String>,
    /// What this process is called before others at a shared device; empty for `vramlab`.
    pub process: String,
}

/// A setting that a face offers as an option of its command line.
pub struct Setting {
    /// `--capacity`.
    pub option: &'static str,
    /// What its value looks like.
    pub value: &'static str,
    pub help: &'static str,
    /// Where the value goes, as the user wrote it.
    pub field: fn(&mut Config) -> &mut Option<String>,
}

/// Every setting, in the order in which help lists them.
pub static SETTINGS: [Setting; 4] = [
    Setting {
        option: "--device",
        value: "DEVICE",
        help: "cpu; cpu:NAME, shared by your sessions; or dry:SIZE, shapes without data",
        field: |config| &mut config.device,
    },
    Setting {
        option: "--capacity",
        value: "SIZE",
        help: "the device's memory, such as 1GiB",
        field: |config| &mut config.capacity,
    },
    Setting {
        option: "--mode",
        value: "MODE",
        help: "the allocation mode, such as \"ondemand gc=on\"",
        field: |config| &mut config.mode,
    },
    Setting {
        option: "--watch",
        value: "off|brief|full|live",
        help: "how much of the memory table follows each cell",
        field: |config| &mut config.watch,
    },
];

/// Which device, and how large; `None`: its own size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    Cpu {
        capacity: Option<u64>,
    },
    /// Shapes and no data.
    Dry {
        capacity: u64,
    },
    /// A device with a name, which sessions share.
    Shared {
        name: String,
        dry: bool,
        capacity: Option<u64>,
    },
}

/// A [`Config`] that was understood.
#[derive(Clone, Debug)]
pub struct Settings {
    pub device: Device,
    pub mode: ModeSpec,
    pub watch: Watch,
    /// What the user should know about how the environment was read.
    pub notes: Vec<String>,
}

/// The words of `%watch`.
pub const WATCH_WORDS: [(&str, Watch); 4] =
    [("off", Watch::Off), ("brief", Watch::Brief), ("full", Watch::Full), ("live", Watch::Live)];

/// What a device may be called here.
pub const DEVICE_WORDS: [&str; 4] = ["cpu", "dry:SIZE", "cpu:NAME", "dry:SIZE:NAME"];

/// Where the ledgers of shared devices lie instead of where they usually do: folders, best first, as in `PATH`.
const SHARED_FOLDERS: &str = "VRAMLAB_SHARED_FOLDER";

impl Config {
    /// No flags, and the environment of this process. Names or values that are no text are left
    /// out.
    pub fn from_environment() -> Config {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let program = std::env::current_exe().ok();
        let program = program.as_ref().and_then(|path| path.file_stem()?.to_str());
        Config {
            env: std::env::vars_os().filter_map(text).collect(),
            process: program.unwrap_or_default().to_string(),
            ..Config::default()
        }
    }

    /// What this process is called before others at the device.
    pub fn process_name(&self) -> &str {
        if self.process.is_empty() { "vramlab" } else { &self.process }
    }

    /// A device that sessions share, as the runtime takes it.
    pub(crate) fn shared_device(
        &self,
        name: &str,
        dry: bool,
        capacity: Option<u64>,
    ) -> SharedDevice {
        let folders = match self.env.get(SHARED_FOLDERS).filter(|text| !text.is_empty()) {
            Some(text) => std::env::split_paths(text).collect(),
            None => {
                let of = |name| self.env.get(name).map(String::as_str).filter(|t| !t.is_empty());
                usual_folders(of("XDG_RUNTIME_DIR"), of("TMPDIR").unwrap_or("/tmp"))
            }
        };
        let process = self.process_name().to_string();
        SharedDevice { name: name.to_string(), dry, capacity, folders, process }
    }

    /// # Errors
    /// The flag or variable that is not understood, with the valid words.
    pub fn resolve(&self) -> Result<Settings, String> {
        let device_text = self.setting(&self.device, "VRAMLAB_DEVICE");
        let capacity = match self.setting(&self.capacity, "VRAMLAB_CAPACITY") {
            Some((name, text)) => {
                Some(parse_capacity(text).map_err(|why| format!("{name}: {why}"))?)
            }
            None => None,
        };
        let device = match device_text {
            Some((name, text)) => {
                parse_device(text, capacity).map_err(|why| format!("{name}: {why}"))?
            }
            None => Device::Cpu { capacity },
        };
        let (mode, notes) = self.mode()?;
        let watch = match self.setting(&self.watch, "VRAMLAB_WATCH") {
            Some((name, text)) => parse_watch(text).map_err(|why| format!("{name}: {why}"))?,
            None => Watch::Brief,
        };
        Ok(Settings { device, mode, watch, notes })
    }

    /// A flag, `VRAMLAB_MODE`, JAX's variables, PyTorch's: the first that speaks of a mode. A bare `caching` takes its
    /// options from PyTorch's variable.
    fn mode(&self) -> Result<(ModeSpec, Vec<String>), String> {
        let jax = from_jax(&self.env).map_err(|why| why.to_string())?;
        let torch =
            from_torch_variables(&self.env).map_err(|why| format!("PYTORCH_…ALLOC_CONF: {why}"));
        let mut notes = jax.notes;
        let named = match self.setting(&self.mode, "VRAMLAB_MODE") {
            Some((name, text)) => {
                Some(ModeSpec::parse(text).map_err(|why| format!("{name}: {why}"))?)
            }
            None => jax.spec,
        };
        let bare = |spec: &ModeSpec| *spec == ModeSpec::new(ModeName::Caching);
        match named {
            Some(spec) if !bare(&spec) => {
                // Read by another mode than its own, even a wrong one harms nobody.
                if matches!(
                    &torch,
                    Err(_) | Ok(vramlab_memory::modes::FromJax { spec: Some(_), .. })
                ) {
                    notes
                        .push(format!("PyTorch's allocator variable has no effect in mode {spec}"));
                }
                Ok((spec, notes))
            }
            _ => {
                let torch = torch?;
                if let Some(spec) = &torch.spec {
                    notes.push(format!("PyTorch's allocator variable is set: mode {spec}"));
                }
                notes.extend(torch.notes);
                Ok((torch.spec.or(named).unwrap_or_default(), notes))
            }
        }
    }

    fn setting<'a>(
        &'a self,
        flag: &'a Option<String>,
        variable: &'static str,
    ) -> Option<(String, &'a str)> {
        if let Some(text) = flag {
            let name = variable.trim_start_matches("VRAMLAB_").to_ascii_lowercase();
            return Some((format!("--{name}"), text));
        }
        let text = self.env.get(variable).map(String::as_str).filter(|text| !text.is_empty())?;
        Some((variable.to_string(), text))
    }
}

/// # Errors
/// Lists the words.
pub fn parse_watch(text: &str) -> Result<Watch, String> {
    let word = text.trim();
    if let Some((_, watch)) = WATCH_WORDS.iter().find(|(name, _)| *name == word) {
        return Ok(*watch);
    }
    Err(unknown("table", word, WATCH_WORDS.iter().map(|(name, _)| *name)))
}

/// # Errors
/// Says what a device may be.
pub fn parse_device(text: &str, capacity: Option<u64>) -> Result<Device, String> {
    let text = text.trim();
    let (name, rest) = match text.split_once(':') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text, None),
    };
    match (name, rest) {
        ("cpu", None | Some("0")) => Ok(Device::Cpu { capacity }),
        ("cpu", Some(name)) => shared(name, false, capacity),
        ("dry", None) => Ok(Device::Dry { capacity: capacity.unwrap_or(USUAL_DRY_CAPACITY) }),
        ("dry", Some(rest)) => {
            let (size, name) = match rest.split_once(':') {
                Some((size, name)) => (size, Some(name)),
                None => (rest, None),
            };
            let own = parse_capacity(size)?;
            match (capacity, name) {
                (Some(other), _) if other != own => Err(format!(
                    "device dry:{size} and capacity {} contradict each other; give one",
                    format_bytes(other)
                )),
                (_, None) => Ok(Device::Dry { capacity: own }),
                (_, Some(name)) => shared(name, true, Some(own)),
            }
        }
        _ => Err(unknown("device", text, DEVICE_WORDS)),
    }
}

fn shared(name: &str, dry: bool, capacity: Option<u64>) -> Result<Device, String> {
    check_device_name(name)?;
    Ok(Device::Shared { name: name.to_string(), dry, capacity })
}

/// `no WHAT \`given\`; the valid ones are …`, with the nearest.
pub fn unknown<'a>(
    what: &str,
    given: &str,
    valid: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let names: Vec<&str> = valid.clone().into_iter().collect();
    let mut text = format!("no {what} `{given}`; there are {}", names.join(", "));
    if let Some(near) = nearest(given, valid) {
        text.push_str(&format!(" (did you mean `{near}`?)"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(env: &[(&str, &str)]) -> Config {
        let env = env.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        Config { env, ..Config::default() }
    }

    #[test]
    fn mode_off_spellings() {
        for off in ["off", "no", "0", "false", "False"] {
            let settings = with(&[("XLA_PYTHON_CLIENT_PREALLOCATE", off)]).resolve();
            assert_eq!(settings.expect(off).mode.to_string(), "ondemand", "{off}");
        }
        let why = with(&[("XLA_PYTHON_CLIENT_PREALLOCATE", "nope")]).resolve().unwrap_err();
        assert!(why.contains("false") && why.contains("nope"), "{why}");
    }

    #[test]
    fn pytorchs_variable_brings_its_mode() {
        let conf = ("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64");
        let settings = with(&[conf]).resolve().unwrap();
        assert_eq!(settings.mode.to_string(), "caching max_split_size=64MiB");
        assert!(!settings.notes.is_empty());
        let mut config = with(&[conf]);
        config.mode = Some("caching".into());
        assert_eq!(config.resolve().unwrap().mode.to_string(), "caching max_split_size=64MiB");
        config.mode = Some("platform".into());
        let settings = config.resolve().unwrap();
        assert_eq!(settings.mode.to_string(), "platform");
        assert!(settings.notes[0].contains("no effect"), "{:?}", settings.notes);
        let jax = with(&[conf, ("XLA_PYTHON_CLIENT_PREALLOCATE", "false")]).resolve().unwrap();
        assert_eq!(jax.mode.to_string(), "ondemand");
        let wrong = with(&[("PYTORCH_ALLOC_CONF", "max_split_size_mb:1")]).resolve().unwrap_err();
        assert!(wrong.contains("at least 20"), "{wrong}");
    }

    #[test]
    fn a_flag_wins_over_the_environment() {
        let mut config = with(&[("VRAMLAB_MODE", "platform"), ("VRAMLAB_CAPACITY", "2GiB")]);
        assert_eq!(config.resolve().unwrap().mode.to_string(), "platform");
        config.mode = Some("ondemand gc=on".into());
        config.capacity = Some("1GiB".into());
        let settings = config.resolve().unwrap();
        assert_eq!(settings.mode.to_string(), "ondemand gc=on");
        assert_eq!(settings.device, Device::Cpu { capacity: Some(1 << 30) });
    }

    #[test]
    fn wrong_words_are_refused_with_the_valid_ones() {
        let wrong = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.resolve().unwrap_err()
        };
        assert!(wrong(|c| c.mode = Some("ondemnad".into())).contains("did you mean `ondemand`"));
        assert!(wrong(|c| c.watch = Some("breif".into())).contains("did you mean `brief`"));
        assert!(wrong(|c| c.device = Some("gpu".into())).contains("cpu, dry:SIZE"));
        assert!(wrong(|c| c.capacity = Some("big".into())).contains("--capacity"));
    }

    #[test]
    fn dry_devices_have_a_size() {
        assert_eq!(parse_device("dry:80GiB", None), Ok(Device::Dry { capacity: 80 << 30 }));
        assert_eq!(parse_device("dry", Some(1 << 34)), Ok(Device::Dry { capacity: 1 << 34 }));
        assert!(parse_device("dry:1GiB", Some(2 << 30)).is_err());
    }

    #[test]
    fn a_device_with_a_name_is_shared() {
        let lab = |dry, capacity| Device::Shared { name: "lab".into(), dry, capacity };
        assert_eq!(parse_device("cpu:lab", None), Ok(lab(false, None)));
        assert_eq!(parse_device("dry:16GiB:lab", None), Ok(lab(true, Some(1 << 34))));
        assert!(parse_device("dry:16GiB:lab", Some(1 << 30)).is_err());
        assert!(parse_device("dry:lab", None).expect_err("no size").contains("size"));
        assert_eq!(parse_device("cpu:0", None), Ok(Device::Cpu { capacity: None }));
        for odd in ["cpu:", "cpu:../lab", "cpu:a b", "cpu:läb", "cpu:1", "cpu:a:b", "dry:1GiB:"] {
            let why = parse_device(odd, None).expect_err(odd);
            assert!(why.contains("begins with a letter"), "{odd}: {why}");
        }
    }
}
