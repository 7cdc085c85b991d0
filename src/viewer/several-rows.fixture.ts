import { rowLineageOf } from "../episode/row-lineage-of.ts";
import type { TreeTurn } from "../episode/episode.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import type { Sample } from "../trajectory/sample.ts";
import { makeEpisode, makeSample, type RowPart, type ViewedEpisode } from "./viewed-run.fixture.ts";

const opening =
  "<|im_start|>system\nYou write code.<|im_end|>\n<|im_start|>user\nFix the parser.<|im_end|>\n<|im_start|>assistant\n";
const answer = (text: string): RowPart => ({
  text: `\n<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`,
});
const said = (text: string): RowPart => ({ text: `${text}<|im_end|>`, version: "7" });

/** The parts of each row, and the text of each turn. */
const rows: readonly (readonly RowPart[])[] = [
  [
    { text: opening },
    said("I call task with a prompt."),
    answer("No test fails."),
    said("I write the missing test."),
  ],
  [
    {
      text: "<|im_start|>user\nRead all tests. Report the ones that fail.<|im_end|>\n<|im_start|>assistant\n",
    },
    said("No test fails."),
  ],
  [
    {
      text: "<|im_start|>user\nSummarise the conversation.<|im_end|>\n<|im_start|>assistant\n",
    },
    said("The parser is fixed, a test is missing."),
  ],
  [
    {
      text: "<|im_start|>user\nThis happened before: The parser is fixed, a test is missing.<|im_end|>\n<|im_start|>assistant\n",
    },
    said("I write it, and all is done."),
  ],
];

const turn: TreeTurn = {
  promptTokenCount: 30,
  sampledTokenCount: 9,
  outputHash: "",
  isDelivered: true,
  model: "policy",
};

/** A rejected summary, and a turn that never reached the client, among the trained turns. */
const tree: readonly TreeTurn[] = [
  { ...turn, cause: "first", turnIndex: 0, role: "main" },
  {
    ...turn,
    cause: "new-conversation",
    turnIndex: 2,
    role: "subagent",
    from: { turn: 0, edge: "subagent_call" },
  },
  {
    ...turn,
    parent: 0,
    turnIndex: 1,
    role: "main",
    from: { turn: 1, edge: "subagent_return" },
  },
  {
    ...turn,
    cause: "new-conversation",
    role: "compaction",
    from: { turn: 2, edge: "compaction_attempt" },
    rejected: "later-summary",
  },
  {
    ...turn,
    cause: "new-conversation",
    turnIndex: 3,
    role: "compaction",
    from: { turn: 2, edge: "compaction_attempt" },
  },
  {
    ...turn,
    cause: "moved-turn",
    turnIndex: 4,
    role: "main",
    from: { turn: 4, edge: "compaction" },
  },
  { ...turn, parent: 5, isDelivered: false, sampledTokenCount: 1 },
];

/**
 * Makes an attempt that calls a sub-agent and is compacted: four rows, a rejected summary after turn
 * 1, and a turn after turn 4 that was not delivered.
 */
export async function makeSeveralRows(
  codec: TokenCodec,
  rolloutId: string,
): Promise<ViewedEpisode> {
  const samples: Sample[] = [];
  let turnIndex = 0;
  for (const [segment, parts] of rows.entries()) {
    const made = await makeSample(codec, rolloutId, parts);
    const turns = made.turns.map((span) => ({ ...span, turnIndex: turnIndex++ }));
    samples.push({ ...made, segment, turns });
  }
  const segments = samples.map((sample) => ({ ...sample, spans: [] }));
  const lineage = rowLineageOf({ segments, tree }).map((own) => own ?? null);
  const texts = rows.flatMap((parts) =>
    parts.filter(({ version }) => version !== undefined).map(({ text }) => text),
  );
  const spans = samples.flatMap(({ turns }) => turns);
  const counts = {
    turnCount: spans.length,
    sampledTokenCount: spans.reduce((sum, { start, end }) => sum + end - start, 0),
    tokenCount: samples.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0),
    toolCallCount: 0,
    formatErrorCount: 0,
    attemptCounts: {},
  };
  const row = makeEpisode(
    rolloutId,
    texts.map((text, index) => ({
      text: text.replace("<|im_end|>", ""),
      sampledTokenCount: spans[index]!.end - spans[index]!.start,
    })),
    { tree, reward: 1, counts },
  );
  const finished = samples.map((sample, index) => ({
    ...sample,
    reward: 1,
    metadata: { lineage: lineage[index] },
  }));
  return {
    row: { ...row, lineage, sampleHashes: finished.map((sample) => hashRow(sample)) },
    samples: finished,
  };
}
