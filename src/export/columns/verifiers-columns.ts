import type { ExportRecord } from "../export-record.ts";
import { expertType } from "./array-type.ts";
import { noColumnRules, type ColumnExport } from "./column-rules.ts";
import { elementBytes } from "./array-type.ts";
import { int32Array } from "./int32-array.ts";
import type { PlacedArray } from "./column-sink.ts";
import type { RowColumns } from "./row-columns.ts";

/**
 * Exports the `routed_experts` of each node: the rows of its own ids. The last id of a branch has a copy of the row
 * before, as verifiers writes it. A sampled node has a `sampling_mask` over its ids.
 *
 * **Source:** verifiers 0.4.0, verifiers/v1/graph.py (`MessageNode`, `_attribute_routed_experts`).
 */
export const verifiersColumns: ColumnExport = {
  rules: {
    ...noColumnRules,
    routedExperts: {
      action: "export",
      why: "`routed_experts` of each node: uint8 to 256 experts, else uint16; the last id of a branch has a copy",
    },
    keptTokens: {
      action: "export",
      why: "`sampling_mask` of each sampled node: int32 `ids` and `counts`",
    },
  },
  carrier: "file",
  add: async (record, rows) => {
    const branches = branchesOf(record["nodes"] as readonly Node[]);
    const nodes: Node[] = [];
    for (const [index, branch] of branches.entries()) {
      nodes.push(...(await addToBranch(branch, rows[index]!)));
    }
    return { ...record, nodes };
  },
};

interface Node extends ExportRecord {
  readonly parent: number | null;
  readonly sampled: boolean;
  readonly token_ids: readonly number[];
}

/** Returns the nodes of each row. A node without a parent begins a row. */
function branchesOf(nodes: readonly Node[]): readonly (readonly Node[])[] {
  const branches: Node[][] = [];
  for (const node of nodes) {
    if (node.parent === null) branches.push([]);
    branches.at(-1)!.push(node);
  }
  return branches;
}

async function addToBranch(branch: readonly Node[], row: RowColumns): Promise<readonly Node[]> {
  const { routedExperts, keptTokens } = row.specs;
  const routes = routedExperts && (await placeRoutes(row));
  const sets = keptTokens && (await row.tokenSets("keptTokens"));
  const added: Node[] = [];
  let at = 0;
  for (const node of branch) {
    const end = at + node.token_ids.length;
    const lists = sets && Array.from(node.token_ids, (_, index) => sets.idsOf(at + index));
    added.push({
      ...node,
      ...(routes && { routed_experts: rowsOf(routes, at, end) }),
      ...(node.sampled && lists && { sampling_mask: await placeMask(row, lists) }),
    });
    at = end;
  }
  return added;
}

async function placeRoutes(row: RowColumns): Promise<PlacedArray> {
  const type = expertType(row.specs.routedExperts!.expertCount, ["uint8", "uint16"]);
  const about = { type, rows: row.tokenCount, padding: "copy" } as const;
  return await row.place(row.tokenArray("routedExperts", about));
}

/** Returns the offset and shape of some rows of an array. The offset need not be a multiple of 64. */
function rowsOf({ offset, shape, dtype }: PlacedArray, start: number, end: number): PlacedArray {
  const [, ...inner] = shape;
  const rowSize = inner.reduce((product, length) => product * length, elementBytes(dtype));
  return { offset: offset + start * rowSize, shape: [end - start, ...inner], dtype };
}

async function placeMask(row: RowColumns, lists: readonly Int32Array[]): Promise<ExportRecord> {
  const counts = Int32Array.from(lists, ({ length }) => length);
  const total = counts.reduce((sum, count) => sum + count, 0);
  return {
    ids: await row.place(int32Array([total], lists)),
    counts: await row.place(int32Array([counts.length], [counts])),
  };
}
