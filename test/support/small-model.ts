import { fileURLToPath } from "node:url";

/**
 * The folder of the policy that ships: Qwen's chat format with a vocabulary of 3,000, which loads in a
 * tenth of a second where Qwen3's takes two. For tests that any model serves.
 */
export const smallModelFolder = fileURLToPath(
  new URL("../../models/storefront-2m", import.meta.url),
);

/** The id of `<|im_end|>`. */
export const smallModelEndId = 2939;
