//! The reference engine: every program goes through `ir`'s interpreter, every buffer is host memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use vramlab_array::ir::interp::{Tensor, evaluate};
use vramlab_array::ir::kernel::Donation;
use vramlab_array::ir::verify::verify;
use vramlab_array::ir::{
    Argument, BufferId, CompileKind, CompileRequest, Engine, ExecutableId, Explanation, Fault,
    FaultKind, Literal, MemoryFigures, Origin, ScopeFigures, Shape, Type,
};

#[derive(Default)]
pub struct Reference {
    state: Mutex<State>,
    /// Carries shapes and no data.
    dry: bool,
}

#[derive(Default)]
struct State {
    next: u64,
    claims: HashMap<BufferId, Claim>,
    executables: HashMap<ExecutableId, CompileRequest>,
    figures: MemoryFigures,
    compiles: Vec<(String, CompileKind)>,
    runs: Vec<String>,
    scopes: Vec<String>,
    refuse: bool,
}

struct Claim {
    data: Arc<Tensor>,
    owner: String,
}

impl Reference {
    pub fn new() -> Arc<Reference> {
        Arc::new(Reference::default())
    }

    pub fn dry() -> Arc<Reference> {
        Arc::new(Reference { dry: true, ..Reference::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Bytes of distinct buffers.
    pub fn live_bytes(&self) -> u64 {
        let state = self.state();
        let mut seen: Vec<*const Tensor> = Vec::new();
        let mut bytes = 0;
        for claim in state.claims.values() {
            if !seen.contains(&Arc::as_ptr(&claim.data)) {
                seen.push(Arc::as_ptr(&claim.data));
                bytes += claim.data.ty.bytes();
            }
        }
        bytes
    }

    pub fn claims(&self) -> usize {
        self.state().claims.len()
    }

    pub fn compiles(&self) -> Vec<(String, CompileKind)> {
        self.state().compiles.clone()
    }

    pub fn runs(&self) -> Vec<String> {
        self.state().runs.clone()
    }

    pub fn scopes(&self) -> Vec<String> {
        self.state().scopes.clone()
    }

    pub fn owners(&self) -> Vec<String> {
        let mut owners: Vec<String> =
            self.state().claims.values().map(|claim| claim.owner.clone()).collect();
        owners.sort();
        owners
    }

    /// Every execution fails from now on.
    pub fn refuse(&self, refuse: bool) {
        self.state().refuse = refuse;
    }
}

impl State {
    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn claim(&mut self, data: Arc<Tensor>) -> BufferId {
        let id = BufferId(self.fresh());
        self.claims.insert(id, Claim { data, owner: String::new() });
        id
    }

    fn data(&self, buffer: BufferId) -> Arc<Tensor> {
        Arc::clone(&self.claims.get(&buffer).expect("a live buffer").data)
    }
}

impl Engine for Reference {
    fn compile(&self, request: &CompileRequest) -> Result<ExecutableId, Fault> {
        if let Err(complaints) = verify(&request.func) {
            panic!("a program that does not verify: {complaints:?}\n{}", request.func);
        }
        assert_eq!(request.donate.len(), request.func.params.len());
        let mut state = self.state();
        state.compiles.push((request.func.name.clone(), request.kind));
        let id = ExecutableId(state.fresh());
        state.executables.insert(id, request.clone());
        Ok(id)
    }

    fn execute(
        &self,
        executable: ExecutableId,
        arguments: &[Argument],
        _: Origin,
    ) -> Result<Vec<BufferId>, Fault> {
        let mut state = self.state();
        let Some(request) = state.executables.get(&executable).cloned() else {
            return Err(Fault::new(FaultKind::Evicted, "", "evicted"));
        };
        if state.refuse {
            return Err(Fault::new(FaultKind::OutOfMemory, &request.func.name, "refused"));
        }
        let func = &request.func;
        let tensors: Vec<Arc<Tensor>> = arguments
            .iter()
            .map(|argument| match argument {
                Argument::Borrowed(buffer) | Argument::Donated(buffer) => state.data(*buffer),
                Argument::Scalar(value) => Arc::new(scalar(*value)),
            })
            .collect();
        for (tensor, ty) in tensors.iter().zip(func.param_types()) {
            assert_eq!(tensor.ty, ty, "an argument of {}", func.name);
        }
        let results = if self.dry {
            let zeros = |ty: Type| Tensor::fill(ty.clone(), |_| Literal::from_f64(ty.dtype, 0.0));
            func.result_types().into_iter().map(zeros).collect::<Result<Vec<_>, _>>()?
        } else {
            let given: Vec<Tensor> = tensors.iter().map(|tensor| Tensor::clone(tensor)).collect();
            evaluate(func, &given)?
        };
        state.runs.push(func.name.clone());
        for (argument, donate) in arguments.iter().zip(&request.donate) {
            if let Argument::Donated(buffer) = argument {
                assert!(donate, "a donated argument that was not compiled as one");
                state.claims.remove(buffer);
            }
        }
        let mut buffers = Vec::new();
        for (result, value) in results.into_iter().zip(&func.results) {
            let passed = func.params.iter().position(|param| param == value);
            let data = match passed {
                Some(at) => Arc::clone(&tensors[at]),
                None => Arc::new(result),
            };
            buffers.push(state.claim(data));
        }
        Ok(buffers)
    }

    fn upload(&self, ty: &Type, bytes: &[u8], _: Origin) -> Result<BufferId, Fault> {
        let tensor = Tensor::new(ty.clone(), bytes.to_vec())?;
        Ok(self.state().claim(Arc::new(tensor)))
    }

    fn download(&self, buffer: BufferId) -> Result<Vec<u8>, Fault> {
        match self.dry {
            true => Err(Fault::new(FaultKind::NoData, "", "the dry device has no data")),
            false => Ok(self.state().data(buffer).bytes.clone()),
        }
    }

    fn download_range(&self, buffer: BufferId, offset: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
        let all = self.download(buffer)?;
        Ok(all[offset as usize..(offset + bytes) as usize].to_vec())
    }

    fn share(&self, buffer: BufferId) -> BufferId {
        let mut state = self.state();
        let data = state.data(buffer);
        state.claim(data)
    }

    fn release(&self, buffer: BufferId) {
        assert!(self.state().claims.remove(&buffer).is_some(), "a second release");
    }

    fn set_owner(&self, buffer: BufferId, owner: &str) {
        self.state().claims.get_mut(&buffer).expect("a live buffer").owner = owner.to_string();
    }

    fn holders(&self, buffer: BufferId) -> Vec<String> {
        let state = self.state();
        let data = state.data(buffer);
        let same = state.claims.values().filter(|claim| Arc::ptr_eq(&claim.data, &data));
        same.map(|claim| claim.owner.clone()).collect()
    }

    fn memory(&self) -> MemoryFigures {
        let live_arrays = self.claims() as u64;
        let requested_bytes = self.live_bytes();
        MemoryFigures { live_arrays, requested_bytes, ..self.state().figures.clone() }
    }

    fn reset_peak(&self) {
        self.state().figures.peak_bytes_in_use = 0;
    }

    fn scope_begin(&self, name: &str) {
        self.state().scopes.push(format!("begin {name}"));
    }

    fn scope_end(&self) -> ScopeFigures {
        self.state().scopes.push("end".to_string());
        ScopeFigures::default()
    }

    fn synchronize(&self) {
        self.state().runs.push("synchronize".to_string());
    }

    fn clear_caches(&self) -> (u64, u64) {
        let mut state = self.state();
        let entries = state.executables.len() as u64;
        state.executables.clear();
        (entries, 0)
    }

    fn explain(&self, executable: ExecutableId) -> Option<Explanation> {
        let state = self.state();
        let request = state.executables.get(&executable)?;
        let donated = request.donate.iter().enumerate().filter(|(_, donate)| **donate);
        Some(Explanation {
            name: request.func.name.clone(),
            stages: vec![("trace".to_string(), request.func.to_string())],
            donations: donated
                .map(|(at, _)| Donation {
                    argument: at as u32,
                    used: at == 0,
                    reason: "the first".to_string(),
                })
                .collect(),
            ..Explanation::default()
        })
    }
}

fn scalar(value: Literal) -> Tensor {
    let ty = Type::new(value.dtype(), Shape::scalar());
    Tensor::new(ty, value.to_bytes()[..value.dtype().size()].to_vec()).unwrap()
}
