import { UsageError } from "../../errors.ts";
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
 * Returns the routes of a policy call for agent-lightning: the base64 of a `.npy` file of uint8, with a row for each id of
 * prompt and output but the last.
 *
 * @param end - Number of ids of the call's prompt and output.
 * @throws UsageError above 256 experts.
 */
export async function spellNpyRoutes(row: RowColumns, end: number): Promise<string> {
  const { expertCount } = row.specs.routedExperts!;
  if (expertCount > 256) {
    throw new UsageError(
      `Cannot hand ${row.row.sample.rolloutId} to agent-lightning: its layers have ${expertCount} experts, and ` +
        "agent-lightning cuts their ids to bytes, at most 256; use another trainer, or play without routedExperts",
    );
  }
  const array = row.tokenArray("routedExperts", { type: "uint8", rows: end - 1 });
  const blocks: Uint8Array[] = [npyHead(array.shape)];
  for await (const block of array.bytes()) blocks.push(block);
  return Buffer.concat(blocks).toString("base64");
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
