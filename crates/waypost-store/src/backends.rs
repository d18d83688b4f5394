//! The four backends of [`Store`](crate::Store).

mod columns;
#[cfg(test)]
mod expand_only;
pub(crate) mod file;
mod hash_chain;
mod in_memory_query;
mod list_query;
mod lock_holder;
pub(crate) mod memory;
pub(crate) mod postgres;
pub(crate) mod sqlite;
mod store_id;
mod write_buffer;
