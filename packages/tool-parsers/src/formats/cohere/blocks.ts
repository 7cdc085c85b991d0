import type { Block } from "../../attempt.ts";
import { findJsonTagBlocks } from "../../shared/json/json-tag-blocks.ts";
import { argumentsOfEntry } from "../../sglang/base-json.ts";

/** The token that opens a list of calls. */
export const cohereOpen = "<|START_ACTION|>";

/** The token that closes a list of calls. */
export const cohereClose = "<|END_ACTION|>";

/**
 * Finds every block of Cohere's formats: a list of `{"tool_call_id": …, "tool_name": …,
 * "parameters": …}`.
 */
export function findCohereBlocks(text: string): Block[] {
  return findJsonTagBlocks(text, {
    open: cohereOpen,
    close: cohereClose,
    nameField: "tool_name",
    readArguments: argumentsOfEntry,
  });
}
