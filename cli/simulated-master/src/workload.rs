//! The built-in workload: conversations over shared prompts, in the form of a trace.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Tokens in a block.
const BLOCK: u64 = 512;
/// Conversations under way at a time.
const CONVERSATIONS: usize = 256;
/// Shared prompts that conversations begin with.
const PROMPTS: u64 = 12;
/// Ids of a prompt's blocks begin at a multiple of this; those of everything else beyond all prompts.
const PROMPT_IDS: u64 = 32;

/// One request of a trace: a JSON object a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// ms since the start of the trace. The replay keeps a pace of its own.
    pub timestamp: serde_json::Number,
    /// Tokens of the prompt.
    pub input_length: u64,
    /// Tokens of the answer.
    pub output_length: u64,
    /// The blocks of the prompt, in order; equal ids are the same block.
    pub hash_ids: Vec<u64>,
}

/// `requests` requests, the same for the same seed. Each is a turn of a conversation: the blocks of a shared prompt, those
/// of the turns before, and some new ones. After a few turns another conversation takes the place.
pub fn generate(requests: usize, seed: u64) -> Vec<Request> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut next_id = PROMPTS * PROMPT_IDS;
    let mut conversations = vec![Vec::new(); CONVERSATIONS];
    let mut timestamp = 0_u64;
    let mut request = |_| {
        timestamp += rng.random_range(0..200);
        let conversation = &mut conversations[rng.random_range(0..CONVERSATIONS)];
        if conversation.is_empty() || rng.random_ratio(1, 6) {
            // Low prompts are the popular ones.
            let prompt = rng.random_range(0..PROMPTS).min(rng.random_range(0..PROMPTS));
            let blocks = 1 + prompt % 7;
            conversation.clear();
            conversation.extend(prompt * PROMPT_IDS..prompt * PROMPT_IDS + blocks);
        }
        let new = rng.random_range(1..14);
        conversation.extend(next_id..next_id + new);
        next_id += new;
        let blocks = conversation.len() as u64;
        Request {
            timestamp: timestamp.into(),
            input_length: blocks * BLOCK - rng.random_range(0..BLOCK),
            output_length: rng.random_range(1..1000),
            hash_ids: conversation.clone(),
        }
    };
    (0..requests).map(&mut request).collect()
}
