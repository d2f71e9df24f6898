//! temporary: straight over the interpreter
use super::corpus::Source;
use super::rustc::Output;
use std::sync::Arc;
use vramlab_array::surface::Dyn;
use vramlab_cells::{Host, Interpreter, render};
use vramlab_array::ir::Fault;

struct Own(String);
impl Host for Own {
    fn stdout(&mut self, text: &str) { self.0.push_str(text); }
    fn stderr(&mut self, _: &str) {}
    fn display(&mut self, value: &Dyn) {
        match value { Dyn::Array(a) | Dyn::Borrowed(a) => self.0.push_str(&format!("{a}\n")), Dyn::Int(n) => self.0.push_str(&format!("{n}\n")), other => self.0.push_str(&format!("{other:?}\n")) }
    }
    fn input(&mut self, _: &str) -> Result<String, Fault> { unreachable!() }
    fn interrupted(&self) -> bool { false }
    fn bound(&mut self, _: &str, _: &Dyn) {}
}

fn engine() -> Arc<vramlab_runtime::Context> {
    let device = vramlab_runtime::DeviceConfig::Cpu { capacity: Some(1 << 30) };
    let config = vramlab_runtime::Config { device, ..Default::default() };
    vramlab_runtime::Context::new(config).expect("a device")
}

fn go<R: Send>(f: impl FnOnce() -> R + Send) -> Result<R, String> {
    std::thread::scope(|s| std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(s, f).unwrap().join().map_err(|e| format!("PANIC {:?}", e.downcast_ref::<String>().cloned().or(e.downcast_ref::<&str>().map(|s| s.to_string())))))
}

pub fn run(source: &Source) -> Output {
    go(|| vramlab_array::with_engine(engine(), || {
    let mut interpreter = Interpreter::new();
    let mut host = Own(String::new());
    let mut outs = Vec::new();
    for (index, cell) in source.cells.iter().enumerate() {
        let prepared = match interpreter.prepare(cell, index as u32 + 1) {
            Ok(prepared) => prepared,
            Err(d) => return Output { text: host.0, fault: Some(format!("cell {}: {}", index + 1, render(&d, cell, 1))) },
        };
        let outcome = interpreter.run(prepared, &mut host);
        if let Some(shown) = outcome.value {
            if shown.ty != "()" { host.0.push_str(&shown.text); host.0.push('\n'); }
            if !shown.is_variable { outs.push(shown.value); }
        }
        if let Some(error) = outcome.error {
            return Output { text: host.0, fault: Some(error.message) };
        }
    }
    Output { text: host.0, fault: None }
    })).unwrap_or_else(|p| Output { text: String::new(), fault: Some(p) })
}

pub fn refuse(source: &Source) -> Result<(), String> {
    go(|| vramlab_array::with_engine(engine(), || {
    let mut interpreter = Interpreter::new();
    let mut host = Own(String::new());
    let (last, earlier) = source.cells.split_last().expect("a file has a cell");
    for (index, cell) in earlier.iter().enumerate() {
        let prepared = interpreter.prepare(cell, index as u32 + 1).map_err(|d| format!("earlier: {}", render(&d, cell, 1)))?;
        let outcome = interpreter.run(prepared, &mut host);
        if let Some(error) = outcome.error { return Err(format!("earlier fault {error}")); }
    }
    match interpreter.prepare(last, earlier.len() as u32 + 1) {
        Ok(_) => Err(format!("accepted, rustc has {:?}", source.expect)),
        Err(d) => {
            let kind = d.code.to_string();
            let is_code = kind.len() == 5 && kind.starts_with('E');
            if source.expect.contains(&kind) || (source.expect.contains("none") && !is_code) { Ok(()) }
            else { Err(format!("expected {:?}\n{}", source.expect, render(&d, last, 1))) }
        }
    }
    })).and_then(|r| r)
}
