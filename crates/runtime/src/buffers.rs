//! The live buffers: who claims which bytes.
//!
//! A [`Storage`] is one block of the device; a claim is one holder's right to it, under a type of its own, so a
//! reshape is a second claim and costs nothing. The last claim to end hands the block back to its caller.

use vramlab_device::HostBlock;
use vramlab_ir::{BufferId, Origin, Type};
use vramlab_memory::Block;

/// One holder's claim.
pub(crate) struct Claim {
    pub storage: StorageId,
    pub ty: Type,
    /// The holder's name; `None` until somebody gives it one.
    pub owner: Option<Box<str>>,
    pub origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StorageId(u32);

/// One block and the claims on it.
pub(crate) struct Storage {
    /// Empty for arrays without elements, and for those in host memory.
    pub block: Block,
    /// The bytes of an array in host memory, which no allocator knows of.
    pub host: Option<HostBlock>,
    first: BufferId,
    /// Claims behind the first, in the order of their making.
    more: Vec<BufferId>,
}

impl Storage {
    /// The claims in the order of their making.
    pub fn claims(&self) -> impl Iterator<Item = BufferId> + '_ {
        std::iter::once(self.first).chain(self.more.iter().copied())
    }

    pub fn is_shared(&self) -> bool {
        !self.more.is_empty()
    }
}

struct ClaimSlot {
    generation: u32,
    claim: Option<Claim>,
}

/// The table. An id is a slot and the slot's generation, so a stale id is found out and never names another array.
#[derive(Default)]
pub(crate) struct Buffers {
    claims: Vec<ClaimSlot>,
    vacant_claims: Vec<u32>,
    storages: Vec<Option<Storage>>,
    vacant_storages: Vec<u32>,
}

fn id_of(slot: u32, generation: u32) -> BufferId {
    BufferId(u64::from(generation) << 32 | u64::from(slot))
}

impl Buffers {
    /// A new buffer with its first claim.
    pub fn insert(&mut self, block: Block, ty: Type, origin: Origin) -> BufferId {
        self.insert_storage(block, None, ty, origin)
    }

    /// A new buffer in host memory with its first claim.
    pub fn insert_host(&mut self, host: HostBlock, ty: Type, origin: Origin) -> BufferId {
        self.insert_storage(Block::empty(), Some(host), ty, origin)
    }

    fn insert_storage(
        &mut self,
        block: Block,
        host: Option<HostBlock>,
        ty: Type,
        origin: Origin,
    ) -> BufferId {
        let slot = match self.vacant_storages.pop() {
            Some(slot) => slot,
            None => {
                self.storages.push(None);
                u32::try_from(self.storages.len() - 1).expect("fewer than 2^32 arrays")
            }
        };
        let claim = Claim { storage: StorageId(slot), ty, owner: None, origin };
        let first = self.insert_claim(claim);
        self.storages[slot as usize] = Some(Storage { block, host, first, more: Vec::new() });
        first
    }

    fn insert_claim(&mut self, claim: Claim) -> BufferId {
        if let Some(slot) = self.vacant_claims.pop() {
            let held = &mut self.claims[slot as usize];
            held.claim = Some(claim);
            return id_of(slot, held.generation);
        }
        let slot = u32::try_from(self.claims.len()).expect("fewer than 2^32 claims");
        self.claims.push(ClaimSlot { generation: 1, claim: Some(claim) });
        id_of(slot, 1)
    }

    /// One more claim on the same bytes.
    pub fn share(&mut self, storage: StorageId, ty: Type, origin: Origin) -> BufferId {
        let id = self.insert_claim(Claim { storage, ty, owner: None, origin });
        self.storage_mut(storage).more.push(id);
        id
    }

    pub fn get(&self, buffer: BufferId) -> Option<&Claim> {
        let (slot, generation) = ((buffer.0 & 0xFFFF_FFFF) as usize, (buffer.0 >> 32) as u32);
        let held = self.claims.get(slot).filter(|held| held.generation == generation)?;
        held.claim.as_ref()
    }

