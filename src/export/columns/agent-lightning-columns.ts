import type { ColumnSpecs } from "../../columns/column-specs.ts";
import { UsageError } from "../../errors.ts";
import { base64Text } from "./base64-text.ts";
import { findRefusal } from "./choose-columns.ts";
import { noColumnRules, type ColumnRules } from "./column-rules.ts";
import type { RowColumns } from "./row-columns.ts";

/**
 * The rules of agent-lightning, which gets events over HTTP. Its reader converts ids to bytes, so ids above 255 would wrap.
 *
 * **Source:** agentlightning 1.0.2, agentlightning/verl/rollout_adapter.py (`_build_routed_experts_batch`) and
 * agentlightning/server/routes/events.py (`_drop_superseded_routed_experts`).
 */
export const agentLightningColumnRules: ColumnRules = {
  ...noColumnRules,
  routedExperts: {
    action: "export",
    why: "`routed_experts` of each request: base64 of .npy, uint8, refused above 256 experts; a row for each id but its last",
  },
};

/**
 * Checks that agent-lightning can take the rows of a run.
 *
 * @throws UsageError for kept tokens, and above 256 experts.
 */
export function requireAgentLightningColumns(specs: ColumnSpecs): void {
  const { expertCount = 0 } = specs.routedExperts ?? {};
  const refusal =
    findRefusal("agent-lightning", agentLightningColumnRules, specs) ??
    (expertCount > 256
      ? `its layers have ${expertCount} experts, and agent-lightning cuts their ids to bytes, at most 256; use another ` +
        "trainer, or play without routedExperts"
      : undefined);
  if (refusal !== undefined) {
    throw new UsageError(`Cannot hand this run to agent-lightning: ${refusal}`);
  }
}

/**
 * Returns the routes of a policy call for agent-lightning: the base64 of a `.npy` file of uint8, with a row for each id of
 * prompt and output but the last. There are at most 256 experts.
 *
 * @param end - Number of ids of the call's prompt and output.
 */
export async function spellNpyRoutes(row: RowColumns, end: number): Promise<string> {
  const array = row.tokenArray("routedExperts", { type: "uint8", rows: end - 1 });
  async function* file(): AsyncGenerator<Uint8Array> {
    yield npyHead(array.shape);
    yield* array.bytes();
  }
  return await base64Text(file());
}

/** Returns the head of a `.npy` file, version 1.0: its length is a multiple of 64. */
function npyHead(shape: readonly number[]): Uint8Array {
  const about = `{'descr': '|u1', 'fortran_order': False, 'shape': (${shape.join(", ")}), }`;
  // The magic, the version and the length take ten bytes, the line feed one.
  const length = Math.ceil((about.length + 11) / 64) * 64 - 10;
  const head = Buffer.alloc(10 + length, " ");
  head.write("\x93NUMPY\x01\x00", "latin1");
  head.writeUInt16LE(length, 8);
  head.write(about, 10, "latin1");
  head.write("\n", 9 + length, "latin1");
  return head;
}
