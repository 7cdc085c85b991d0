import type { SchemaElement } from "hyparquet";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import type { Sample } from "../trajectory/sample.ts";

/**
 * The number of tokens after which a row group is written. Encoding one token takes a few hundred
 * bytes of memory.
 */
const groupTokens = 400_000;

/** A column: its name, its type, and the function that reads its value from a row. */
interface Column {
  readonly name: string;
  readonly schema: readonly SchemaElement[];
  readonly read: (row: Sample) => unknown;
}

const text = { type: "BYTE_ARRAY", converted_type: "UTF8" } as const;
const int32 = { type: "INT32" } as const;
const int8 = { type: "INT32", converted_type: "INT_8" } as const;
const double = { type: "DOUBLE" } as const;

type Leaf = typeof text | typeof int32 | typeof int8 | typeof double;

function plain(name: string, leaf: Leaf, read: Column["read"], isOptional = false): Column {
  const repetition = isOptional ? "OPTIONAL" : "REQUIRED";
  return { name, schema: [{ name, repetition_type: repetition, ...leaf }], read };
}

function list(name: string, leaf: Leaf, read: Column["read"]): Column {
  const schema: readonly SchemaElement[] = [
    { name, repetition_type: "REQUIRED", converted_type: "LIST", num_children: 1 },
    { name: "list", repetition_type: "REPEATED", num_children: 1 },
    { name: "element", repetition_type: "REQUIRED", ...leaf },
  ];
  return { name, schema, read };
}

const columns: readonly Column[] = [
  plain("rollout_id", text, (row) => row.rolloutId),
  plain("group_id", text, (row) => row.groupId),
  plain("task_id", text, (row) => row.taskId),
  plain("segment", int32, (row) => row.segment),
  plain("prompt_length", int32, (row) => row.promptLength),
  plain("reward", double, (row) => row.reward ?? null, true),
  plain("outcome", text, (row) => row.outcome),
  plain("stop_reason", text, (row) => row.stopReason),
  list("token_ids", int32, (row) => row.tokenIds),
  list("loss_mask", int8, (row) => row.lossMask),
  list("logprobs", double, (row) => row.logprobs),
  list("policy_versions", text, (row) => row.policyVersions),
  plain("turns", text, (row) => JSON.stringify(row.turns)),
  plain("reward_components", text, (row) => componentsOf(row), true),
  plain("metadata", text, (row) => JSON.stringify(row.metadata)),
];

/** Returns the components of a row's reward as JSON, `{name: {value, weight}}`; null if it has none. */
function componentsOf({ metadata }: Sample): string | null {
  const components = metadata["rewardComponents"];
  return components === undefined ? null : JSON.stringify(components);
}

/**
 * Yields rows as a Parquet file with typed list columns, one row group at a time. An absent reward
 * is null.
 */
export async function* parquetFile(rows: AsyncIterable<Sample>): AsyncGenerator<Uint8Array> {
  const bytes = new ByteWriter();
  const root: SchemaElement = { name: "root", num_children: columns.length };
  const schema = [root, ...columns.flatMap((column) => column.schema)];
  const writer = new ParquetWriter({ writer: bytes, schema, createdBy: "turnwright" });
  let waiting: Sample[] = [];
  let tokenCount = 0;
  const take = (): Uint8Array => {
    const taken = bytes.getBytes().slice();
    // The writer's buffer can be used again. Its offset still counts all bytes.
    bytes.index = 0;
    return taken;
  };
  const writeGroup = async (): Promise<Uint8Array> => {
    const columnData = columns.map(({ name, read }) => ({ name, data: waiting.map(read) }));
    await writer.write({ columnData, rowGroupSize: waiting.length });
    waiting = [];
    tokenCount = 0;
    return take();
  };
  for await (const row of rows) {
    waiting.push(row);
    tokenCount += row.tokenIds.length;
    if (tokenCount >= groupTokens) yield await writeGroup();
  }
  if (waiting.length > 0) yield await writeGroup();
  await writer.finish();
  yield take();
}