    pub fn get_mut(&mut self, buffer: BufferId) -> Option<&mut Claim> {
        let (slot, generation) = ((buffer.0 & 0xFFFF_FFFF) as usize, (buffer.0 >> 32) as u32);
        let held = self.claims.get_mut(slot).filter(|held| held.generation == generation)?;
        held.claim.as_mut()
    }

    pub fn storage(&self, id: StorageId) -> &Storage {
        self.storages[id.0 as usize].as_ref().expect("a claim's storage is live")
    }

    pub fn storage_mut(&mut self, id: StorageId) -> &mut Storage {
        self.storages[id.0 as usize].as_mut().expect("a claim's storage is live")
    }

    /// Ends a claim. `None` for a stale id; otherwise the storage, and its block when no claim is left.
    pub fn release(&mut self, buffer: BufferId) -> Option<(StorageId, Option<Block>)> {
        let storage = self.get(buffer)?.storage;
        let slot = (buffer.0 & 0xFFFF_FFFF) as u32;
        let held = &mut self.claims[slot as usize];
        held.claim = None;
        held.generation = held.generation.wrapping_add(1).max(1);
        self.vacant_claims.push(slot);
        let shared = self.storage_mut(storage);
        if shared.more.is_empty() {
            let gone = self.storages[storage.0 as usize].take();
            self.vacant_storages.push(storage.0);
            return Some((storage, gone.map(|gone| gone.block)));
        }
        if shared.first == buffer {
            shared.first = shared.more.remove(0);
        } else {
            shared.more.retain(|&claim| claim != buffer);
        }
        Some((storage, None))
    }

    /// The live storages with their ids, in no particular order.
    pub fn storages(&self) -> impl Iterator<Item = (StorageId, &Storage)> {
        let live = self.storages.iter().enumerate();
        live.filter_map(|(slot, held)| Some((StorageId(slot as u32), held.as_ref()?)))
    }

    /// Live arrays: buffers, however many hold them.
    pub fn live(&self) -> usize {
        self.storages.len() - self.vacant_storages.len()
    }

    /// The first claim with a name, or else the oldest: under it the bytes are listed.
    pub fn principal(&self, storage: StorageId) -> &Claim {
        let claims = || {
            let ids = self.storage(storage).claims();
            ids.map(|id| self.get(id).expect("a storage lists live claims"))
        };
        let named = claims().find(|claim| claim.owner.is_some());
        named.or_else(|| claims().next()).expect("a storage has a claim")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramlab_ir::DType;

    fn ty() -> Type {
        Type::new(DType::F32, [2])
    }

    #[test]
    fn the_last_claim_hands_the_block_back() {
        let mut buffers = Buffers::default();
        let a = buffers.insert(Block::new(256, 8, 256, 0), ty(), Origin::default());
        let storage = buffers.get(a).expect("live").storage;
        let b = buffers.share(storage, ty(), Origin::default());
        assert_eq!(buffers.storage(storage).claims().collect::<Vec<_>>(), [a, b]);
        let (_, block) = buffers.release(a).expect("live");
        assert_eq!(block, None);
        assert_eq!(buffers.storage(storage).claims().collect::<Vec<_>>(), [b]);
        let (_, block) = buffers.release(b).expect("live");
        assert_eq!(block.map(|block| block.address()), Some(256));
        assert_eq!(buffers.live(), 0);
    }

    #[test]
    fn a_stale_id_names_nothing() {
        let mut buffers = Buffers::default();
        let a = buffers.insert(Block::empty(), ty(), Origin::default());
        buffers.release(a);
        let b = buffers.insert(Block::empty(), ty(), Origin::default());
        assert_ne!(a, b);
        assert!(buffers.get(a).is_none());
        assert!(buffers.release(a).is_none());
        assert!(buffers.get(b).is_some());
    }
}
