import path from "node:path";
import { describe, expect, test } from "vitest";
import { sharedData } from "../../testing/shared-data.fixture.ts";
import { ClientError } from "../client-error.ts";
import { defaultIgnore } from "./message-keys.ts";
import { SessionTree } from "./session-tree.ts";
import { toSentTurn, type RootCause } from "./turn-node.ts";
import {
  dialectOf,
  readRecordings,
  RecordedMemory,
  recordedParts,
  type RecordedExchange,
} from "./recordings.fixture.ts";

const shared = sharedData();
const recordings =
  shared === null ? {} : readRecordings(path.join(shared, "data", "gateway-clients"));

/** Places each exchange as a gateway does, and adds the sampled turns to the tree. */
function replay(exchanges: readonly RecordedExchange[]) {
  const tree = new SessionTree<number>({ ignore: defaultIgnore, strictness: "calls" });
  const memory = new RecordedMemory();
  const places: { index: number; parent: number | null; cause?: RootCause; images?: true }[] = [];
  exchanges.forEach((exchange, index) => {
    const dialect = dialectOf(exchange);
    if (dialect === undefined || exchange.sampled === undefined) return;
    let requested;
    try {
      requested = dialect.decode(exchange.body, memory);
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      places.push({ index, parent: null, images: true });
      return;
    }
    const placement = tree.place(requested);
    const parts = recordedParts(exchange);
    tree.add(placement, { turn: toSentTurn(parts), record: index, isDelivered: true });
    const carried =
      requested.hasInstructions === true ? requested.messages.slice(1) : requested.messages;
    memory.keep(exchange.sampled.responseId ?? "", carried, parts);
    const parent = placement.parent?.record ?? null;
    places.push({ index, parent, ...(placement.cause && { cause: placement.cause }) });
  });
  return places;
}

describe.skipIf(shared === null)("recorded clients", () => {
  test.each(Object.keys(recordings))("%s: each exchange continues the expected turn", (name) => {
    const exchanges = recordings[name]!;
    const places = replay(exchanges);
    const expected = exchanges.flatMap(({ expected: wanted, sampled }, index) =>
      wanted === undefined || sampled === undefined ? [] : [{ index, parent: wanted.parent }],
    );
    expect(places.map(({ index, parent }) => ({ index, parent }))).toEqual(expected);
  });

  test.each([
    ["claude-code/claude-code-overflow.json", ["first", "moved-turn"]],
    ["claude-code/claude-code-retry-compact.json", ["first", "foreign-assistant"]],
    ["claude-code/claude-code-subagents.json", ["first", "new-conversation", "new-conversation"]],
    ["codex/codex-compact.json", ["first", "tools-changed", "new-conversation"]],
    ["py-openai-agents/py-openai-agents.json", ["first", "repeated-prompt", "repeated-prompt"]],
    ["smolagents/smolagents.json", ["first", "foreign-assistant", "foreign-assistant"]],
  ])("%s: each root has the expected cause", (name, causes) => {
    const places = replay(recordings[name]!);
    expect(places.flatMap(({ cause }) => cause ?? [])).toEqual(causes);
  });
});
