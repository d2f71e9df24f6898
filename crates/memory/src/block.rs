//! A block: bytes of a device that were handed out and must come back once.

/// The order of work on a device in which a block is used. Stream 0 is the default one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream(pub u32);

/// Names one allocation of a heap for ever: no two blocks of a heap share it, in whatever pool they lie, and later ones
/// compare greater. Zero names none.
///
/// It carries the place of the block in the ledger's table of live blocks, so that an event finds it without a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(u64);

/// How many low bits of a name are the place in the table: up to 16,777,216 live blocks.
const PLACE_BITS: u32 = 24;

impl BlockId {
    pub(crate) fn new(sequence: u64, place: u32) -> BlockId {
        assert!(place >> PLACE_BITS == 0, "at most 2^{PLACE_BITS} blocks are live");
        BlockId(sequence << PLACE_BITS | u64::from(place))
    }

    /// The name of no block.
    pub const fn none() -> BlockId {
        BlockId(0)
    }

    /// Which allocation of the heap it is, counted from 1.
    pub fn sequence(self) -> u64 {
        self.0 >> PLACE_BITS
    }

    pub(crate) fn place(self) -> usize {
        (self.0 & ((1 << PLACE_BITS) - 1)) as usize
    }
}

/// Which allocator stack of a heap a block came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u32);

/// Bytes that were handed out. Not `Clone`: it goes back by value, exactly once, to the resource that gave it.
///
/// A request for zero bytes is answered by an empty block ([`Block::is_empty`]): it has no address, no statistics
/// count it, and giving it back does nothing.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a block that is dropped is never given back"]
pub struct Block {
    address: u64,
    requested: u64,
    granted: u64,
    handle: u64,
    id: BlockId,
    pool: PoolId,
}

impl Block {
    /// A block as a resource makes it. `handle` is the resource's own: it finds the block again without a search.
    pub fn new(address: u64, requested: u64, granted: u64, handle: u64) -> Block {
        Block { address, requested, granted, handle, id: BlockId::default(), pool: PoolId(0) }
    }

    /// The answer to a request for zero bytes.
    pub fn empty() -> Block {
        Block::new(0, 0, 0, u64::MAX)
    }

    /// Where the bytes begin on the device (a real pointer where the device has one).
    pub fn address(&self) -> u64 {
        self.address
    }

    /// What was asked for, in bytes.
    pub fn requested(&self) -> u64 {
        self.requested
    }

    /// What is held for it, in bytes: the request, its rounding, and what could not be split off.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// The name of this allocation within its heap; zero outside a heap.
    pub fn id(&self) -> BlockId {
        self.id
    }

    /// The pool it came from; zero outside a heap.
    pub fn pool(&self) -> PoolId {
        self.pool
    }

    /// The resource's own handle.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// Whether this is the answer to a request for zero bytes.
    pub fn is_empty(&self) -> bool {
        self.granted == 0
    }

    pub(crate) fn stamped(mut self, id: BlockId, pool: PoolId) -> Block {
        self.id = id;
        self.pool = pool;
        self
    }
}
