import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { sharedData } from "../testing/shared-data.fixture.ts";
import { RolloutError } from "../errors.ts";
import { pythonRepr } from "../../packages/python-values/src/text/repr.ts";
import type { ChatMessage } from "./chat/chat-model.ts";
import { llmStrategy } from "./llm-user.ts";
import type { ModelUserOptions, UserStrategy } from "./model-conversation.ts";
import { openModelConversation } from "./model-conversation.ts";
import { reactStrategy } from "./react-user.ts";
import { readUserPrompts } from "./read-user-prompts.ts";
import { reflectionStrategy } from "./reflection-user.ts";
import { scriptedChatModel } from "./chat/scripted-chat-model.fixture.ts";
import type { UserPrompts } from "./user-prompts.ts";
import { textOfLine } from "./user.ts";
import { verifyStrategy } from "./verify-user.ts";

/** One recorded operation of the original's simulator. */
interface GoldenEvent {
  readonly op: "construct" | "reset" | "step";
  readonly arg: string | null;
  readonly return?: string | null;
  readonly raises?: string;
  readonly new_calls: readonly (readonly ChatMessage[])[];
}

interface GoldenRecord {
  readonly strategy: string;
  readonly kind: string;
  readonly completions: readonly (string | readonly [string, number | null])[];
  readonly events: readonly GoldenEvent[];
}

const shared = sharedData();
const signal = new AbortController().signal;

const strategies: Readonly<Record<string, (options: ModelUserOptions) => UserStrategy>> = {
  llm: llmStrategy,
  react: reactStrategy,
  // The recording's substitute for LiteLLM prints messages differently.
  verify: (options) => verifyStrategy({ ...options, printDraft: printAsRecorded }),
  reflection: reflectionStrategy,
};

function printAsRecorded(content: string): string {
  return `Message(${pythonRepr(new Map(Object.entries({ role: "assistant", content })))})`;
}

/** Replays a recording of the original's simulator, and expects its lines and its model calls. */
async function expectRecorded(
  { strategy: name, completions, events }: GoldenRecord,
  prompts: UserPrompts,
): Promise<void> {
  const create = strategies[name];
  // A person is asked nothing at construction; an unknown name is refused by `createUser()`.
  if (create === undefined) {
    expect(["human", "nope"]).toContain(name);
    expect(events.flatMap((event) => event.new_calls)).toEqual([]);
    return;
  }
  const texts = completions.map((reply) => (typeof reply === "string" ? reply : reply[0]));
  const model = scriptedChatModel(texts);
  const options = { model, prompts };
  const strategy = create(options);
  const open = (instruction: string | null) =>
    openModelConversation(strategy, options, { instruction, seed: 0 });
  let session = open(null);
  for (const event of events) {
    const callCount = model.requests.length;
    let line: string | null | undefined;
    try {
      if (event.op === "construct") {
        // The original's wasted lines, which we only take here; `react` takes two.
        for (let round = 0; round < (name === "react" ? 2 : 1); round++) {
          await open(null).begin({ signal });
        }
        line = null;
      } else if (event.op === "reset") {
        session = open(event.arg);
        line = await session.begin({ signal });
      } else {
        line = textOfLine(await session.reply(event.arg ?? "", { signal }));
      }
    } catch (error) {
      expect(error).toBeInstanceOf(RolloutError);
      expect((error as RolloutError).code).toBe("user/bad-reply");
      expect(event.raises).toBe("ValueError");
    }
    expect(line).toEqual(event.return);
    const calls = model.requests.slice(callCount);
    expect(calls).toEqual(event.new_calls.map((messages) => ({ messages })));
  }
  model.assertDrained();
}

describe("τ-bench's user simulators with our texts", async () => {
  const folder = fileURLToPath(new URL("../../test/tau-bench/recorded/", import.meta.url));
  const prompts = await readUserPrompts(path.join(folder, "user-prompts.json"));

  test.each(readRecords(path.join(folder, "user-simulators.jsonl.gz")))(
    "$strategy: $kind",
    async (record) => await expectRecorded(record, prompts),
  );
});

describe.skipIf(shared === null)("τ-bench's user simulators with its own texts", async () => {
  const golden = "data/tau-bench/golden/user-simulators.jsonl.gz";
  const records = shared === null ? [] : readRecords(path.join(shared, golden));
  const prompts = shared === null ? undefined : await promptsOf(shared, records);

  test.each(records)("$strategy: $kind", async (record) => await expectRecorded(record, prompts!));
});

function readRecords(file: string): GoldenRecord[] {
  const lines = gunzipSync(readFileSync(file)).toString("utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as GoldenRecord);
}

/**
 * Extracts the judges' prompts, which the bundle lacks, from the first recorded question of each.
 * All other questions check them.
 */
async function promptsOf(folder: string, records: readonly GoldenRecord[]): Promise<UserPrompts> {
  const prompts = await readUserPrompts(
    path.join(folder, "data/tau-bench/user-simulator-prompts.json"),
  );
  const transcript = `System: ${prompts.llm.withoutInstruction}\nCustomer: Hi! How can I help you today?`;
  const questions = records
    .filter(({ strategy }) => strategy === "reflection")
    .flatMap(({ events }) => events.flatMap((event) => event.new_calls))
    .filter((call) => call.length === 1)
    .map((call) => call[0]?.content ?? "");
  const verify = questions.find((text) => text.includes(transcript));
  const reflect = questions.find((text) => text.includes("Reflection:"));
  const withInstruction = prompts.llm.withInstruction.split("{instruction}");
  const [head = "", tail = ""] = withInstruction;
  const start = reflect?.indexOf(head) ?? -1;
  const end = reflect?.indexOf(tail) ?? -1;
  expect(start).toBeGreaterThan(0);
  expect(end).toBeGreaterThan(start);
  const greeted = `${tail}\nCustomer: Hi! How can I help you today?`;
  return {
    ...prompts,
    verify: (verify ?? "")
      .replace(transcript, "{transcript}")
      .replace("\n\n# Response:\nw\n", "\n\n# Response:\n{response}\n"),
    reflect:
      `${reflect?.slice(0, start - "System: ".length)}{transcript}${reflect?.slice(end + greeted.length)}`.replace(
        "\n\n# Response:\na\n",
        "\n\n# Response:\n{response}\n",
      ),
  };
}
